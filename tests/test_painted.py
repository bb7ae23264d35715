"""Codecs with codes of a fixed meaning, against loops over pixels and the cosine transform's formula."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import recollect as rc


def digits(n: int = 40, seed: int = 0) -> torch.Tensor:
    """Crosses of any place and width: something to learn from."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.zeros(n, 1, 20, 20)
    for image in x:
        row, column, width = (
            int(torch.randint(low, high, (), generator=generator)) for low, high in [(2, 15)] * 2 + [(1, 4)]
        )
        image[0, row : row + width], image[0, :, column : column + width] = 1, 1
    return x


def test_a_sketch_is_what_a_loop_over_its_pixels_gives():
    x = torch.rand(3, 2, 12, 8, generator=torch.Generator().manual_seed(0))
    codes = rc.Sketch((2, 12, 8), size=(4, 4), threshold=0.4).encode(x)
    small = x.numpy().reshape(3, 2, 4, 3, 4, 2).mean((3, 5))
    pixels = [(channel, row, column) for channel in range(2) for row in range(4) for column in range(4)]
    assert codes.tolist() == [[int(image[pixel] > 0.4) for pixel in pixels] for image in small]


def test_without_a_painter_a_sketch_is_resized_pixels_of_one_bit():
    x = torch.rand(5, 3, 28, 30, generator=torch.Generator().manual_seed(1))
    sketch = rc.Sketch((3, 28, 30), size=(8, 6), threshold=0.5, filters=0)
    pixels = rc.ResizedPixels((3, 28, 30), size=(8, 6), bits=1)
    torch.testing.assert_close(sketch.decode(sketch.encode(x)), pixels.decode(pixels.encode(x)))
    assert (sketch.parameter_count, sketch.storage_bits) == (0, 0)


def test_frequencies_are_those_of_the_formula():
    x = torch.rand(2, 1, 6, 5, generator=torch.Generator().manual_seed(2))
    step, zero = 0.01, 0.6
    codec = rc.Cosines((1, 6, 5), size=(3, 2), step=step, levels=255, filters=0)
    expected = np.empty((2, 3, 2))
    for n, u, v in np.ndindex(*expected.shape):
        norm = math.sqrt((2 - (u == 0)) / 6 * (2 - (v == 0)) / 5)
        wave = [
            [math.cos(math.pi * (2 * i + 1) * u / 12) * math.cos(math.pi * (2 * j + 1) * v / 10) for j in range(5)]
            for i in range(6)
        ]
        expected[n, u, v] = norm * ((x[n, 0].numpy() - 0.5) * wave).sum() / step
    expected[:, 0, 0] *= step / (0.5 * math.sqrt(6 * 5) / 127)  # the mean's step is as large as it takes to reach white
    whole = np.sign(expected) * np.floor(np.abs(expected) + 1 - zero)
    assert np.abs(codec.encode(x).numpy() - 127 - np.clip(whole, -127, 127).reshape(2, -1)).max() <= 1  # at a border
    assert (codec.encode(x).numpy() - 127 == np.clip(whole, -127, 127).reshape(2, -1)).mean() > 0.9


@settings(max_examples=25, deadline=None)
@given(st.sampled_from([1, 2, 3, 4]), st.integers(1, 20), st.integers(1, 20), st.floats(0.002, 0.1))
def test_all_frequencies_in_small_steps_are_the_image(channels: int, height: int, width: int, step: float):
    x = torch.rand(2, channels, height, width, generator=torch.Generator().manual_seed(3))
    codec = rc.Cosines((channels, height, width), size=(height, width), step=step, levels=255, filters=0)
    error = codec.decode(codec.encode(x)) - x
    within = 255 // 2 * step >= math.sqrt(height * width)  # no value is cut
    if channels != 3 and within:
        # An error is at most 0.6 of a step in each frequency, and the transform keeps lengths.
        assert float(error.square().sum((2, 3)).max()) <= height * width * (0.61 * step) ** 2
    assert codec.variables == (
        channels * height * width if channels != 3 else height * width + 2 * ((height + 1) // 2) * ((width + 1) // 2)
    )


@settings(max_examples=25, deadline=None)
@given(st.sampled_from([1, 3]), st.floats(0, 1), st.floats(0.05, 2), st.sampled_from([7, 31]))
def test_the_brightness_of_an_image_is_never_cut(channels: int, brightness: float, step: float, levels: int):
    x = torch.full((1, channels, 16, 12), brightness)
    codec = rc.Cosines(x.shape[1:], size=(4, 4), step=step, levels=levels, filters=0)
    largest = max(step / math.sqrt(16 * 12), 0.5 / (levels // 2))
    assert float((codec.decode(codec.encode(x)) - x).abs().max()) <= 0.61 * largest


def test_a_grey_photograph_has_no_differences_of_colours():
    grey = torch.rand(4, 1, 16, 16, generator=torch.Generator().manual_seed(4)).expand(-1, 3, -1, -1)
    codec = rc.Cosines((3, 16, 16), size=(8, 8), step=0.5, filters=0)
    codes = codec.encode(grey)
    assert bool((codes[:, 64:] == codec.categories // 2).all())
    decoded = codec.decode(codes)
    torch.testing.assert_close(decoded[:, :1].expand_as(decoded), decoded, atol=1e-3, rtol=0)


MADE = {
    "sketch": lambda **more: rc.Sketch((1, 20, 20), size=(6, 6), **more),
    "cosines": lambda **more: rc.Cosines((1, 20, 20), size=(6, 6), step=1.5, **more),
}


@pytest.mark.parametrize("name", MADE)
def test_the_painter_learns_and_codes_keep_their_meaning(name: str):
    codec, plain = MADE[name](filters=16), MADE[name](filters=0)
    x, unseen = digits(), digits(seed=1)
    before = codec.encode(unseen)
    assert torch.equal(before, plain.encode(unseen))
    torch.testing.assert_close(codec.decode(before), plain.decode(before).clamp(0.02, 0.98))
    optimiser = torch.optim.Adam(codec.parameters(), lr=5e-3)
    for _ in range(150):
        optimiser.zero_grad()
        codec.loss(x).backward()
        optimiser.step()
    assert torch.equal(codec.encode(unseen), before)
    errors = [float((each.decode(before) - unseen).abs().mean()) for each in (codec, plain)]
    assert errors[0] < 0.9 * errors[1]


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 4), st.integers(2, 40), st.integers(2, 40))
def test_images_of_any_size(channels: int, height: int, width: int):
    shape = channels, height, width
    x = torch.rand(3, *shape, generator=torch.Generator().manual_seed(5))
    for codec in (rc.Sketch(shape, size=(2, 2), filters=3), rc.Cosines(shape, size=(2, 2), step=1.0, filters=3)):
        assert codec.decode(codec.encode(x)).shape == x.shape
        codec.loss(x).backward()
        assert codec.storage_bits == 32 * codec.parameter_count


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: rc.Sketch((1, 8, 8), size=(10, 4)), r"size=\(10, 4\): accepted are .* to \(8, 8\)"),
        (lambda: rc.Sketch((1, 8, 8), size=(4, 4), threshold=1.0), "threshold=1.0: accepted"),
        (lambda: rc.Sketch((1, 8, 8), size=(4, 4), filters=-1), "filters=-1: accepted"),
        (lambda: rc.Cosines((1, 8, 8), size=(9, 4), step=1.0), r"size=\(9, 4\): accepted are .* to \(8, 8\)"),
        (lambda: rc.Cosines((1, 8, 8), size=(4, 4), step=0), "step=0: accepted"),
        (lambda: rc.Cosines((1, 8, 8), size=(4, 4), step=1, levels=4), "levels=4: accepted are odd"),
    ],
)
def test_what_is_not_accepted(make: Callable[[], rc.Codec], message: str):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("colour", [(1.0, 0, 0), (0, 1.0, 0), (0, 0, 1.0), (1.0, 1.0, 0), (0.2, 0.7, 0.4)])
def test_each_colour_comes_back_as_it_was(colour: tuple[float, float, float]):
    codec = rc.Cosines((3, 16, 16), size=(8, 8), step=0.05, levels=255, filters=0)
    x = torch.tensor(colour)[None, :, None, None].expand(1, 3, 16, 16)
    torch.testing.assert_close(codec.decode(codec.encode(x)), x, atol=0.03, rtol=0)


def test_differences_of_colours_have_coarser_steps_than_brightness():
    """A wave of one frequency, of grey or of blue, at sizes that grow: of blue a half goes into a difference."""
    codec = rc.Cosines((3, 16, 16), size=(8, 8), step=0.8, levels=255, filters=0)
    wave = torch.cos(torch.pi / 16 * 3 * (torch.arange(16) + 0.5)).expand(1, 1, 16, 16)
    seen = {}
    for name, colour in {"grey": (1.0, 1.0, 1.0), "blue": (0.0, 0.0, 1.0)}.items():
        sizes = torch.linspace(0.001, 0.5, 500)
        flat = codec.encode(torch.full((1, 3, 16, 16), 0.5))
        changed = [
            float(size)
            for size in sizes
            if not torch.equal(
                codec.encode((0.5 + size * wave * torch.tensor(colour)[:, None, None]).clamp(0, 1)), flat
            )
        ]
        seen[name] = changed[0]
    assert seen["blue"] == pytest.approx(2 * 2 * seen["grey"], rel=0.1)
