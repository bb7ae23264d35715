"""Learners that predict by an average of their model, against the average by its formula."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

import recollect as rc
from battery import SHAPE, batches, mlp, resnet
from recollect.memory.memory import Rule

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
    now = learner.model.state_dict()
    was = {name: tensor.double() for name, tensor in now.items()}
    for step, (x, y, number) in enumerate(batches(30), start=1):  # from the 13th on as much stays as was wanted
        learner.observe(x, y, number % 4)
        stays = min(0.6, (1 + step) / (10 + step))
        now = learner.model.state_dict()
        was = {name: stays * was[name] + (1 - stays) * now[name].double() for name in was}
    expected = make_model()
    counts = {name: tensor for name, tensor in now.items() if not tensor.is_floating_point()}
    expected.load_state_dict({name: tensor.float() for name, tensor in was.items()} | counts)
    for name, tensor in expected.state_dict().items():
        torch.testing.assert_close(learner.averaged[name], tensor, rtol=1e-5, atol=1e-6)
    x = torch.rand(50, *SHAPE)
    theirs = rc.Online(expected).predict(x, 1)
    assert torch.equal(learner.predict(x, 1), theirs)


@pytest.mark.parametrize("name", MAKERS)
def test_an_average_changes_nothing_that_is_learned(name: str):
    plain, averaged = (taught(MAKERS[name](mlp(), averaging)) for averaging in (0.0, 0.9))
    ours, theirs = averaged.model.state_dict(), plain.model.state_dict()
    assert all(torch.equal(ours[key], theirs[key]) for key in theirs)
    assert not plain.averaged
    assert averaged.averaged.keys() == theirs.keys()
    assert averaged.footprint().bits == plain.footprint().bits  # a model is not billed, however it is kept


@pytest.mark.parametrize("name", MAKERS)
def test_every_learner_predicts_by_the_average(name: str):
    averaged = taught(MAKERS[name](mlp(), 0.9))
    x = torch.rand(40, *SHAPE)
    before = averaged.predict(x, 0)
    by_hand = taught(MAKERS[name](mlp(), 0.0))
    by_hand.model.load_state_dict(averaged.averaged, strict=False)
    assert torch.equal(by_hand.predict(x, 0), before)
    with torch.no_grad():
        for weight in averaged.model.parameters():
            weight.zero_()
    assert torch.equal(averaged.predict(x, 0), before)


def test_before_the_first_step_there_is_only_the_model():
    learner = rc.Online(mlp(), averaging=0.9)
    x = torch.rand(5, *SHAPE)
    assert torch.equal(learner.predict(x), rc.Online(mlp()).predict(x))


def test_a_file_without_an_average_has_no_part_for_it(tmp_path: Path):
    for name, averaging in (("plain", 0.0), ("averaged", 0.9)):
        taught(rc.Online(mlp(), averaging=averaging)).save(tmp_path / name)
        names = {row[0] for row in sqlite3.connect(tmp_path / name).execute("SELECT name FROM part")}
        assert ("average" in names) == bool(averaging)
        learner = rc.Online.load(tmp_path / name)
        assert bool(learner.averaged) == bool(averaging)


def test_an_average_with_running_statistics_goes_on_bit_for_bit_from_its_file(tmp_path: Path):
    whole = taught(rc.Replay(resnet(), module(), batch_size=5, averaging=0.9), 4)
    whole.save(tmp_path / "learner.rec")
    resumed = taught(rc.Replay.load(tmp_path / "learner.rec"), 4)
    taught(whole, 4)
    assert all(torch.equal(resumed.averaged[name], tensor) for name, tensor in whole.averaged.items())
    x = torch.rand(20, *SHAPE)
    assert torch.equal(resumed.predict(x, 1), whole.predict(x, 1))


@pytest.mark.parametrize("averaging", [-0.1, 1.0, float("nan")])
def test_an_average_that_never_ends_is_refused(averaging: float):
    with pytest.raises(ValueError, match=r"averaging=.*: accepted are numbers from 0"):
        rc.Online(nn.Linear(2, 2), averaging=averaging)
