"""Codecs without learning, the controls: pixels as they are, and pixels averaged down and rounded to a few bits."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F

from recollect.checks import check_at_least, check_codes, check_image_shape, check_images, check_size
from recollect.rebuild import rebuildable

if TYPE_CHECKING:
    from collections.abc import Sequence


@rebuildable
class ResizedPixels:
    """Images averaged down to ``size`` (height, width), each channel of each pixel rounded to ``bits`` bits.

    Decoding interpolates bilinearly back to the full size. Nothing is learned and nothing but codes is kept.

    >>> codec = ResizedPixels((1, 28, 28), size=(14, 14), bits=1)
    >>> codec.variables, codec.categories
    (196, 2)
    >>> codec.decode(codec.encode(torch.rand(5, 1, 28, 28))).shape
    torch.Size([5, 1, 28, 28])
    """

    storage_bits = 0

    def __init__(self, shape: Sequence[int], *, size: Sequence[int], bits: int) -> None:
        self.shape = check_image_shape(shape)
        self.size = check_size(size, self.shape)
        if (bits := check_at_least("bits", bits, 1)) > 8:
            raise ValueError(f"bits={bits}: accepted are 1 to 8 bits a channel")
        self.variables = self.shape[0] * math.prod(self.size)
        self.categories = 2**bits

    def encode(self, x: torch.Tensor) -> torch.Tensor:
        """The nearest of the evenly spaced levels from 0 to 1, for each averaged pixel."""
        averaged = F.adaptive_avg_pool2d(check_images(x, self.shape), self.size)
        return (averaged * (self.categories - 1)).round().long().flatten(1)

    def decode(self, codes: torch.Tensor) -> torch.Tensor:
        """The levels, interpolated to the full size."""
        codes = check_codes(codes, self.variables, self.categories)
        small = codes.reshape(-1, self.shape[0], *self.size).float() / (self.categories - 1)
        # Weights that add up to one may add up to a little more in floating point.
        return F.interpolate(small, self.shape[1:], mode="bilinear", align_corners=False).clamp_(0, 1)


@rebuildable
class RawPixels:
    """Pixels as they are, at 8 bits a channel: a memory of real examples.

    >>> codec = RawPixels((1, 28, 28))
    >>> x = torch.randint(0, 256, (3, 1, 28, 28)) / 255
    >>> bool((codec.decode(codec.encode(x)) == x).all())
    True
    """

    categories = 256
    storage_bits = 0

    def __init__(self, shape: Sequence[int]) -> None:
        self.shape = check_image_shape(shape)
        self.variables = math.prod(self.shape)

    def encode(self, x: torch.Tensor) -> torch.Tensor:
        """Each value as one of 256 levels."""
        return (check_images(x, self.shape) * 255).round().long().flatten(1)

    def decode(self, codes: torch.Tensor) -> torch.Tensor:
        """The levels as they are."""
        return check_codes(codes, self.variables, self.categories).reshape(-1, *self.shape).float() / 255
