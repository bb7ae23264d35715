"""Drawings in black and white: small pictures of one bit a pixel, painted finer by a network that learns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F

from recollect.checks import check_size
from recollect.codecs.painted import PaintedCodec
from recollect.rebuild import rebuildable

if TYPE_CHECKING:
    from collections.abc import Sequence

PATCH = 2  # pixels that are one variable, down and across: neighbours say much of each other


@rebuildable
class Sketch(PaintedCodec):
    """A learned codec whose code is the image averaged down to ``size`` and cut at ``threshold``, one bit a pixel.

    Made for writing and drawings. A variable is a patch of 2x2 pixels, so that a memory with the scheme "entropy"
    learns which patches are frequent where and takes few bits for those.

    Args:
        shape: channels, height and width of the images.
        size: height and width of the sketch, even numbers.
        threshold: what is brighter is 1. Lines that are thinner than a pixel of the sketch want a low one.
        filters: of the network that paints; with 0 a recollection is the sketch, interpolated.
        seed: of the initial weights.

    >>> codec = Sketch((1, 28, 28), size=(12, 12))
    >>> codec.variables, codec.categories
    (36, 16)
    >>> codec.decode(codec.encode(torch.rand(5, 1, 28, 28))).shape
    torch.Size([5, 1, 28, 28])
    """

    categories = 2**PATCH**2

    def __init__(
        self,
        shape: Sequence[int],
        *,
        size: Sequence[int],
        threshold: float = 0.25,
        filters: int = 32,
        seed: int = 0,
    ) -> None:
        super().__init__(shape, filters=filters, seed=seed)
        channels, (down, across) = self.shape[0], check_size(size, self.shape, PATCH)
        if down % PATCH or across % PATCH:
            raise ValueError(
                f"size={tuple(size)}: accepted are even numbers, since a variable is a patch of 2x2 pixels"
            )
        if not 0 <= threshold < 1:
            raise ValueError(f"threshold={threshold}: accepted is a brightness from 0 to below 1")
        self.size, self.threshold = (down, across), threshold
        self._map = (channels * PATCH**2, down // PATCH, across // PATCH)
        self.variables = channels * self._map[1] * self._map[2]

    def _code(self, x: torch.Tensor) -> torch.Tensor:
        patches = F.pixel_unshuffle((F.adaptive_avg_pool2d(x, self.size) > self.threshold).long(), PATCH)
        bits = patches.reshape(len(x), self.shape[0], PATCH**2, -1)
        return (bits << torch.arange(PATCH**2, device=x.device)[:, None]).sum(2).flatten(1)

    def _coarse(self, codes: torch.Tensor) -> torch.Tensor:
        values = codes.reshape(len(codes), self.shape[0], 1, -1)
        bits = values >> torch.arange(PATCH**2, device=codes.device)[:, None] & 1
        small = F.pixel_shuffle(bits.reshape(len(codes), *self._map).float(), PATCH)
        return F.interpolate(small, self.shape[1:], mode="bilinear", align_corners=False).clamp_(0, 1)
