"""Training steps of the paper's codec, as a share of what matrix products reach on this machine.

Operations are those of the convolutions as they are defined, padding included: 2 for each tap, input and output
channel and pixel of the smaller map, and three times that for a step. Ours leaves out taps on padding.
"""

from __future__ import annotations

import itertools

import torch

from benchmarks.harness import report, seconds
from recollect import DiscreteAutoencoder

SHAPE, CODES, BATCHES = (1, 28, 28), ((104, 4), (139, 8)), (20, 50)
SIZE = 1536  # of the square matrices


def operations(codec: DiscreteAutoencoder) -> int:
    """Of a training step on one image: maps of 10x10, 4x4 and 2x2 on both sides."""
    f = codec.filters
    return 3 * 2 * 2 * 25 * (100 * f + 16 * f**2 + 4 * f**2)


def peak() -> float:
    """Products of square matrices, in billions of operations a second."""
    a, b, c = (torch.rand(SIZE, SIZE) for _ in range(3))
    return 2 * SIZE**3 / seconds(lambda: torch.mm(a, b, out=c)) / 1e9


def training(codec: DiscreteAutoencoder, batch: int) -> float:
    """Training steps with Adam, in billions of operations a second."""
    optimiser = torch.optim.Adam(codec.parameters(), lr=1e-3, fused=True)
    x = torch.rand(batch, *SHAPE)

    def step() -> None:
        optimiser.zero_grad()
        codec.loss(x).backward()
        optimiser.step()

    return batch * operations(codec) / seconds(step) / 1e9


def main() -> None:
    rows = []
    for threads, (variables, categories), batch in itertools.product((1, 2), CODES, BATCHES):
        torch.set_num_threads(threads)
        codec = DiscreteAutoencoder(SHAPE, variables, categories)
        # In turns, so that what else the machine does meets both.
        pairs = [(training(codec, batch), peak()) for _ in range(5)]
        step, product = (max(rates) for rates in zip(*pairs, strict=True))
        rows.append(
            {
                "code": f"{variables}x{categories}",
                "threads": threads,
                "batch": batch,
                "step_gigaflops": step,
                "peak_gigaflops": product,
                "share_of_peak": step / product,
            }
        )
    report("codec", rows)


if __name__ == "__main__":
    main()
