"""JPEG in slots, against the files that Pillow writes."""

from __future__ import annotations

import io

import numpy as np
import pytest
import torch
from PIL import Image

from recollect import JPEG
from recollect.data import mnist

DIGITS = mnist("test").images[:20].float() / 255


def written(image: torch.Tensor, quality: int) -> tuple[int, torch.Tensor]:
    """Size of the whole file, and what it decodes to."""
    pixels = (image * 255).round().byte().permute(1, 2, 0).numpy()
    buffer = io.BytesIO()
    Image.fromarray(pixels.squeeze(-1) if pixels.shape[2] == 1 else pixels).save(
        buffer, "JPEG", quality=quality, subsampling="4:2:0"
    )
    decoded = np.array(Image.open(buffer)).reshape(pixels.shape)
    return len(buffer.getvalue()), torch.from_numpy(decoded).permute(2, 0, 1) / 255


@pytest.mark.parametrize("x", [DIGITS, torch.rand(4, 3, 32, 32)], ids=["grey", "colour"])
def test_at_a_quality_it_decodes_to_what_the_whole_file_decodes_to(x: torch.Tensor):
    codec = JPEG.at_quality(x, quality=30)
    codes = codec.encode(x)
    assert codes[:, 0].tolist() == [30] * len(x)
    whole = [written(image, 30) for image in x]
    assert torch.equal(codec.decode(codes), torch.stack([decoded for _, decoded in whole]))
    # Header, data and end marker are the file: the slot holds the data of the largest, and its quality.
    largest = max(size for size, _ in whole)
    assert codec.variables - 1 == largest - codec.storage_bits // 8 - 2
    assert codec.data_bits(x).tolist() == [8 * (size - 2) - codec.storage_bits for size, _ in whole]


def test_every_image_has_the_best_quality_that_fits_its_slot():
    codec = JPEG((1, 28, 28), bits=1600)
    header = codec.storage_bits // 8
    for code, image in zip(codec.encode(DIGITS), DIGITS, strict=True):
        quality = int(code[0])
        assert written(image, quality)[0] - header - 2 <= codec.variables - 1
        assert quality == 100 or written(image, quality + 1)[0] - header - 2 > codec.variables - 1


def test_more_bits_are_closer_and_too_few_still_decode():
    errors = [
        float((codec.decode(codec.encode(DIGITS)) - DIGITS).abs().mean())
        for codec in (JPEG((1, 28, 28), bits=bits) for bits in (16, 300, 800, 2400))
    ]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.01


def test_damaged_codes_are_refused():
    codec = JPEG((1, 28, 28), bits=400)
    codes = torch.full((1, 50), 50)
    codes[0, 10:12] = torch.tensor([0xFF, 0xC0])  # a second start of frame amid the data
    with pytest.raises(ValueError, match="code is not JPEG data"):
        codec.decode(codes)
    codes[0, 0] = 101
    with pytest.raises(ValueError, match="quality 101: accepted are 1 to 100"):
        codec.decode(codes)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shape": (2, 28, 28)}, "1 or 3 channels"),
        ({"bits": 15}, "bits=15: accepted is a whole number of at least 16"),
        ({"quality": 0}, "quality=0"),
        ({"quality": 101}, "quality=101"),
    ],
)
def test_it_refuses(arguments: dict[str, object], message: str):
    with pytest.raises(ValueError, match=message):
        JPEG(**({"shape": (1, 28, 28), "bits": 400} | arguments))  # pyright: ignore[reportArgumentType]
