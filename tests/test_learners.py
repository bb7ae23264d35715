"""Checks that every learner must pass with every codec and memory, and Replay against Algorithm 1."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

import recollect as rc
from battery import LEARNERS, SHAPE, WITH_MEMORY, batches, mlp, parameters, replay


@pytest.mark.parametrize("name", LEARNERS)
def test_the_same_stream_gives_the_same_learner(name: str):
    first, second = LEARNERS[name](), LEARNERS[name]()
    untrained = parameters(first)
    for x, y, task in batches():
        first.observe(x, y, task)
        torch.rand(3)  # whatever else draws from the global generator
        second.observe(x, y, task)
        first.predict(x, task)
        assert first.footprint() == second.footprint()
    first.finish()
    second.finish()
    assert torch.equal(parameters(first), parameters(second))
    assert not torch.equal(parameters(first), untrained)
    assert first.predict(batches()[0][0], 0).shape == (3,)


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("x", [torch.ones(1, *SHAPE) * torch.nan, torch.ones(0, *SHAPE), torch.ones(1, *SHAPE) * 255])
def test_bad_images_are_refused_and_change_nothing(name: str, x: torch.Tensor):
    learner = LEARNERS[name]()
    before = parameters(learner)
    for call in (lambda: learner.observe(x, 0, 0), lambda: learner.predict(x)):
        with pytest.raises(ValueError, match="accepted"):
            call()
    assert torch.equal(parameters(learner), before)


@pytest.mark.parametrize("name", WITH_MEMORY)
def test_the_budget_is_never_exceeded_and_bad_input_changes_nothing(name: str):
    learner = LEARNERS[name]()
    memory = learner.memory
    assert memory is not None
    for x, y, task in batches():
        learner.observe(x, y, task)
        assert len(memory) <= 12
        bill = learner.footprint()
        assert bill.incremental - bill.parameters == 8 * memory._index.nbytes
    before, held = parameters(learner), memory.ids
    for x, y, task in ((X_NAN, 0, 0), (X_ONE, 10, 0), (X_ONE, 0, 4)):
        with pytest.raises(ValueError, match="accepted"):
            learner.observe(x, y, task)
    assert torch.equal(parameters(learner), before)
    assert torch.equal(memory.ids, held)


X_ONE = torch.ones(1, *SHAPE)
X_NAN = X_ONE * torch.nan


def test_replay_is_algorithm_1():
    learner = replay(rc.DiscreteAutoencoder(SHAPE, 8, 3), "reservoir")
    M = copy.deepcopy(learner.module.memory)
    F, codec = copy.deepcopy(learner.model), M.codec
    assert isinstance(codec, rc.DiscreteAutoencoder)
    beta = torch.optim.Adam(codec.parameters(), lr=1e-3)
    alpha = 0.1
    for x, y, t in batches():
        learner.observe(x, y, t)

        X, Y = [], []
        for _ in range(2):
            z = M.sample(5) if len(M) else None
            X.append(torch.cat([x, z.x]) if z else x)
            Y.append(torch.cat([y, z.y]) if z else y)
        for s in range(2):
            beta.zero_grad()
            codec.loss(X[s]).backward()
            beta.step()
        theta = list(F.parameters())
        g = torch.autograd.grad(nn.functional.cross_entropy(F(X[0]), Y[0]), theta)
        with torch.no_grad():
            for parameter, gradient in zip(theta, g, strict=True):
                parameter -= alpha * gradient
        M.write(x, y, t)

    theirs = torch.cat([p.detach().flatten() for p in [*F.parameters(), *codec.parameters()]])
    torch.testing.assert_close(parameters(learner), theirs, rtol=1e-3, atol=1e-5)
    assert torch.equal(learner.module.memory.ids, M.ids)


def test_further_steps_of_replay_have_recollections_of_their_own():
    model = TaskModel()
    memory = rc.Memory(rc.RawPixels(SHAPE), capacity=12, classes=10, tasks=4)
    learner = rc.Replay(model, rc.RecollectionModule(memory), batch_size=5, steps=3)
    literal = copy.deepcopy(memory)
    for number, (x, y, task) in enumerate(batches(2)):
        model.seen.clear()
        learner.observe(x, y, task)
        sets = [literal.sample(5).x, *literal.sample(10).x.split(5)] if number else []
        steps = model.seen[-3:]  # before them it may be asked whether it has outputs for labels that are new
        assert len(model.seen) <= 4
        for step, seen in enumerate(steps):
            assert torch.equal(seen, torch.cat([x, sets[step]]) if sets else x)
        literal.write(x, y, task)


def test_offline_learning_sees_everything_once_an_epoch_in_a_new_order():
    model = TaskModel()
    memory = rc.Memory(rc.RawPixels(SHAPE), capacity=30, classes=10, tasks=4)
    learner = rc.Offline(model, memory, epochs=2, batch_size=7)
    for x, y, task in batches(8):
        learner.observe(x, y, task)
    model.seen.clear()  # it was asked whether it has outputs for the labels
    learner.finish()
    assert [len(seen) for seen in model.seen] == [7, 7, 7, 3] * 2
    first, second = torch.cat(model.seen[:4]), torch.cat(model.seen[4:])
    everything = (torch.cat([x for x, _, _ in batches(8)]) * 255).round() / 255
    assert not torch.equal(first, second)
    for epoch in (first, second):
        assert torch.equal(epoch.flatten(1).sum(1).sort().values, everything.flatten(1).sum(1).sort().values)


def test_online_is_gradient_descent_on_the_new_examples():
    learner, F = rc.Online(mlp(), learning_rate=0.1), mlp()
    x, y, _ = batches()[0]
    learner.observe(x, y)
    theta = list(F.parameters())
    g = torch.autograd.grad(nn.functional.cross_entropy(F(x), y), theta)
    for ours, parameter, gradient in zip(learner.model.parameters(), theta, g, strict=True):
        torch.testing.assert_close(ours, parameter - 0.1 * gradient)


class TaskModel(nn.Module):
    """A model of x and t that remembers what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.asked, self.seen = mlp(), [], []

    def forward(self, x: torch.Tensor, task: torch.Tensor) -> torch.Tensor:
        self.asked.append(task.tolist())
        self.seen.append(x)
        return self.inner(x)


def test_a_model_that_takes_the_task_is_given_the_task_of_each_example():
    model = TaskModel()
    learner = replay(rc.RawPixels(SHAPE), "reservoir", model)
    learner.observe(X_ONE, 3, task=1)
    learner.observe(X_ONE, 3, task=2)
    learner.predict(X_ONE, task=3)
    # Twice it is asked whether it has an output for a label that is new to the task.
    assert model.asked == [[1], [1], [2], [2, 1, 1, 1, 1, 1], [3]]


TASKLESS = [name for name in LEARNERS if name.startswith(("online", "replay", "offline"))]


@pytest.mark.parametrize("name", TASKLESS)
def test_a_stream_without_tasks_is_learned_as_one_task(name: str):
    without, one = LEARNERS[name](), LEARNERS[name]()
    for x, y, _ in batches():
        without.observe(x, y)
        one.observe(x, y, 0)
    without.finish()
    one.finish()
    assert torch.equal(parameters(without), parameters(one))
    x = batches()[0][0]
    assert torch.equal(without.predict(x), one.predict(x, 0))


@pytest.mark.parametrize("name", [name for name in LEARNERS if name not in TASKLESS])
def test_a_learner_that_needs_tasks_says_why_and_changes_nothing(name: str):
    learner = LEARNERS[name]()
    before = parameters(learner)
    with pytest.raises(ValueError, match=f"{type(learner).__name__} (acts when a task ends|keeps the loss)"):
        learner.observe(X_ONE, 3)
    assert torch.equal(parameters(learner), before)


def test_a_model_that_takes_the_task_is_not_left_to_guess():
    model = TaskModel()
    learner = replay(rc.RawPixels(SHAPE), "reservoir", model)
    for call in (lambda: learner.observe(X_ONE, 3), lambda: learner.predict(X_ONE)):
        with pytest.raises(ValueError, match="TaskModel takes one: accepted is the number of the task"):
            call()
    assert (model.asked, learner.memory.seen) == ([], 0)


def test_a_wrapped_model_is_still_given_the_task():
    model = TaskModel()
    rc.Online(nn.DataParallel(model)).observe(X_ONE, 3, task=1)
    assert model.asked == [[1]]


def test_a_task_that_a_ring_has_no_room_for_changes_nothing():
    memory = rc.Memory(rc.DiscreteAutoencoder(SHAPE, 8, 3), capacity=1, admission="ring")
    learner = rc.Replay(mlp(), rc.RecollectionModule(memory))
    learner.observe(X_ONE, 3, task=1)
    before = parameters(learner)
    with pytest.raises(ValueError, match="2 tasks and capacity=1: a ring needs a slot for each task"):
        learner.observe(X_ONE, 3, task=2)
    assert torch.equal(parameters(learner), before)


@pytest.mark.parametrize("make", [lambda: rc.Online(rc.models.MLP()), lambda: rc.EWC(rc.models.MLP(), strength=30.0)])
def test_layers_may_be_frozen_and_let_go_again_on_the_way(make: Callable[[], rc.Learner], tmp_path: Path):
    """And a learner from a file goes on as the one that was saved does."""
    learner = make()
    first, last = learner.model[1], learner.model[-1]  # pyright: ignore[reportIndexIssue]
    x, y = torch.rand(6, 1, 28, 28, generator=torch.Generator().manual_seed(0)), torch.arange(6)
    learner.observe(x, y, 0)
    first.requires_grad_(False)
    before = first.weight.clone(), last.weight.clone()
    learner.observe(x, y, 1)
    assert torch.equal(first.weight, before[0])
    assert not torch.equal(last.weight, before[1])
    learner.finish()
    learner.save(tmp_path / "learner.rec")
    again = rc.Learner.load(tmp_path / "learner.rec")
    first.requires_grad_(True)
    again.model.requires_grad_(True)
    for each in (learner, again):
        each.observe(x, y, 2)
    assert not torch.equal(first.weight, before[0])
    assert torch.equal(parameters(learner), parameters(again))
    learner.model.requires_grad_(False)
    with pytest.raises(ValueError, match="every parameter of the model MLP is frozen"):
        learner.observe(x, y, 2)


def test_what_is_no_model_is_named():
    with pytest.raises(TypeError, match=r"model is NoneType: accepted is a torch\.nn\.Module"):
        rc.Online(None)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="y is missing: accepted are numbers"):
        rc.Online(rc.models.MLP(), loss="mse").observe(torch.rand(2, 1, 28, 28), None)
    with pytest.raises(ValueError, match="classes=0: accepted"):
        rc.models.MLP(classes=0)


def test_replay_refuses_zero_and_what_is_no_module():
    module = rc.RecollectionModule(rc.Memory(rc.RawPixels(SHAPE), capacity=5))
    with pytest.raises(TypeError, match="module is Memory: accepted is a RecollectionModule"):
        rc.Replay(mlp(), module.memory)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="memory is RecollectionModule: accepted is a Memory"):
        rc.Offline(mlp(), module)  # pyright: ignore[reportArgumentType]
    for rate in (-1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match=f"learning_rate={rate}: accepted is a number of at least 0"):
            rc.Online(mlp(), learning_rate=rate)
    with pytest.raises(ValueError, match="batch_size=0"):
        rc.Replay(mlp(), module, batch_size=0)
    with pytest.raises(ValueError, match="steps=0"):
        rc.Replay(mlp(), module, steps=0)


def test_replay_remembers_what_online_learning_forgets():
    """Two tasks that never meet: without a memory the second erases the first."""
    generator = torch.Generator().manual_seed(0)
    means = torch.rand(4, *SHAPE, generator=generator)
    x = (means[:, None] + 0.1 * torch.randn(4, 50, *SHAPE, generator=generator)).clamp(0, 1)
    scores = {}
    for name in ("online", "replay-resized-reservoir"):
        learner = LEARNERS[name]()
        for task, classes in enumerate(([0, 1], [2, 3])):
            for _ in range(5):
                for number in range(0, 50, 5):
                    for label in classes:
                        learner.observe(x[label, number : number + 5], label, task)
        old = torch.stack([(learner.predict(x[label]) == label).float().mean() for label in (0, 1)])
        scores[name] = float(old.mean())
    assert scores["online"] < 0.6
    assert scores["replay-resized-reservoir"] > 0.9


@pytest.mark.parametrize("make", [rc.Online, rc.LwF, rc.EWC, lambda model: replay(rc.RawPixels(SHAPE), "ring", model)])
def test_a_label_without_an_output_is_named(make: Callable[[nn.Module], rc.Learner]):
    learner = make(rc.models.MLP(inputs=144, hidden=(16,), classes=4))
    x, _, task = batches()[0]
    with pytest.raises(ValueError, match=r"y has the value 7: accepted are 0 to 3, for which the model has outputs"):
        learner.observe(x, torch.tensor([1, 7, 3]), task)
