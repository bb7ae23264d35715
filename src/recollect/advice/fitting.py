"""Codecs without learning, fitted to images: what they keep best in so many bits, and how many bits they need."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from recollect.codecs.jpeg import CHANNELS, JPEG
from recollect.codecs.pixels import ResizedPixels

if TYPE_CHECKING:
    import torch

JPEG_SHARE = 0.95  # of the images that a slot holds at its quality


def fitted_pixels(x: torch.Tensor, most_bits: int) -> dict[str, Any] | None:
    """The size and the bits of a value that lose least of the images, in ``most_bits`` at most; None if nothing fits.

    >>> import torch
    >>> blocks = torch.rand(20, 1, 4, 4).repeat_interleave(4, 2).repeat_interleave(4, 3)
    >>> fitted_pixels(blocks, most_bits=100)
    {'size': (4, 4), 'bits': 6}
    """
    channels, height, width = x.shape[1:]
    tried = {}
    for bits in range(1, 9):
        values = most_bits // (channels * bits)
        down = min(height, max(1, round(math.sqrt(values * height / width))))
        right = min(width, values // down)
        if right:
            codec = ResizedPixels((channels, height, width), size=(down, right), bits=bits)
            tried[down, right, bits] = float((codec.decode(codec.encode(x)) - x).abs().mean())
    if not tried:
        return None
    down, right, bits = min(tried, key=lambda size: tried[size])
    return {"size": (down, right), "bits": bits}


def jpeg_bits(x: torch.Tensor, quality: int) -> int | None:
    """Bits of a slot that holds nearly all of the images at a quality; None for images that JPEG does not take."""
    if x.shape[1] not in CHANNELS:
        return None
    needed = JPEG(x.shape[1:], bits=16, quality=quality).data_bits(x).double().quantile(JPEG_SHARE)
    return 8 * math.ceil(float(needed) / 8) + 8  # and a byte for the quality
