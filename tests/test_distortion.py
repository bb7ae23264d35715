"""Distortions, against every distance computed."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import recollect as rc
from recollect.data import mnist
from recollect.distillation import distortion, nearest_neighbour_distortion, reconstruction_distortion


def slow(samples: torch.Tensor, training: torch.Tensor) -> torch.Tensor:
    return torch.stack([(training - sample).abs().flatten(1).mean(1).min() for sample in samples])


@given(st.integers(0, 2**32), st.integers(1, 30), st.integers(1, 60), st.floats(0.1, 30))
def test_the_nearest_neighbour_is_the_nearest_of_all(seed: int, samples: int, training: int, contrast: float):
    generator = torch.Generator().manual_seed(seed)
    # From all grey to all black and white, which makes the bound loose or tight.
    a, b = (
        (0.5 + contrast * torch.randn(n, 2, 5, 3, generator=generator)).clamp(0, 1).float() for n in (samples, training)
    )
    torch.testing.assert_close(distortion.nearest_neighbour_distances(a, b), slow(a, b))


def test_it_is_the_nearest_also_in_blocks(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(distortion, "BLOCK", 7 * 500)
    monkeypatch.setattr(distortion, "PAIRS", 10)
    monkeypatch.setattr(distortion, "LIKELY", 1)
    training, test = (mnist(split).images[:500].float() / 255 for split in ("train", "test"))
    codec = rc.ResizedPixels((1, 28, 28), size=(7, 7), bits=2)
    blurred = codec.decode(codec.encode(test[:30]))
    expected = slow(blurred, training)
    torch.testing.assert_close(distortion.nearest_neighbour_distances(blurred, training), expected)
    assert nearest_neighbour_distortion(blurred, training) == pytest.approx(float(expected.mean()))


def test_few_distances_of_digits_are_computed(monkeypatch: pytest.MonkeyPatch):
    training, test = (mnist(split).images[:2000].float() / 255 for split in ("train", "test"))
    lower, computed = distortion._lower, []

    def counted(*arguments: torch.Tensor) -> None:
        computed.append(len(arguments[-1]))
        lower(*arguments)

    monkeypatch.setattr(distortion, "_lower", counted)
    nearest_neighbour_distortion(test[:50], training)
    assert sum(computed) < 0.05 * 50 * 2000


def test_a_training_image_has_no_distortion_and_its_negative_has():
    training = (torch.rand(40, 1, 6, 6, generator=torch.Generator().manual_seed(0)) > 0.9).float()
    assert nearest_neighbour_distortion(training, training) == 0
    assert nearest_neighbour_distortion(1 - training, training) > 0.5


def test_reconstruction_distortion_is_the_mean_absolute_error():
    x = torch.rand(1203, 1, 8, 8)
    codec = rc.ResizedPixels((1, 8, 8), size=(4, 4), bits=2)
    expected = (codec.decode(codec.encode(x)) - x).abs().mean()
    assert reconstruction_distortion(codec, x) == pytest.approx(float(expected), rel=1e-5)


@pytest.mark.parametrize("wrong", [torch.rand(3, 1, 8, 9), torch.rand(0, 1, 8, 8), 2 * torch.ones(3, 1, 8, 8)])
def test_what_is_no_image_of_the_same_shape_is_refused(wrong: torch.Tensor):
    right = torch.rand(3, 1, 8, 8)
    with pytest.raises(ValueError, match="accepted"):
        nearest_neighbour_distortion(right, wrong)
    with pytest.raises(ValueError, match="accepted"):
        nearest_neighbour_distortion(wrong, right)
    with pytest.raises(ValueError, match="accepted"):
        reconstruction_distortion(rc.RawPixels((1, 8, 8)), wrong)
