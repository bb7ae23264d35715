"""Drawings in black and white: small pictures of one bit a pixel, painted finer by a network that learns."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F

from recollect.checks import check_size
from recollect.codecs.painted import PaintedCodec
from recollect.rebuild import rebuildable

if TYPE_CHECKING:
    from collections.abc import Sequence


@rebuildable
class Sketch(PaintedCodec):
    """A learned codec whose code is the image averaged down to ``size`` and cut at ``threshold``, one bit a pixel.

    Made for writing and drawings. The code is a ``picture``, so that a memory with the scheme "entropy" learns what
    stands around a pixel, and takes few bits for it.

    Args:
        shape: channels, height and width of the images.
        size: height and width of the sketch.
        threshold: what is brighter is 1. Lines that are thinner than a pixel of the sketch want a low one.
        filters: of a network that learns to paint what the sketch leaves out, 32 in our trials; by default there is
            none, and a recollection is the sketch, interpolated. A painter brings recollections closer to their
            originals, but models kept little or nothing more by it, and it takes room.
        seed: of the initial weights.

    >>> codec = Sketch((1, 28, 28), size=(12, 12))
    >>> codec.variables, codec.categories
    (144, 2)
    >>> codec.decode(codec.encode(torch.rand(5, 1, 28, 28))).shape
    torch.Size([5, 1, 28, 28])
    """

    categories = 2

    def __init__(
        self,
        shape: Sequence[int],
        *,
        size: Sequence[int],
        threshold: float = 0.25,
        filters: int = 0,
        seed: int = 0,
    ) -> None:
        super().__init__(shape, filters=filters, seed=seed)
        if not 0 <= threshold < 1:
            raise ValueError(f"threshold={threshold}: accepted is a brightness from 0 to below 1")
        self.picture, self.threshold = check_size(size, self.shape), float(threshold)
        self.variables = self.shape[0] * math.prod(self.picture)

    def _code(self, x: torch.Tensor) -> torch.Tensor:
        return (F.adaptive_avg_pool2d(x, self.picture) > self.threshold).long().flatten(1)

    def _coarse(self, codes: torch.Tensor) -> torch.Tensor:
        small = codes.reshape(len(codes), self.shape[0], *self.picture).float()
        return F.interpolate(small, self.shape[1:], mode="bilinear", align_corners=False).clamp_(0, 1)
