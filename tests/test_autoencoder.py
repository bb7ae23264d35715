"""The paper's autoencoder, against its formula and its two equations."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from torch import nn

from recollect import DiscreteAutoencoder, plan
from recollect.codecs.convolution import Convolution
from recollect.models import MLP
from recollect.seeding import derived

# Every code shape that the paper names, with the images it is used for.
MNIST_SHAPES = (
    "104x4 139x8 168x2 62x2 38x2 6x20 10x20 6x16 12x10 10x14 24x3 6x2 40x3 20x2 8x6 12x6 30x2 24x6 4x37 8x15 48x10 "
    "209x8 12x37 313x4 392x3 50x18 108x3 208x2 68x5"
)
OMNIGLOT_SHAPES = "62x2 312x2 32x2 50x2 134x2"
CIFAR_SHAPES = "48x2 98x2 244x2 294x2 620x3 76x2"
NAMED = [((1, 28, 28), code) for code in (MNIST_SHAPES + " " + OMNIGLOT_SHAPES).split()]
NAMED += [((3, 32, 32), code) for code in CIFAR_SHAPES.split()]


@pytest.mark.parametrize(("shape", "code"), NAMED)
def test_parameters_are_those_of_the_formula(shape: tuple[int, int, int], code: str):
    variables, categories = map(int, code.split("x"))
    with torch.device("meta"):  # the largest have millions of parameters, and only their number matters here
        codec = DiscreteAutoencoder(shape, variables, categories)
    filters, channels = variables * categories // 4, shape[0]
    assert codec.parameter_count == 100 * filters**2 + 50 * channels * filters + 5 * filters + channels
    assert codec.storage_bits == 32 * codec.parameter_count
    assert codec.half().storage_bits == 16 * codec.parameter_count


def test_codecs_weigh_what_was_worked_out_from_the_paper():
    weights = {(104, 4): 5_547, (139, 8): 39_508}
    for (variables, categories), images in weights.items():
        assert DiscreteAutoencoder((1, 28, 28), variables, categories).storage_bits // 6_272 == images


SIDES = st.one_of(st.integers(2, 64), st.sampled_from([65, 100, 127, 128, 129, 224, 255, 256]))


@settings(max_examples=150)
@given(SIDES, SIDES, st.integers(1, 4), st.integers(1, 30).map(lambda n: 4 * n), st.integers(2, 9))
def test_a_plan_counts_the_parameters_that_an_autoencoder_of_any_size_has(
    height: int, width: int, channels: int, variables: int, categories: int
):
    shape = channels, height, width
    with torch.device("meta"):
        codec = DiscreteAutoencoder(shape, variables, categories)
    planned = plan(shape=shape, variables=variables, categories=categories, items=7, count_codec=True)
    assert planned.parameter_count == sum(weights.numel() for weights in codec.parameters()) == codec.parameter_count
    assert planned.bill.codec == codec.storage_bits
    if max(height, width) <= 64:
        filters = variables * categories // 4
        assert codec.parameter_count == 100 * filters**2 + 50 * channels * filters + 5 * filters + channels


def test_larger_images_have_more_layers_with_fewer_filters_where_maps_are_large():
    filters = {
        side: [layer.weight.shape[3] for layer in codec.encoder if isinstance(layer, Convolution)]
        for side in (2, 28, 64, 65, 128, 129, 256)
        for codec in [DiscreteAutoencoder((1, side, 20), 40, 4)]
    }
    three, four, five = [40] * 3, [20, *[40] * 3], [16, 20, *[40] * 3]  # no layer has less than 16, if others have more
    assert filters == {2: three, 28: three, 64: three, 65: four, 128: four, 129: five, 256: five}


@pytest.mark.parametrize("normalised", [False, True])
def test_an_autoencoder_of_large_images_learns(normalised: bool):
    codec = DiscreteAutoencoder((1, 128, 70), 8, 4, normalised=normalised)
    x = torch.zeros(4, 1, 128, 70)
    for image, (down, right) in enumerate([(0, 0), (0, 35), (64, 0), (64, 35)]):
        x[image, 0, down : down + 64, right : right + 35] = 1
    optimiser = torch.optim.Adam(codec.parameters(), lr=1e-2)
    losses = []
    for _ in range(60):
        optimiser.zero_grad()
        loss = codec.loss(x)
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2


@settings(max_examples=60)
@given(SIDES, SIDES, st.integers(1, 4), st.booleans())
def test_every_size_goes_in_and_comes_out(height: int, width: int, channels: int, normalised: bool):
    codec = DiscreteAutoencoder((channels, height, width), 6, 2, normalised=normalised)
    x = torch.rand(2, channels, height, width)
    codes = codec.encode(x)
    assert codes.shape == (2, 6)
    assert codes.dtype == torch.int64
    assert int(codes.max()) < 2
    decoded = codec.decode(codes)
    assert decoded.shape == x.shape
    assert 0 <= float(decoded.min()) <= float(decoded.max()) <= 1


class Fixed(nn.Module):
    """Gives a parameter in place of an encoder's output."""

    def __init__(self, logits: torch.Tensor) -> None:
        super().__init__()
        self.logits = nn.Parameter(logits)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.logits.expand(len(x), -1, -1, -1)


def test_codes_are_drawn_with_the_probabilities_of_the_encoder():
    """Equation 1: the Gumbel-max trick draws from the softmax of the logits."""
    codec = DiscreteAutoencoder((1, 8, 8), 4, 3)
    logits = torch.randn(1, 3, 2, 2)
    codec.encoder = nn.Sequential(Fixed(logits))
    drawn = codec.encode(torch.zeros(20_000, 1, 8, 8)).numpy()
    by_variable = logits[0].permute(1, 2, 0).reshape(4, 3).double().softmax(-1).numpy()
    for variable in range(4):
        counts = np.bincount(drawn[:, variable], minlength=3)
        assert chisquare(counts, by_variable[variable] * len(drawn)).pvalue > 1e-3


@pytest.mark.parametrize("tau", [1.0, 0.5])
def test_the_gradient_is_that_of_the_gumbel_softmax(tau: float):
    """Equation 2: with y = softmax((g + log p) / tau), d(w y) / d(log p_i) = y_i (w_i - w y) / tau."""
    codec = DiscreteAutoencoder((1, 8, 8), 4, 3, tau=tau, seed=5)
    fixed = Fixed(torch.randn(1, 3, 2, 2))
    weights = torch.randn(1, 3, 2, 2)
    codec.encoder, codec.decoder = nn.Sequential(fixed), nn.Sequential(Weighted(weights))
    value = codec(torch.zeros(1, 1, 8, 8))

    uniform = torch.rand((1, 4, 3), generator=torch.Generator().manual_seed(derived(5, "Gumbel noise")))
    scores = fixed.logits.detach().permute(0, 2, 3, 1).reshape(4, 3) - torch.log(-torch.log(uniform[0]))
    w = weights.permute(0, 2, 3, 1).reshape(4, 3)
    assert float(value.detach()) == pytest.approx(float(w[range(4), scores.argmax(-1)].sum()), rel=1e-5)

    value.backward()
    y = (scores / tau).softmax(-1)
    expected = y * (w - (w * y).sum(-1, keepdim=True)) / tau
    assert fixed.logits.grad is not None
    torch.testing.assert_close(fixed.logits.grad.permute(0, 2, 3, 1).reshape(4, 3), expected)


class Weighted(nn.Module):
    """Gives a weighted sum in place of a decoder's picture."""

    def __init__(self, weights: torch.Tensor) -> None:
        super().__init__()
        self.weights = weights

    def forward(self, code: torch.Tensor) -> torch.Tensor:
        return (code * self.weights).sum()


def test_encoding_is_stochastic_or_deterministic_as_asked():
    x = torch.rand(30, 1, 28, 28)
    codec = DiscreteAutoencoder((1, 28, 28), 38, 2)
    assert not torch.equal(codec.encode(x), codec.encode(x))
    assert torch.equal(codec.encode(x, stochastic=False), codec.encode(x, stochastic=False))
    plain = DiscreteAutoencoder((1, 28, 28), 38, 2, stochastic=False)
    assert torch.equal(plain.encode(x), codec.encode(x, stochastic=False))  # same seed, same weights


def test_one_seed_draws_different_numbers_for_different_purposes():
    codec, model = DiscreteAutoencoder((1, 28, 28), 104, 4, seed=3), MLP(seed=3)
    first, second = (next(iter(module.parameters())).detach().flatten()[:2000] for module in (codec, model))
    uniform = torch.rand(2000, generator=codec._generator)
    for one, other in ((first, second), (first, uniform), (second, uniform)):
        assert abs(float(torch.corrcoef(torch.stack([one, other]))[0, 1])) < 0.1


def test_building_leaves_the_generators_of_other_devices_alone(monkeypatch: pytest.MonkeyPatch):
    seeds: list[int] = []
    monkeypatch.setattr(torch.cuda, "manual_seed_all", seeds.append)
    DiscreteAutoencoder((1, 28, 28), 8, 2)
    assert seeds == []


def test_a_seed_fixes_weights_and_draws_whatever_the_global_generator_does():
    x = torch.rand(5, 1, 28, 28)
    torch.manual_seed(1)
    first = DiscreteAutoencoder((1, 28, 28), 38, 2, seed=3)
    codes = first.encode(x)
    torch.manual_seed(2)
    state = torch.get_rng_state()
    second = DiscreteAutoencoder((1, 28, 28), 38, 2, seed=3)
    assert torch.equal(second.encode(x), codes)
    assert torch.equal(torch.get_rng_state(), state)
    assert not torch.equal(DiscreteAutoencoder((1, 28, 28), 38, 2, seed=4).encode(x), codes)


@pytest.mark.parametrize("changes", [{}, {"stochastic": False, "normalised": True}])
def test_it_learns_to_tell_two_images_apart(changes: dict[str, bool]):
    x = torch.zeros(2, 1, 8, 8)
    x[0, :, :4], x[1, :, 4:] = 1, 1  # their mean is grey, at a distance of 0.5 from both
    codec = DiscreteAutoencoder((1, 8, 8), 16, 2, **changes)
    optimiser = torch.optim.Adam(codec.parameters(), lr=3e-3)
    for _ in range(300):
        optimiser.zero_grad()
        codec.loss(x).backward()
        optimiser.step()
    assert float((codec.decode(codec.encode(x)) - x).abs().mean()) < 0.1


def test_the_loss_is_the_binary_cross_entropy_of_the_reconstruction():
    codec = DiscreteAutoencoder((1, 8, 8), 16, 2, stochastic=False)
    x = torch.rand(3, 1, 8, 8)
    p = codec.decode(codec.encode(x)).double()
    expected = -(x * p.log() + (1 - x) * (1 - p).log()).mean()
    assert float(codec.loss(x).detach()) == pytest.approx(float(expected), rel=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shape": (1, 1, 28)}, "height and width from 2 to 256"),
        ({"shape": (1, 28, 257)}, "height and width from 2 to 256"),
        ({"shape": (1, 28)}, r"shape=\(1, 28\)"),
        ({"variables": 7, "categories": 3}, "multiple of 4"),
        ({"categories": 1}, "categories=1"),
        ({"tau": 0.0}, "tau=0.0: accepted is a number above 0"),
    ],
)
def test_it_refuses(arguments: dict[str, object], message: str):
    accepted = {"shape": (1, 28, 28), "variables": 8, "categories": 2}
    with pytest.raises(ValueError, match=message):
        DiscreteAutoencoder(**(accepted | arguments))  # pyright: ignore[reportArgumentType]
