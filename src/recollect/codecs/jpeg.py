"""JPEG as a codec, the control from industry: the header is kept once, an item is the compressed data alone."""

from __future__ import annotations

import functools
import io
from typing import TYPE_CHECKING, Self

import numpy as np
import torch
from PIL import Image

from recollect.checks import check_at_least, check_codes, check_image_shape, check_images
from recollect.rebuild import rebuildable

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

CHANNELS = (1, 3)
START_OF_SCAN, END_OF_IMAGE = b"\xff\xda", b"\xff\xd9"


@rebuildable
class JPEG:
    """Images as JPEG data in slots of ``bits`` bits, each at the best quality found to fit its slot.

    The header says how large the image is and how to read it. It is the same for all images but for the quantisation
    tables, which follow from the quality, so it is billed once; the quality takes the first byte of each slot. An
    image that does not fit at quality 1 is cut off, and what is missing decodes to grey.

    Args:
        shape: 1 or 3 channels, height and width.
        bits: of a slot, rounded down to whole bytes; at least 16.
        quality: the highest quality that is tried, 1 to 100.

    >>> codec = JPEG((1, 28, 28), bits=1000)
    >>> codec.variables, codec.categories
    (125, 256)
    >>> codec.decode(codec.encode(torch.rand(2, 1, 28, 28))).shape
    torch.Size([2, 1, 28, 28])
    """

    categories = 256
    codes_are_bytes = True  # of something else, so that most codes mean nothing

    def __init__(self, shape: Sequence[int], *, bits: int, quality: int = 100) -> None:
        self.shape = check_image_shape(shape)
        if self.shape[0] not in CHANNELS:
            raise ValueError(f"shape={self.shape}: accepted are 1 or 3 channels")
        self.variables = check_at_least("bits", bits, 16) // 8
        if check_at_least("quality", quality, 1) > 100:
            raise ValueError(f"quality={quality}: accepted are 1 to 100")
        self.quality = quality

    @classmethod
    def at_quality(cls, x: torch.Tensor, quality: int) -> Self:
        """A codec with slots just large enough for all images of ``x`` at ``quality``.

        >>> JPEG.at_quality(torch.rand(20, 1, 28, 28), quality=25).quality
        25
        """
        probe = cls(x.shape[1:], bits=16, quality=quality)
        largest = max(len(_scan(image, quality)) for image in probe._pixels(x))
        return cls(probe.shape, bits=8 * (1 + largest), quality=quality)

    @property
    def storage_bits(self) -> int:
        """Bits of the header."""
        return 8 * len(_header(self.shape, self.quality))

    def data_bits(self, x: torch.Tensor) -> torch.Tensor:
        """Bits of the data of each image at the highest quality, whether or not they fit a slot: for averages.

        >>> codec = JPEG((1, 28, 28), bits=1000, quality=50)
        >>> codec.data_bits(torch.zeros(2, 1, 28, 28))
        tensor([112, 112])
        """
        return torch.tensor([8 * len(_scan(image, self.quality)) for image in self._pixels(x)])

    def encode(self, x: torch.Tensor) -> torch.Tensor:
        """The quality, then the data, then zeros."""
        codes = np.zeros((len(x), self.variables), np.int64)
        for code, image in zip(codes, self._pixels(x), strict=True):
            best = self._best_quality(image)
            data = np.frombuffer(_scan(image, best)[: self.variables - 1], np.uint8)
            code[0], code[1 : 1 + len(data)] = best, data
        return torch.from_numpy(codes)

    def decode(self, codes: torch.Tensor) -> torch.Tensor:
        """The pictures, read by the JPEG decoder behind the header of their quality."""
        rows = check_codes(codes, self.variables, self.categories).cpu().numpy().astype(np.uint8)
        images = np.empty((len(rows), *self.shape[1:], self.shape[0]), np.uint8)
        for image, row in zip(images, rows, strict=True):
            if not 1 <= row[0] <= 100:
                raise ValueError(f"code starts with quality {row[0]}: accepted are 1 to 100")
            data = _header(self.shape, int(row[0])) + row[1:].tobytes() + END_OF_IMAGE
            try:
                image[:] = np.asarray(Image.open(io.BytesIO(data))).reshape(image.shape)
            except OSError as error:
                raise ValueError(f"code is not JPEG data: {error}") from error
        return torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255

    def _pixels(self, x: torch.Tensor) -> npt.NDArray[np.uint8]:
        pixels = (check_images(x, self.shape) * 255).round().byte().permute(0, 2, 3, 1).cpu().numpy()
        return pixels[..., 0] if self.shape[0] == 1 else pixels

    def _best_quality(self, image: npt.NDArray[np.uint8]) -> int:
        """By halving: a higher quality takes more bits but for rare exceptions, which then go unnoticed."""
        low, high = 1, self.quality + 1
        while low + 1 < high:
            middle = (low + high) // 2
            fits = len(_scan(image, middle)) < self.variables
            low, high = (middle, high) if fits else (low, middle)
        return low


def _file(image: npt.NDArray[np.uint8], quality: int) -> tuple[bytes, bytes]:
    """Header and data of the JPEG file. Standard Huffman tables, so that the header is the same for all images."""
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "JPEG", quality=quality, subsampling="4:2:0", optimize=False)
    file = buffer.getvalue()
    start = file.index(START_OF_SCAN)
    data = start + 2 + int.from_bytes(file[start + 2 : start + 4], "big")
    return file[:data], file[data : -len(END_OF_IMAGE)]


def _scan(image: npt.NDArray[np.uint8], quality: int) -> bytes:
    return _file(image, quality)[1]


@functools.lru_cache(maxsize=128)
def _header(shape: tuple[int, int, int], quality: int) -> bytes:
    channels, height, width = shape
    blank = np.zeros((height, width) if channels == 1 else (height, width, channels), np.uint8)
    return _file(blank, quality)[0]
