"""Learners that predict by an average of their model, against the average by its formula."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import recollect as rc
from battery import SHAPE, batches, mlp, resnet
from recollect.averaging import Average
from recollect.memory.rules import Rule

MAKERS = {
    "online": lambda model, averaging: rc.Online(model, learning_rate=0.1, averaging=averaging),
    "ewc": lambda model, averaging: rc.EWC(model, learning_rate=0.1, items=4, averaging=averaging),
    "lwf": lambda model, averaging: rc.LwF(model, learning_rate=0.1, averaging=averaging),
    "replay": lambda model, averaging: rc.Replay(model, module(), batch_size=5, steps=2, averaging=averaging),
    "gem": lambda model, averaging: rc.GEM(model, module(), memory_batch=2, averaging=averaging),
    "icarl": lambda model, averaging: rc.ICaRL(model, module("chosen"), exemplars=10, averaging=averaging),
}


def module(rule: Rule = "ring") -> rc.RecollectionModule:
    codec = rc.RawPixels(SHAPE)
    return rc.RecollectionModule(rc.Memory(codec, capacity=12, admission=rule, classes=10, tasks=4))


def taught(learner: rc.Learner, count: int = 8) -> rc.Learner:
    for batch in batches(count):
        learner.observe(*batch)
    return learner


@pytest.mark.parametrize("make_model", [mlp, resnet])
def test_predictions_are_those_of_the_average_of_what_the_model_was(make_model: Callable[[], nn.Module]):
    learner = rc.Online(make_model(), learning_rate=0.1, averaging=0.6)
    was, now = {}, {}
    for step, (x, y, number) in enumerate(batches(30), start=1):  # from the 13th on as much stays as was wanted
        learner.observe(x, y, number % 4)
        stays = min(0.6, (1 + step) / (10 + step))
        now = {name: tensor.clone() for name, tensor in learner.model.state_dict().items()}
        was = was or {name: tensor.double() for name, tensor in now.items()}  # it begins with the first step
        was = {name: stays * was[name] + (1 - stays) * now[name].double() for name in was}
        for name in (name for name in now if now[name].is_floating_point()):
            torch.testing.assert_close(learner.averaged[name].double(), was[name], rtol=1e-5, atol=1e-6)
    expected = make_model()
    counts = {name: tensor for name, tensor in now.items() if not tensor.is_floating_point()}
    expected.load_state_dict({name: tensor.float() for name, tensor in was.items()} | counts)
    x = torch.rand(50, *SHAPE, generator=torch.Generator().manual_seed(0))
    theirs = rc.Online(expected).predict(x, 1)
    assert torch.equal(learner.predict(x, 1), theirs)


@pytest.mark.parametrize("name", MAKERS)
def test_an_average_changes_nothing_that_is_learned(name: str):
    plain, averaged = (taught(MAKERS[name](mlp(), averaging)) for averaging in (0.0, 0.9))
    ours, theirs = averaged.model.state_dict(), plain.model.state_dict()
    assert all(torch.equal(ours[key], theirs[key]) for key in theirs)
    assert all(torch.equal(plain.averaged[key], theirs[key]) for key in theirs)
    assert averaged.averaged.keys() == theirs.keys()
    assert not all(torch.equal(averaged.averaged[key], theirs[key]) for key in theirs)
    assert averaged.footprint().bits == plain.footprint().bits  # a model is not billed, however it is kept


@pytest.mark.parametrize("name", MAKERS)
def test_every_learner_predicts_by_the_average(name: str):
    averaged = taught(MAKERS[name](mlp(), 0.9))
    x = torch.rand(40, *SHAPE)
    before = averaged.predict(x, 0)
    by_hand = taught(MAKERS[name](mlp(), 0.0))
    by_hand.model.load_state_dict(averaged.averaged)
    assert torch.equal(by_hand.predict(x, 0), before)
    with torch.no_grad():
        for weight in averaged.model.parameters():
            weight.zero_()
    assert torch.equal(averaged.predict(x, 0), before)


def test_before_the_first_step_there_is_only_the_model():
    learner = rc.Online(mlp(), averaging=0.9)
    x = torch.rand(5, *SHAPE)
    assert torch.equal(learner.predict(x), rc.Online(mlp()).predict(x))


def test_the_file_of_a_learner_with_an_average_can_be_that_of_one_without(tmp_path: Path):
    path = tmp_path / "learner.rec"
    taught(rc.Replay(mlp(), module(), averaging=0.9)).save(path)
    memory = rc.Memory.open(path)
    taught(rc.Replay(mlp(), rc.RecollectionModule(memory))).save(path)
    loaded = rc.Replay.load(path)
    assert all(torch.equal(loaded.averaged[name], tensor) for name, tensor in loaded.model.state_dict().items())


def test_an_average_can_be_changed_and_ended_on_the_way(tmp_path: Path):
    learner = taught(rc.Online(mlp(), learning_rate=0.1, averaging=0.9))
    learner.averaging = 0.5
    taught(learner)
    learner.save(tmp_path / "learner.rec")
    loaded = taught(rc.Online.load(tmp_path / "learner.rec"))
    taught(learner)
    assert all(torch.equal(loaded.averaged[name], tensor) for name, tensor in learner.averaged.items())
    learner.averaging = 0.0
    taught(learner, 1)
    assert all(torch.equal(learner.averaged[name], tensor) for name, tensor in learner.model.state_dict().items())


class Masked(nn.Module):
    """With a buffer that is no statistic, and tied weights."""

    mask: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.last = nn.Linear(144, 144), nn.Linear(144, 144), nn.Linear(144, 10)
        self.second.weight = self.first.weight
        self.register_buffer("mask", torch.tensor([0.0] * 5 + [-torch.inf] * 5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.second(self.first(x.flatten(1)).relu()).relu()) + self.mask


def test_masks_stay_and_tied_weights_are_tied():
    learner = rc.Online(Masked(), learning_rate=0.1, averaging=0.9)
    for x, y, _ in batches():
        learner.observe(x, y % 5)
    assert torch.equal(learner.averaged["mask"], Masked().mask)
    assert int(learner.predict(torch.rand(30, *SHAPE)).max()) < 5
    assert torch.equal(learner.averaged["first.weight"], learner.averaged["second.weight"])
    Masked().load_state_dict(learner.averaged)


def test_a_model_of_few_bits_has_an_average_of_more_and_takes_it_along():
    model = mlp().to(torch.bfloat16)
    average = Average(model)
    expected = [weight.detach().double() for weight in model.parameters()]
    for step in range(1, 400):
        with torch.no_grad():
            for weight in model.parameters():
                weight.add_(0.01 * torch.randn_like(weight))
        average.update(0.99)
        taken = 1 - min(0.99, (1 + step) / (10 + step))
        for was, weight in zip(expected, model.parameters(), strict=True):
            was.lerp_(weight.detach().double(), taken)
    for kept, was in zip(average.kept.values(), expected, strict=True):
        torch.testing.assert_close(kept.double(), was, rtol=1e-4, atol=1e-5)
    assert all(tensor.dtype == torch.bfloat16 for tensor in average.tensors.values())
    model.double()
    average.update(0.99)
    assert all(tensor.dtype == torch.float64 for tensor in average.kept.values())


def test_a_model_whose_weights_cannot_be_replaced_is_refused():
    with pytest.raises(TypeError, match=r"averaging=0.9 of a DataParallel: accepted is a module"):
        rc.Online(nn.DataParallel(mlp()), averaging=0.9)
    rc.Online(nn.DataParallel(mlp())).predict(torch.rand(2, *SHAPE))


def test_an_average_with_running_statistics_goes_on_bit_for_bit_from_its_file(tmp_path: Path):
    whole = taught(rc.Replay(resnet(), module(), batch_size=5, averaging=0.9), 4)
    whole.save(tmp_path / "learner.rec")
    resumed = taught(rc.Replay.load(tmp_path / "learner.rec"), 4)
    taught(whole, 4)
    assert all(torch.equal(resumed.averaged[name], tensor) for name, tensor in whole.averaged.items())
    x = torch.rand(20, *SHAPE)
    assert torch.equal(resumed.predict(x, 1), whole.predict(x, 1))


@pytest.mark.parametrize("averaging", [-0.1, 1.0, float("nan"), "0.9", None])
def test_an_average_that_never_ends_is_refused(averaging: Any):
    with pytest.raises((TypeError, ValueError), match=r"averaging=.*: accepted are numbers from 0"):
        rc.Online(nn.Linear(2, 2), averaging=averaging)
