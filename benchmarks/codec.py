"""Training steps of the paper's codec, as a share of what matrix products reach on this machine.

Operations are counted as convolutions are defined, padding included: 2 for each tap, input and output channel and pixel
of the smaller map, and three times that for a step. Ours leaves some taps on padding out; ``executed`` is the share of
the peak by what is left. Beside it the same layers with PyTorch's own convolutions, and no codes drawn between them.
"""

from __future__ import annotations

import itertools

import torch
import torch.nn.functional as F
from torch import nn

from benchmarks.harness import Rows, report, seconds
from recollect import DiscreteAutoencoder
from recollect.codecs.convolution import KERNEL, PADDING, Convolution, Deconvolution, length

MNIST, CIFAR = (1, 28, 28), (3, 32, 32)
# Variables, categories, and the images of a step: 10 new ones with 10 or 40 recollections.
CODES = (
    (MNIST, 104, 4, 20),
    (MNIST, 104, 4, 50),
    (MNIST, 139, 8, 20),
    (MNIST, 139, 8, 50),
    (CIFAR, 244, 2, 20),
    (CIFAR, 620, 3, 20),
)
SIZE = 1536  # of the square matrices


def operations(codec: DiscreteAutoencoder) -> int:
    """Of a training step on one image."""
    layers = [layer for layer in (*codec.encoder, *codec.decoder) if isinstance(layer, Convolution | Deconvolution)]
    taps = (layer.geometry.rows * layer.geometry.columns * layer.weight.numel() for layer in layers)
    return 3 * 2 * sum(taps)


def peak() -> float:
    """Products of square matrices, in billions of operations a second."""
    a, b, c = (torch.rand(SIZE, SIZE) for _ in range(3))
    return 2 * SIZE**3 / seconds(lambda: torch.mm(a, b, out=c)) / 1e9


def executed(codec: DiscreteAutoencoder) -> float:
    """The share of the operations that are not left out."""
    done = whole = 0
    for layer in codec.encoder:
        if isinstance(layer, Convolution):
            geometry, channels = layer.geometry, layer.weight.shape[2] * layer.weight.shape[3]
            whole += geometry.rows * geometry.columns * KERNEL * channels
            done += sum(length(rows) * length(taps) for rows, taps in geometry.groups) * geometry.columns * channels
    return done / whole


def plain(codec: DiscreteAutoencoder) -> nn.Module:
    """The same layers by PyTorch."""
    layers: list[nn.Module] = []
    for layer in (*codec.encoder, *codec.decoder):
        if isinstance(layer, Convolution):
            large, small = layer.weight.shape[2:]
            layers.append(nn.Conv2d(large, small, KERNEL, layer.geometry.stride, PADDING))
        elif isinstance(layer, Deconvolution):
            large, small = layer.weight.shape[2:]
            geometry = layer.geometry
            lost = (
                geometry.height - 1 - (geometry.rows - 1) * geometry.stride[0],
                geometry.width - 1 - (geometry.columns - 1) * geometry.stride[1],
            )
            layers.append(nn.ConvTranspose2d(small, large, KERNEL, geometry.stride, PADDING, lost))
        else:
            layers.append(layer)
    return nn.Sequential(*layers)


def training(model: nn.Module, x: torch.Tensor) -> float:
    """Seconds of a training step with Adam."""
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)

    def step() -> None:
        optimiser.zero_grad()
        F.binary_cross_entropy_with_logits(model(x), x).backward()
        optimiser.step()

    return seconds(step)


def measured() -> Rows:
    rows = []
    for threads, (shape, variables, categories, batch) in itertools.product((1, 2), CODES):
        torch.set_num_threads(threads)
        codec = DiscreteAutoencoder(shape, variables, categories)
        # In turns, so that what else the machine does meets all.
        layers, x = plain(codec), torch.rand(batch, *shape)
        times = [(training(codec, x), training(layers, x), peak()) for _ in range(3)]
        ours, theirs = (batch * operations(codec) / min(column) / 1e9 for column in [*zip(*times, strict=True)][:2])
        product = max(rates[2] for rates in times)
        rows.append(
            {
                "code": f"{variables}x{categories}",
                "threads": threads,
                "batch": batch,
                "peak_gigaflops": product,
                "step_gigaflops": ours,
                "share_of_peak": ours / product,
                "executed": executed(codec) * ours / product,
                "plain_share_of_peak": theirs / product,
            }
        )
    return rows


if __name__ == "__main__":
    report("codec", measured)
