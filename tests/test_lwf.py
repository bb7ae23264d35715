"""LwF: its steps against autograd by hand, with one head and with outputs masked to the task, and its bill."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import recollect as rc
from recollect.learners.last_layer import look
from recollect.seeding import initial_weights

SHAPE = (1, 4, 4)
T = 2


class Masked(nn.Module):
    """Classes 0 and 1 are task 0, 2 and 3 task 1, 4 and 5 task 2; with running statistics."""

    def __init__(self) -> None:
        super().__init__()
        self.outputs = nn.Linear(8, 6)  # defined first, run last
        self.inner = nn.Sequential(nn.Flatten(), nn.Linear(16, 8), nn.BatchNorm1d(8), nn.ReLU())

    def forward(self, x: torch.Tensor, task: torch.Tensor) -> torch.Tensor:
        logits = self.outputs(self.inner(x))
        return logits.masked_fill(torch.arange(6) // 2 != task[:, None], -torch.inf)


def batch(seed: int, classes: list[int], size: int = 6) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand(size, *SHAPE, generator=generator)
    return x, torch.tensor(classes)[torch.arange(size) % len(classes)]


def softened(logits: torch.Tensor) -> torch.Tensor:
    """The published y' = y^(1/T) / Σ y^(1/T) of the probabilities y."""
    powers = logits.softmax(1) ** (1 / T)
    return powers / powers.sum(1, keepdim=True)


def stepped(model: nn.Module, loss: torch.Tensor) -> list[torch.Tensor]:
    weights = list(model.parameters())
    gradients = torch.autograd.grad(loss, weights)
    return [weight.detach() - 0.1 * gradient for weight, gradient in zip(weights, gradients, strict=True)]


def same(learner: rc.Learner, expected: list[torch.Tensor]) -> None:
    for weight, theirs in zip(learner.model.parameters(), expected, strict=True):
        torch.testing.assert_close(weight.detach(), theirs)


def test_with_one_head_the_outputs_of_all_earlier_classes_are_distilled_by_one_softmax():
    learner = rc.LwF(rc.models.MLP(inputs=16, hidden=(8,), classes=6), learning_rate=0.1, strength=3.0)
    teacher = learner.model
    for task, classes in enumerate(([0, 1], [1, 4], [2, 3])):
        teacher = copy.deepcopy(learner.model)
        learner.observe(*batch(task, classes), task)
    assert learner._classes == {0: [0, 1], 1: [1, 4], 2: [2, 3]}
    x, y = batch(7, [2, 5])
    old = [0, 1, 4]
    said = softened(teacher(x)[:, old]).detach()
    new = -learner.model(x).log_softmax(1)[range(6), y].mean()
    distilled = -(said * softened(learner.model(x)[:, old]).log()).sum(1).mean()
    expected = stepped(learner.model, new + 3 * distilled)
    learner.observe(x, y, 2)
    same(learner, expected)


def test_a_model_that_takes_the_task_is_held_to_a_softmax_for_each_earlier_task():
    learner = masked_learner(strength=3.0)
    teacher = learner.model
    for number, (task, classes) in enumerate([(0, [0, 1]), (1, [2, 3]), (1, [3, 2]), (2, [4, 5])]):
        teacher = copy.deepcopy(learner.model).eval()
        learner.observe(*batch(number, classes), task)
    x, y = batch(7, [4, 5])
    model = copy.deepcopy(learner.model).train()  # the model is asked once for each task, which moves its statistics
    loss = F.cross_entropy(model(x, torch.full((6,), 2)), y)
    for k in (0, 1):
        own, task = [2 * k, 2 * k + 1], torch.full((6,), k)
        said = softened(teacher(x, task)[:, own]).detach()
        loss = loss - 3 * (said * softened(model(x, task)[:, own]).log()).sum(1).mean()
    expected = stepped(model, loss)
    learner.observe(x, y, 2)
    same(learner, expected)


def masked_learner(strength: float = 1.0) -> rc.LwF:
    with initial_weights(0, "Masked"):
        return rc.LwF(Masked(), learning_rate=0.1, strength=strength)


def test_a_residual_network_is_held_to_what_it_said_when_each_task_is_asked_for():
    tasks = [range(2), range(2, 4), range(4, 6)]
    learner = rc.LwF(rc.models.ResNet18(tasks, classes=6, channels=1), learning_rate=0.1)
    teacher = learner.model
    for number, task in enumerate(tasks):
        teacher = copy.deepcopy(learner.model).eval()
        learner.observe(*batch(number, list(task)), number)
    model, (x, y) = copy.deepcopy(learner.model).train(), batch(7, [4, 5])
    loss = F.cross_entropy(model(x, torch.full((6,), 2)), y)
    for k in (0, 1):
        said = (teacher(x, torch.full((6,), k)) / T).softmax(1).detach()
        loss = loss + F.cross_entropy(model(x, torch.full((6,), k)) / T, said)
    expected = stepped(model, loss)
    learner.observe(x, y, 2)
    same(learner, expected)


class Headed(nn.Module):
    """A head of two outputs for each of three tasks: the one that is asked for, or all of them and one taken."""

    def __init__(self, *, every: bool) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(16, 8), nn.ReLU())
        self.heads = nn.ModuleList(nn.Linear(8, 2) for _ in range(3))
        self.every = every

    def forward(self, x: torch.Tensor, task: torch.Tensor) -> torch.Tensor:
        features = self.body(x)
        if not self.every:
            return self.heads[int(task[0])](features)
        return torch.stack([head(features) for head in self.heads])[task, torch.arange(len(x))]


@pytest.mark.parametrize("every", [False, True])
def test_a_model_with_a_head_for_each_task_is_held_to_what_the_old_heads_said(every: bool):
    with initial_weights(0, "Headed"):
        learner = rc.LwF(Headed(every=every), learning_rate=0.1, strength=3.0)
    teacher = learner.model
    for task in range(3):
        teacher = copy.deepcopy(learner.model)
        learner.observe(*batch(task, [0, 1]), task)
    x, y = batch(7, [1, 0])
    model = learner.model
    loss = F.cross_entropy(model(x, torch.full((6,), 2)), y)
    for k in (0, 1):
        said = softened(teacher(x, torch.full((6,), k))).detach()
        loss = loss - 3 * (said * softened(model(x, torch.full((6,), k))).log()).sum(1).mean()
    weights = list(model.parameters())
    gradients = torch.autograd.grad(loss, weights, materialize_grads=True)
    expected = [weight.detach() - 0.1 * gradient for weight, gradient in zip(weights, gradients, strict=True)]
    learner.observe(x, y, 2)
    same(learner, expected)


def test_running_statistics_move_once_a_step():
    learner = masked_learner()
    for number, classes in enumerate(([0, 1], [2, 3], [4, 5])):
        learner.observe(*batch(number, classes), number)
    assert int(dict(learner.model.named_buffers())["inner.2.num_batches_tracked"]) == 3


def test_in_a_first_task_and_without_strength_it_is_online_learning():
    learners = [maker(rc.models.MLP(inputs=16, hidden=(8,), classes=4)) for maker in (rc.Online, rc.LwF)]
    for learner in learners:
        learner.observe(*batch(0, [0, 1]), 0)
        learner.observe(*batch(1, [0, 1]), 0)
    same(learners[1], [weight.detach() for weight in learners[0].model.parameters()])
    free = rc.LwF(copy.deepcopy(learners[1].model), strength=0)
    for learner in (learners[0], free):
        for task in (1, 2):
            learner.observe(*batch(task, [2, 3]), task)
    same(free, [weight.detach() for weight in learners[0].model.parameters()])


def test_old_outputs_stay_nearer_to_what_they_were():
    moved = []
    for strength in (0.0, 10.0):
        learner = masked_learner(strength)
        for number in range(20):
            learner.observe(*batch(number, [0, 1]), 0)
        learner.finish()
        teacher = copy.deepcopy(learner.model).eval()
        for number in range(20, 60):
            learner.observe(*batch(number, [2, 3]), 1)
        x, task = batch(99, [2, 3], size=50)[0], torch.zeros(50, dtype=torch.int64)
        said, now = (model(x, task)[:, :2].softmax(1).detach() for model in (teacher, learner.model.eval()))
        moved.append(float((said - now).abs().mean()))
    assert moved[1] < 0.5 * moved[0]


def test_a_task_that_comes_again_is_not_held_to_its_own_old_outputs():
    learner = masked_learner()
    for number, task in enumerate((0, 1, 0)):
        learner.observe(*batch(number, [2 * task, 2 * task + 1]), task)
    assert learner._earlier(0) == [(1, [2, 3])]
    learner.finish()
    assert learner._earlier(2) == [(0, [0, 1]), (1, [2, 3])]


def test_the_bill_is_the_teacher_with_its_buffers():
    learner = masked_learner()
    learner.observe(*batch(0, [0, 1]), 0)
    assert learner.footprint().total == 0
    learner.finish()
    weights = 16 * 8 + 8 + 2 * 8 + 8 * 6 + 6
    statistics = 2 * 8 * 32 + 64  # means, variances, and how many batches there were
    assert learner.footprint().total == learner.footprint().parameters == 32 * weights + statistics
    learner.observe(*batch(1, [2, 3]), 1)
    learner.observe(*batch(2, [4, 5]), 2)
    assert learner.footprint().parameters == 32 * weights + statistics
    assert learner.footprint().examples["parameters"] == (32 * weights + statistics) / (16 * 8)


def test_a_label_that_the_model_has_no_output_for_changes_nothing():
    learner = rc.LwF(rc.models.MLP(inputs=16, hidden=(8,), classes=3))
    learner.observe(*batch(0, [0, 1]), 0)
    weights = [weight.detach().clone() for weight in learner.model.parameters()]
    with pytest.raises(ValueError, match="accepted are 0 to"):
        learner.observe(batch(1, [0])[0], 7, 1)
    same(learner, weights)
    assert learner._state() == ({"task": 0, "classes": [(0, [0, 1])], "example": 128}, {})


class Heads(nn.Module):
    """A head for each task, so that the last linear layer has not all outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.ModuleList(nn.Linear(16, 2) for _ in range(3))

    def forward(self, x: torch.Tensor, task: torch.Tensor) -> torch.Tensor:
        return torch.cat([head(x.flatten(1)) for head in self.heads], 1).masked_fill(
            torch.arange(6) // 2 != task[:, None], -1e9
        )


def test_it_refuses():
    with pytest.raises(ValueError, match=r"task has the values \[0, 1\]: accepted is one task a batch"):
        masked_learner().observe(*batch(0, [0, 1], size=2), [0, 1])
    with pytest.raises(ValueError, match="strength=-1"):
        masked_learner(strength=-1)
    message = r"Heads gave outputs of shape \(6, 6\), its last linear layer \(6, 2\): accepted is a model whose outputs"
    with pytest.raises(TypeError, match=message):
        rc.LwF(Heads()).observe(*batch(0, [0, 1]), 0)


def test_looking_at_the_last_layer_leaves_no_trace():
    model, x = Masked().eval(), torch.rand(3, *SHAPE)
    seen = look(model, (x, torch.ones(3, dtype=torch.int64)))
    assert torch.equal(seen.features, model.inner(x))
    assert torch.equal(seen.unmasked, model.outputs(model.inner(x)))
    assert torch.equal(seen.outputs[:, 2:4], seen.unmasked[:, 2:4])
    assert not any(layer._forward_hooks for layer in model.modules())
