"""Predictive models: their sizes, and weights that a seed fixes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from recollect.models import MLP, LeNet


def weights(model: nn.Module) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def test_lenet_has_the_sizes_that_were_published():
    """C1, C3 (here with all of its connections), C5, F6 and the output, each with biases."""
    layers = [25 * 6 + 6, 25 * 6 * 16 + 16, 25 * 16 * 120 + 120, 120 * 84 + 84, 84 * 10 + 10]
    assert len(weights(LeNet())) == sum(layers)
    maps = [module for module in LeNet() if isinstance(module, nn.Conv2d | nn.MaxPool2d)]
    x = torch.rand(2, 1, 28, 28)
    sides = [(x := layer(x)).shape[-1] for layer in maps]
    assert sides == [28, 14, 10, 5]
    assert LeNet(classes=7)(torch.rand(2, 1, 28, 28)).shape == (2, 7)


@pytest.mark.parametrize("model", [LeNet, MLP])
def test_a_seed_fixes_the_weights_and_leaves_the_global_generator_alone(model: Callable[..., nn.Module]):
    first = weights(model(seed=3))
    torch.manual_seed(2)
    state = torch.get_rng_state()
    assert torch.equal(weights(model(seed=3)), first)
    assert torch.equal(torch.get_rng_state(), state)
    assert not torch.equal(weights(model(seed=4)), first)
