"""Groups that are one batch: against a model that has weights of its own for each group, and against plain autograd."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import recollect as rc
from recollect.learners.gradients import gradients_of_groups
from recollect.learners.together import Together

SHAPE = (2, 6, 6)
SIZES = [4, 2, 3]


def convolution() -> nn.Sequential:
    layers = [nn.Conv2d(2, 4, 3, stride=2, padding=1, groups=2, bias=False), nn.BatchNorm2d(4), nn.ReLU()]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(36, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))


def literally(model: nn.Sequential, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """A row of gradients for each group: every layer has copies of its weights, and shows each group to one of them."""
    copies = [[parameter.detach().clone().requires_grad_() for _ in SIZES] for parameter in model.parameters()]
    weights = iter(copies)
    for layer in model:
        if isinstance(layer, nn.Conv2d):
            parts = zip(x.split(SIZES), next(weights), strict=True)
            x = torch.cat([F.conv2d(part, w, None, stride=2, padding=1, groups=2) for part, w in parts])
        elif isinstance(layer, nn.Linear):
            parts = zip(x.split(SIZES), next(weights), next(weights), strict=True)
            x = torch.cat([part @ w.T + b for part, w, b in parts])
        elif isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d):
            others = [dim for dim in range(x.ndim) if dim != 1]
            normal = (x - x.mean(others, keepdim=True)) / (x.var(others, unbiased=False, keepdim=True) + 1e-5).sqrt()
            parts = zip(normal.split(SIZES), next(weights), next(weights), strict=True)
            wide = (-1, *[1] * (x.ndim - 2))
            x = torch.cat([part * w.view(wide) + b.view(wide) for part, w, b in parts])
        else:
            x = layer(x)
    losses = zip(x.split(SIZES), y.split(SIZES), strict=True)
    loss = torch.stack([F.cross_entropy(*part) for part in losses]).sum()
    rows = [
        torch.autograd.grad(loss, [each[group] for each in copies], retain_graph=True) for group in range(len(SIZES))
    ]
    return torch.stack([torch.cat([part.flatten() for part in row]) for row in rows])


def examples() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.rand(sum(SIZES), *SHAPE), torch.arange(sum(SIZES)) % 3


def test_parts_are_those_of_weights_of_their_own():
    model, (x, y) = convolution(), examples()
    found = torch.cat(Together(model, [x], y, SIZES).parts().matrices, 1)
    torch.testing.assert_close(found, literally(model, x, y), rtol=1e-4, atol=1e-6)


def unusual() -> nn.Module:
    """Layers in place, a layer twice, a bias that is frozen and statistics that stay."""
    again = nn.Linear(8, 8)
    layers = [nn.Flatten(), nn.Linear(72, 8), nn.ReLU(inplace=True), again, nn.ReLU(inplace=True), again]
    model = nn.Sequential(*layers, nn.BatchNorm1d(8).eval(), nn.Linear(8, 3))
    model[1].bias.requires_grad_(False)
    return model


def resnet() -> nn.Module:
    return rc.models.ResNet18([range(3)], classes=3, channels=2)


SHARES = torch.tensor([1.0, 0.25, 3.0])


@pytest.mark.parametrize("make", [convolution, unusual, resnet])
def test_a_step_is_the_gradient_of_the_weighted_losses_and_parts_add_up_to_that_of_all(make: Callable[[], nn.Module]):
    model, (x, y) = make(), examples()
    inputs = [x, torch.zeros_like(y)] if isinstance(model, rc.models.ResNet18) else [x]
    literal = copy.deepcopy(model)
    found = Together(model, inputs, y, SIZES)
    parts = found.parts().combined(torch.ones(3))
    logits = literal(*inputs)
    losses = zip(logits.split(SIZES), y.split(SIZES), strict=True)
    each = torch.stack([F.cross_entropy(*part) for part in losses])
    trained = [parameter for parameter in literal.parameters() if parameter.requires_grad]
    for ours, theirs in zip(parts, torch.autograd.grad(each.sum(), trained, retain_graph=True), strict=True):
        torch.testing.assert_close(ours, theirs.flatten(), rtol=1e-3, atol=1e-5)
    for ours, theirs in zip(found.combined(SHARES), torch.autograd.grad(each @ SHARES, trained), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-5)
    for ours, theirs in zip(model.buffers(), literal.buffers(), strict=True):  # one pass, one update of statistics
        torch.testing.assert_close(ours, theirs)


def test_a_step_does_not_change_the_size_of_weights_that_are_normalised():
    """What batch normalisation makes of weights does not depend on their size, so that a step is square to them.

    A sum of parts that are weighed differently is not, which drives a model with many tasks apart.
    """
    torch.manual_seed(0)
    model, (x, y) = convolution(), examples()
    found = Together(model, [x], y, SIZES)
    weights = next(model.parameters()).detach().flatten()
    sums = (found.parts().combined(SHARES)[0], found.combined(SHARES)[0])
    of_parts, of_step = (F.cosine_similarity(way.flatten(), weights, dim=0).abs() for way in sums)
    assert of_step < 1e-3
    assert of_parts > 1e-2


def test_without_batch_normalisation_parts_are_gradients_of_groups():
    model, (x, y) = nn.Sequential(nn.Conv2d(2, 3, 3), nn.Flatten(), nn.Linear(48, 3)), examples()
    together, alone = (of(model, [x], y, SIZES) for of in (Together, gradients_of_groups))
    torch.testing.assert_close(together.gram(), alone.gram())
    for ours, theirs in zip(together.combined(SHARES), alone.combined(SHARES), strict=True):
        torch.testing.assert_close(ours.flatten(), theirs)


def with_a_layer_norm() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.LayerNorm(72), nn.Linear(72, 3))


def with_a_border() -> nn.Module:
    return nn.Sequential(nn.Conv2d(2, 3, 3, padding=1, padding_mode="circular"), nn.Flatten(), nn.Linear(108, 3))


def with_normed_weights() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.utils.parametrizations.weight_norm(nn.Linear(72, 3)))


def with_a_hook() -> nn.Module:
    model = nn.Sequential(nn.Flatten(), nn.Linear(72, 3))
    model[1].register_forward_hook(lambda *given: 2 * given[2])
    return model


@pytest.mark.parametrize(
    ("make", "name"),
    [(with_a_layer_norm, "1.weight"), (with_a_border, "0.weight"), (with_normed_weights, "1."), (with_a_hook, "1.")],
)
def test_layers_whose_parts_are_not_known_are_named(make: Callable[[], nn.Module], name: str):
    module = rc.RecollectionModule(rc.Memory(rc.RawPixels(SHAPE), capacity=5, admission="ring"))
    with pytest.raises(TypeError, match=rf"together=True and {name}.* accepted are"):
        rc.GEM(make(), module, together=True)
    rc.GEM(make(), module)


def test_gem_normalises_all_groups_as_one_if_told_to():
    """A step without a violation is the gradient of the new examples, in whose statistics memories have a share."""
    x, y = examples()
    moved = []
    for together in (True, False):
        torch.manual_seed(0)
        memory = rc.Memory(rc.RawPixels(SHAPE), capacity=8, admission="ring", classes=3, tasks=2)
        learner = rc.GEM(convolution(), rc.RecollectionModule(memory), together=together, memory_strength=0.0)
        learner.observe(x[:4], y[:4], 0)
        learner.observe(x[4:], y[4:], 1)
        batches = next(number for name, number in learner.model.named_buffers() if "batches" in name)
        assert batches == (2 if together else 3)
        moved.append(torch.cat([parameter.flatten() for parameter in learner.model.parameters()]))
    assert not torch.equal(*moved)
