"""The controls without learning, against sums made by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect import JPEG, Memory, RawPixels, ResizedPixels, bits_per_item


def test_raw_pixels_are_exact():
    x = torch.arange(256).reshape(1, 1, 16, 16) / 255
    codec = RawPixels((1, 16, 16))
    assert codec.encode(x).tolist() == [list(range(256))]
    assert torch.equal(codec.decode(codec.encode(x)), x)
    assert (codec.variables, codec.categories, codec.storage_bits) == (256, 256, 0)


def test_averaging_is_the_mean_of_each_block():
    rng = np.random.default_rng(0)
    image = rng.random((2, 3, 12, 8))
    codec = ResizedPixels((3, 12, 8), size=(4, 2), bits=8)
    blocks = image.reshape(2, 3, 4, 3, 2, 4).mean((3, 5))
    expected = np.round(blocks.reshape(2, -1) * 255)
    assert np.abs(codec.encode(torch.from_numpy(image)).numpy() - expected).max() <= 1  # float32 at a half


SIDES = st.sampled_from([1, 2, 7, 100, 255, 256])


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 4), SIDES, SIDES)
def test_a_memory_of_images_of_any_size(channels: int, height: int, width: int):
    shape = channels, height, width
    x = torch.randint(0, 256, (3, *shape)) / 255
    small = max(1, height // 3), max(1, width // 3)
    codecs = [RawPixels(shape), ResizedPixels(shape, size=small, bits=3)]
    codecs += [JPEG(shape, bits=8 * 40_000)] if channels in {1, 3} else []
    for codec in codecs:
        memory = Memory(codec, capacity=2, admission="ring")  # the two most recent
        memory.write(x, y=0)
        assert memory.footprint().codes == 2 * bits_per_item(variables=codec.variables, categories=codec.categories)
        held = memory.recollections()
        assert held is not None
        assert torch.equal(held.x, codec.decode(codec.encode(x[held.ids])))
        assert sorted(held.ids.tolist()) == [1, 2]


@given(st.integers(1, 8))
def test_bits_are_levels(bits: int):
    codec = ResizedPixels((1, 4, 4), size=(4, 4), bits=bits)
    levels = torch.arange(2**bits) / (2**bits - 1)
    x = levels.reshape(-1, 1, 1, 1).expand(-1, 1, 4, 4)
    assert codec.categories == 2**bits
    assert torch.equal(codec.encode(x), torch.arange(2**bits)[:, None].expand(-1, 16))
    torch.testing.assert_close(codec.decode(codec.encode(x)), x)


def test_a_flat_image_survives_any_size():
    x = torch.full((1, 1, 28, 28), 1.0)
    for size in ((1, 1), (10, 10), (14, 7), (28, 28)):
        codec = ResizedPixels((1, 28, 28), size=size, bits=1)
        torch.testing.assert_close(codec.decode(codec.encode(x)), x)


@pytest.mark.parametrize(
    ("size", "bits", "message"),
    [
        ((0, 5), 1, r"size=\(0, 5\): accepted are height and width from \(1, 1\) to \(28, 28\)"),
        ((29, 5), 1, "size"),
        ((5, 5), 0, "bits=0"),
        ((5, 5), 9, "bits=9: accepted are 1 to 8"),
    ],
)
def test_it_refuses(size: tuple[int, int], bits: int, message: str):
    with pytest.raises(ValueError, match=message):
        ResizedPixels((1, 28, 28), size=size, bits=bits)
