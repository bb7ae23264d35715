"""Images of any kind as 8-bit pixels, channels first."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image, ImageOps

Pixels = npt.NDArray[np.uint8]
MODES = {1: "L", 3: "RGB"}  # of Pillow, by the number of channels
TRANSPARENT = {2, 4}  # channels of grey and of colour with transparency


def as_bytes(values: torch.Tensor | npt.NDArray[Any]) -> Pixels:
    """uint8 as it is, and floats in [0, 1] rounded to 8 bits.

    >>> as_bytes(np.array([0.0, 0.5, 1.0]))
    array([  0, 128, 255], dtype=uint8)
    """
    array = _as_array(values)
    if array.dtype == np.uint8:
        return array
    if array.dtype.kind != "f":
        raise TypeError(f"images are {array.dtype}: accepted are uint8, and floats in [0, 1]")
    low, high = array.min(initial=1), array.max(initial=0)
    if not (low >= 0 and high <= 1):  # also true of NaN
        raise ValueError(f"images have values from {low} to {high}: accepted are floats in [0, 1] and no NaN, or uint8")
    return (array * 255).round().astype(np.uint8)


def channels_first(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Images, ... x C x H x W, of images ... x H x W x C too: where the last dimension is 1 or 3 and no other can be C.

    >>> channels_first(np.zeros((5, 32, 40, 3))).shape, channels_first(np.zeros((5, 3, 32, 3))).shape
    ((5, 3, 32, 40), (5, 3, 32, 3))
    """
    first, height, last = array.shape[-3:]
    if last in TRANSPARENT and min(first, height) > max(TRANSPARENT):
        raise ValueError(
            f"images of shape {array.shape[-3:]} seem to have {last} channels, transparency among them: accepted are "
            f"1 or 3 if channels are last, and any number if they are first"
        )
    return np.moveaxis(array, -1, -3) if last in MODES and first not in MODES else array


def from_picture(image: Image.Image, shape: tuple[int, int, int]) -> Pixels:
    """A picture of whatever size and mode as ``shape``: upright, transparent parts white, its sides scaled to fit."""
    channels, height, width = shape
    if channels not in MODES:
        raise ValueError(f"shape={shape}: accepted are 1 or 3 channels")
    mode = MODES[channels]
    image = ImageOps.exif_transpose(image)
    if image.mode.startswith("I"):  # 16 bits, which Pillow would not scale but cut off at 255
        image = Image.fromarray((_sixteen_bits(image) / 257).round().astype(np.uint8))
    elif image.mode == "F":
        raise ValueError("pixels are floats of an unknown range: accepted are 8 or 16 bits a channel")
    if image.has_transparency_data:
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image.convert("RGBA"))
    image = image.convert(mode)
    if image.size != (width, height):
        image = image.resize((width, height), Image.Resampling.BILINEAR)
    return np.asarray(image).reshape(height, width, channels).transpose(2, 0, 1)


def _sixteen_bits(image: Image.Image) -> npt.NDArray[Any]:
    """The pixels of a picture of 16 bits; one of 32 bits may be of any range, and must show that it is of this."""
    pixels = np.asarray(image)
    low, high = pixels.min(), pixels.max()
    if image.mode == "I" and not ((low >= 0 and 255 < high <= 65535) or low == high == 0):
        raise ValueError(f"pixels of 32 bits from {low} to {high}: accepted are 8 or 16 bits a channel")
    return pixels


def from_anything(image: Any, shape: tuple[int, int, int] | None) -> Pixels:
    """A picture, tensor or array as ``shape``; without one it keeps its own, in grey or colour."""
    if not isinstance(image, Image.Image):
        values = _as_array(image)
        if values.ndim == 2:
            values = values[None]
        if values.ndim != 3:
            raise ValueError(f"an image of shape {values.shape}: accepted are H x W, C x H x W and H x W x C")
        pixels = as_bytes(channels_first(values))
        if shape is None or pixels.shape == shape:
            return pixels
        if len(pixels) not in MODES:
            raise ValueError(f"an image of shape {pixels.shape}: accepted are {shape}, or 1 or 3 channels to be scaled")
        image = Image.fromarray(pixels[0] if len(pixels) == 1 else np.ascontiguousarray(pixels.transpose(1, 2, 0)))
    if shape is None:
        image = ImageOps.exif_transpose(image)  # before its sides are read
        channels = 1 if image.mode in {"1", "L"} or image.mode.startswith("I") else 3
        shape = (channels, image.height, image.width)
    return from_picture(image, shape)


def _as_array(values: Any) -> npt.NDArray[Any]:
    if not isinstance(values, torch.Tensor):
        return np.asarray(values)
    values = values.detach().cpu()
    return (values.float() if values.is_floating_point() else values).numpy()  # NumPy has not all floats of PyTorch
