"""Images to rows of bytes, as an index keeps them, and back."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch

from recollect.checks import check_codes
from recollect.codecs.interface import PictureCodec
from recollect.memory.entropy import Frequencies
from recollect.memory.neighbours import Neighbours
from recollect.packing import Scheme, pack, unpack_checked

if TYPE_CHECKING:
    from recollect.codecs.interface import Codec
    from recollect.memory.coder import Coder
    from recollect.memory.index import Rows

Coding = Scheme | Literal["entropy"]
# Items that go through the codec at once, and values of their images: what it needs on its way is many times an image.
MOST_AT_ONCE, MOST_VALUES = 1000, 1000 * 3 * 64 * 64


def at_once(codec: Codec) -> int:
    """Images of a codec that go through it at once."""
    return max(1, min(MOST_AT_ONCE, MOST_VALUES // math.prod(codec.shape)))


def coder_of(codec: Codec) -> Coder:
    """What codes of a codec are written with by the scheme "entropy"."""
    if not isinstance(codec, PictureCodec):
        return Frequencies(codec.variables, codec.categories)
    pixels = codec.shape[0] * math.prod(codec.picture)
    if codec.categories != 2 or codec.variables != pixels:
        raise ValueError(
            f"codes of {codec.variables} variables with {codec.categories} values, of a codec whose picture is "
            f"{codec.picture}: accepted are {pixels} with 2"
        )
    return Neighbours(codec.variables, codec.picture)


@torch.no_grad()
def encoded(codec: Codec, x: torch.Tensor, scheme: Coding) -> Rows:
    """Codes of images: packed, or a byte a variable. A codec may be anyone's, so that what it gives is checked."""
    if not len(x):
        return np.empty((0, codec.variables), np.uint8)
    rows = []
    for part in x.split(at_once(codec)):
        codes = check_codes(codec.encode(part), codec.variables, codec.categories)
        if len(codes) != len(part):
            raise ValueError(f"the codec gave {len(codes)} codes: accepted is one for each of {len(part)} images")
        values = codes.cpu().numpy()
        packed = scheme != "entropy"
        rows.append(pack(values, categories=codec.categories, scheme=scheme) if packed else values.astype(np.uint8))
    return np.concatenate(rows)


@torch.no_grad()
def decoded(codec: Codec, rows: Rows, scheme: Coding) -> torch.Tensor:
    """Rows that `encoded` gave back to images."""
    packed = scheme != "entropy"
    codes = unpack_checked(rows, int(codec.variables), int(codec.categories), scheme) if packed else rows
    images = codec.decode(torch.from_numpy(codes.astype(np.int64, copy=False)))
    shape = (len(rows), *codec.shape)
    if not isinstance(images, torch.Tensor) or images.shape != shape or not images.is_floating_point():
        gave = f"{images.dtype} {tuple(images.shape)}" if isinstance(images, torch.Tensor) else type(images).__name__
        raise TypeError(f"the codec decoded to {gave}: accepted are floating point images {shape} in [0, 1]")
    return images.float()
