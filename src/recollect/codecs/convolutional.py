"""What the discrete and the continuous autoencoder share: three convolutions, a 2x2 map, three deconvolutions.

Images larger than 64x64 have one more of each for every doubling.
"""

from __future__ import annotations

import copy
import itertools
import math
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import nn

from recollect.averaging import stays_of
from recollect.budget import check_autoencoder_shape, filters_by_layer
from recollect.checks import check_averaging, check_flag
from recollect.codecs.convolution import KERNEL, Convolution, Deconvolution
from recollect.codecs.weighed import Weighed
from recollect.seeding import initial_weights

if TYPE_CHECKING:
    from collections.abc import Sequence

BOTTLENECK = 2  # the code is a 2x2 map


class ConvolutionalAutoencoder(Weighed):
    """Layers, weights and loss; what the four values a filter at the bottleneck mean is left to its heirs.

    Args:
        shape: channels, height and width of the images; height and width from 2 to 256.
        filters: in each layer; beyond three, as `filters_by_layer` has it.
        normalised: add a group norm (one group) and a smooth activation (SiLU instead of ReLU) behind each hidden
            layer.
        averaging: what stays, with each loss that is asked for in training, of an average of the decoder's weights,
            which reads codes in its place; 0 for none.
        seed: of the initial weights.
    """

    steps: torch.Tensor

    def __init__(
        self, shape: Sequence[int], filters: int, *, normalised: bool, averaging: float = 0.0, seed: int
    ) -> None:
        super().__init__()
        self.shape = channels, height, width = check_autoencoder_shape(shape)
        self.filters, normalised = filters, check_flag("normalised", normalised)
        widths = [channels, *filters_by_layer(self.shape, filters)]
        depth = len(widths) - 1
        sizes = [*zip(_sizes(height, depth), _sizes(width, depth), strict=True)]
        strides = [*zip(_strides(height, depth), _strides(width, depth), strict=True)]
        layers = [(widths[n], widths[n + 1], sizes[n], strides[n]) for n in range(depth)]
        with initial_weights(seed, type(self).__name__):
            self.encoder = nn.Sequential(Convolution(*layers[0]))
            for layer in layers[1:]:
                self.encoder.extend([*_between(layer[0], normalised), Convolution(*layer)])
            self.decoder = nn.Sequential(Deconvolution(*layers[-1]))
            for layer in layers[-2::-1]:
                self.decoder.extend([*_between(layer[1], normalised), Deconvolution(*layer)])
        self._averaging = check_averaging(averaging)
        self.averaged = copy.deepcopy(self.decoder).requires_grad_(False) if averaging else None
        if averaging:
            self.register_buffer("steps", torch.zeros((), dtype=torch.long))  # of training

    @property
    def averaging(self) -> float:
        """What stays of the average of the decoder. With it there are other weights, so that it does not change."""
        return self._averaging

    @property
    def _dtype(self) -> torch.dtype:
        return next(self.parameters()).dtype

    @property
    def _device(self) -> torch.device:
        return next(self.parameters()).device

    def loss(self, x: torch.Tensor) -> torch.Tensor:
        """Binary cross entropy between ``x`` and its reconstruction through a code."""
        if self.averaged is not None and torch.is_grad_enabled():
            self._average(self.averaged)
        logits = self(x)
        return F.binary_cross_entropy_with_logits(logits, x.to(logits.dtype))

    @torch.no_grad()
    def _average(self, averaged: nn.Module) -> None:
        """Take the decoder as it is into its average."""
        self.steps += 1
        stays = stays_of(self._averaging, int(self.steps))
        for average, weight in zip(averaged.parameters(), self.decoder.parameters(), strict=True):
            average.lerp_(weight, 1 - stays)

    def _bottleneck(self, x: torch.Tensor) -> torch.Tensor:
        """What the encoder says of images, n x 4 f; the values of a place of the 2x2 map lie together."""
        return self._through(self.encoder, x).permute(0, 2, 3, 1).reshape(len(x), BOTTLENECK**2 * self.filters)

    def _picture(self, values: torch.Tensor, decoder: nn.Module | None = None) -> torch.Tensor:
        """Logits of images, from values at the bottleneck in the same order; those of an image may have any shape."""
        maps = values.reshape(len(values), BOTTLENECK, BOTTLENECK, self.filters).permute(0, 3, 1, 2)
        return self._through(self.decoder if decoder is None else decoder, maps)

    def _through(self, layers: nn.Module, x: torch.Tensor) -> torch.Tensor:
        """Through layers in the numbers that their weights have: fewer bits, as autocast has them, change codes."""
        with torch.autocast(x.device.type, enabled=False):
            return layers(x.to(self._dtype))


def _between(channels: int, normalised: bool) -> list[nn.Module]:
    return [nn.GroupNorm(1, channels), nn.SiLU()] if normalised else [nn.ReLU()]


def _strides(size: int, depth: int) -> tuple[int, ...]:
    """Strides that take ``size`` to 2 in ``depth`` layers: as even as can be, then as small as can be.

    >>> _strides(28, 3), _strides(32, 3), _strides(64, 3), _strides(256, 5)
    ((3, 3, 2), (3, 3, 2), (4, 4, 2), (3, 3, 3, 3, 2))
    """
    # With kernel 5 and padding 2 a stride s takes n to ceil(n / s), so only the product of the strides counts.
    fitting = (
        strides
        for strides in itertools.combinations_with_replacement(range(KERNEL, 0, -1), depth)
        if math.ceil(size / math.prod(strides)) == BOTTLENECK
    )
    return min(fitting, key=lambda strides: (strides[0], math.prod(strides)))


def _sizes(size: int, depth: int) -> list[int]:
    """Sizes of the maps, from the image to the code.

    >>> _sizes(28, 3), _sizes(256, 5)
    ([28, 10, 4, 2], [256, 86, 29, 10, 4, 2])
    """
    return [*itertools.accumulate(_strides(size, depth), lambda n, stride: math.ceil(n / stride), initial=size)]
