"""The continuous autoencoder, against the paper's table of it and its own floats."""

from __future__ import annotations

import struct

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import recollect as rc
from recollect.packing import Scheme

# The paper's h, and the compression it prints for it.
PAPER = {1: 49, 2: 24.5, 3: 16.33333333, 5: 9.8, 7: 7, 20: 2.45}
CODEC = rc.ContinuousAutoencoder((1, 8, 8), latents=32)


@pytest.mark.parametrize(("filters", "compression"), PAPER.items())
def test_compression_is_that_of_the_paper_with_four_floats_a_filter(filters: int, compression: float):
    codec = rc.ContinuousAutoencoder((1, 28, 28), latents=4 * filters)
    bits = rc.bits_per_item(variables=codec.variables, categories=codec.categories)
    assert bits == 32 * codec.latents
    assert 28 * 28 * 8 / bits == pytest.approx(compression)
    assert codec.filters == filters
    assert codec.parameter_count == 100 * filters**2 + 50 * filters + 5 * filters + 1
    assert codec.storage_bits == 32 * codec.parameter_count


def test_layers_are_those_of_the_discrete_autoencoder():
    continuous = rc.ContinuousAutoencoder((3, 32, 24), latents=24, normalised=True)
    discrete = rc.DiscreteAutoencoder((3, 32, 24), 12, 2, normalised=True)
    shapes = [{name: tensor.shape for name, tensor in codec.named_parameters()} for codec in (continuous, discrete)]
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize("scheme", ["radix", "binary"])
def test_a_memory_gives_back_the_very_same_floats(scheme: Scheme):
    codec = rc.ContinuousAutoencoder((1, 12, 12), latents=8)
    x = torch.rand(30, 1, 12, 12)
    memory = rc.Memory(codec, capacity=30, scheme=scheme)
    memory.write(x, 0)
    assert memory.bits_per_item == 32 * 8
    batch = memory.sample(30, replace=False)
    assert torch.equal(batch.x, codec.decode_latents(codec.encode_latents(x[batch.ids])))


def test_codes_are_the_bytes_of_the_floats_lowest_first():
    codec = rc.ContinuousAutoencoder((1, 12, 12), latents=4)
    x = torch.rand(2, 1, 12, 12)
    for code, latents in zip(codec.encode(x).tolist(), codec.encode_latents(x).tolist(), strict=True):
        assert bytes(code) == struct.pack("<4f", *latents)


@given(st.lists(st.floats(-(2.0**100), 2.0**100, width=32), min_size=32, max_size=32))
def test_any_numbers_decode_to_an_image(latents: list[float]):
    image = CODEC.decode(torch.tensor([[*struct.pack("<32f", *latents)]]))
    assert 0 <= float(image.min()) <= float(image.max()) <= 1


@pytest.mark.parametrize("latent", [float("nan"), float("inf"), 3e38])
def test_what_is_no_number_or_grows_beyond_numbers_is_refused(latent: float):
    with pytest.raises(ValueError, match="latents decode to NaN: accepted are finite numbers"):
        CODEC.decode(torch.tensor([[*struct.pack("<32f", *[latent] * 32)]]))


def test_it_learns_to_tell_two_images_apart():
    x = torch.zeros(2, 1, 8, 8)
    x[0, :, :4], x[1, :, 4:] = 1, 1  # their mean is grey, at a distance of 0.5 from both
    codec = rc.ContinuousAutoencoder((1, 8, 8), latents=16)
    optimiser = torch.optim.Adam(codec.parameters(), lr=1e-2)
    for _ in range(100):
        optimiser.zero_grad()
        codec.loss(x).backward()
        optimiser.step()
    assert float((codec.decode(codec.encode(x)) - x).abs().mean()) < 0.1


def test_the_loss_is_the_binary_cross_entropy_of_the_reconstruction():
    codec = rc.ContinuousAutoencoder((1, 8, 8), latents=16)
    x = torch.rand(3, 1, 8, 8)
    p = codec.decode(codec.encode(x)).double()
    expected = -(x * p.log() + (1 - x) * (1 - p).log()).mean()
    assert float(codec.loss(x).detach()) == pytest.approx(float(expected), rel=1e-5)


@pytest.mark.parametrize(
    ("latents", "message"), [(0, "latents=0"), (6, "latents=6: accepted is a multiple of 4"), (-4, "latents=-4")]
)
def test_it_refuses(latents: int, message: str):
    with pytest.raises(ValueError, match=message):
        rc.ContinuousAutoencoder((1, 28, 28), latents)


def test_it_refuses_latents_of_another_shape():
    with pytest.raises(ValueError, match=r"latents have shape \(2, 3\): accepted is n x 4"):
        rc.ContinuousAutoencoder((1, 8, 8), 4).decode_latents(torch.zeros(2, 3))
