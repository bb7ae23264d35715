"""A learner that was saved at any point and loaded goes on bit for bit as one that was never stopped."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch

import recollect as rc
from battery import LEARNERS, batches, parameters


def same(one: rc.Learner, other: rc.Learner) -> None:
    assert torch.equal(parameters(one), parameters(other))
    assert one.footprint() == other.footprint()
    if one.memory is not None and other.memory is not None:
        assert torch.equal(one.memory.ids, other.memory.ids)
        if len(one.memory):
            ours, theirs = copy.deepcopy(one.memory).sample(20), copy.deepcopy(other.memory).sample(20)
            for mine, yours in zip(vars(ours).values(), vars(theirs).values(), strict=True):
                assert torch.equal(mine, yours)


@pytest.mark.parametrize("name", LEARNERS)
def test_a_stopped_learner_ends_as_one_never_stopped(name: str, tmp_path: Path):
    stops = torch.randint(0, 8, (3,), generator=torch.Generator().manual_seed(len(name))).tolist()
    whole, stopped = LEARNERS[name](), LEARNERS[name]()
    for number, (x, y, task) in enumerate(batches()):
        whole.observe(x, y, task)
        stopped.observe(x, y, task)
        if number in stops:
            stopped.save(tmp_path / "learner.rec", {"batches": number + 1})
            stopped = type(stopped).load(tmp_path / "learner.rec")
            assert stopped.progress == {"batches": number + 1}
            same(whole, stopped)
    whole.finish()
    stopped.finish()
    same(whole, stopped)
