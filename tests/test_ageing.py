"""Code ageing: its errors against a slow reference, what it leaves as it was, and what it does not keep."""

from __future__ import annotations

import copy
import gc
import weakref
from collections.abc import Callable

import pytest
import torch

import recollect as rc
from recollect.memory.rules import Rule

SHAPE = (1, 12, 12)


def blocks(count: int, seed: int = 0) -> torch.Tensor:
    coarse = (torch.rand(count, 1, 3, 3, generator=torch.Generator().manual_seed(seed)) > 0.5).float()
    return torch.nn.functional.interpolate(coarse, SHAPE[1:])


def learned(*, watched: bool = True, stochastic: bool = False) -> tuple[rc.Memory, rc.Ageing, torch.Tensor]:
    """A memory of 25 items after 4 tasks of 10 images, in which its codec went on learning, and all images."""
    codec = rc.DiscreteAutoencoder(SHAPE, 16, 2, stochastic=stochastic)
    memory = rc.Memory(codec, capacity=25, classes=1, tasks=4)
    module, ageing = rc.RecollectionModule(memory, steps=3), rc.Ageing(memory)
    x = blocks(40)
    for number, part in enumerate(x.split(5)):
        module.rehearse(part, size=5)
        ids = memory.write(part, 0, task=number // 2)
        if watched:
            ageing.watch(part, ids if number % 2 else None)
    return memory, ageing, x


def slow(memory: rc.Memory, x: torch.Tensor, wanted: Callable[[int], bool]) -> rc.Aged:
    """The errors of the items whose ids are wanted, one by one."""
    held, fresh = [], []
    everything = memory.recollections()
    assert everything is not None
    for image, number in zip(everything.x, everything.ids.tolist(), strict=True):
        if wanted(number):
            anew = memory.codec.decode(memory.codec.encode(x[number : number + 1]))[0]
            held.append(float((image - x[number]).abs().mean()))
            fresh.append(float((anew - x[number]).abs().mean()))
    return rc.Aged(len(held), sum(held) / len(held), sum(fresh) / len(fresh))


def test_errors_by_task_are_those_of_each_item():
    memory, ageing, x = learned()
    found = ageing.by_task()
    assert [*found] == [0, 1, 2, 3]
    assert sum(aged.items for aged in found.values()) == len(memory) == 25
    for task, aged in found.items():
        expected = slow(memory, x, lambda number, task=task: number // 10 == task)
        assert aged.items == expected.items
        assert (aged.held, aged.fresh) == pytest.approx((expected.held, expected.fresh), abs=1e-6)
        assert aged.cost == aged.held - aged.fresh


@pytest.mark.parametrize("bins", [1, 3, 4, 100])
def test_errors_by_age_are_those_of_each_item(bins: int):
    memory, ageing, x = learned()
    found = ageing.by_age(bins)
    assert [*found] == sorted(found, key=lambda ages: ages.start)
    assert sum(aged.items for aged in found.values()) == 25
    for ages, aged in found.items():
        assert len(ages) in {40 // bins, 40 // bins + 1}
        expected = slow(memory, x, lambda number, ages=ages: 39 - number in ages)
        assert aged.items == expected.items
        assert (aged.held, aged.fresh) == pytest.approx((expected.held, expected.fresh), abs=1e-6)


def test_measuring_changes_nothing():
    (memory, ageing, _), (unwatched, _, _) = learned(stochastic=True), learned(watched=False, stochastic=True)
    ageing.by_task()
    ageing.by_age(most=7)
    assert torch.equal(memory.sample(30).x, unwatched.sample(30).x)
    x = blocks(30, seed=1)
    memory.write(x, 0)
    unwatched.write(x, 0)
    ours, theirs = memory.recollections(), unwatched.recollections()
    assert ours is not None
    assert theirs is not None
    assert torch.equal(ours.ids, theirs.ids)
    assert torch.equal(ours.x, theirs.x)


def test_no_more_items_are_measured_than_are_wanted():
    _, ageing, _ = learned()
    assert sum(aged.items for aged in ageing.by_task(most=9).values()) == 9


@pytest.mark.parametrize("rule", ["reservoir", "ring", "balanced"])
def test_only_originals_of_what_is_held_are_kept_and_none_of_what_is_forgotten(rule: Rule):
    memory = rc.Memory(rc.RawPixels(SHAPE), capacity=12, admission=rule, classes=3, tasks=3)
    ageing = rc.Ageing(memory)
    for number, part in enumerate(blocks(60).split(10)):
        memory.write(part, torch.arange(10) % 3, task=number // 2)
        ageing.watch(part)
        assert len(ageing._originals) <= 2 * 12
        assert len(ageing) == len(memory)
        assert sorted(ageing._originals) == sorted(memory.ids.tolist())
    memory.forget(ids=memory.ids[:2])
    memory.forget(task=2)
    memory.forget(label=1)
    assert 0 < len(ageing) == len(memory)
    assert sorted(ageing._originals) == sorted(memory.ids.tolist())
    # A part of a batch would keep the images beside it.
    assert all(image.untyped_storage().nbytes() == image.nbytes for image in ageing._originals.values())
    memory.forget(label=0)
    memory.forget(label=2)
    assert len(ageing) == 0


def test_the_memory_does_not_keep_who_watches_it():
    memory, ageing, _ = learned()
    gone = weakref.ref(ageing)
    del ageing
    gc.collect()
    assert gone() is None
    assert memory.forget(task=0)


def test_a_copy_of_a_watched_memory_leaves_the_originals_alone():
    memory, ageing, _ = learned()
    copy.deepcopy(memory).forget(task=0)
    assert len(ageing) == len(memory) == 25


def test_what_was_not_watched_is_not_measured():
    memory = rc.Memory(rc.RawPixels(SHAPE), capacity=20)
    memory.write(blocks(8), 0)
    ageing = rc.Ageing(memory)
    with pytest.raises(ValueError, match="no originals"):
        ageing.by_task()
    memory.write(blocks(4), 0)
    ageing.watch(blocks(4))
    assert ageing.by_task() == {0: rc.Aged(4, 0.0, 0.0)}
    assert ageing.by_task(most=1) == {0: rc.Aged(1, 0.0, 0.0)}  # of those that were watched


def test_it_refuses():
    memory, ageing, x = learned()
    before = {**ageing._originals}
    with pytest.raises(ValueError, match="2 ids for 3 images: accepted is one for each"):
        ageing.watch(x[:3], [1, 2])
    with pytest.raises(ValueError, match="ids has the value 40: accepted are 0 to 39"):
        ageing.watch(x[:1], 40)
    with pytest.raises(ValueError, match="41 images and no ids: accepted are as many as the memory has seen, 40"):
        ageing.watch(blocks(41))
    with pytest.raises(ValueError, match="accepted is n x 1 x 12 x 12"):
        ageing.watch(torch.rand(2, 1, 8, 8))
    with pytest.raises(ValueError, match="bins=0"):
        ageing.by_age(0)
    with pytest.raises(ValueError, match="most=0"):
        ageing.by_task(most=0)
    assert ageing._originals == before
    assert len(memory) == 25
