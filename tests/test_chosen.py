"""The admission rule "chosen": what was named stays in its order, what came since is balanced behind it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect import Memory, RawPixels
from recollect.memory.chosen import Chosen
from recollect.memory.index import PackedIndex
from test_admission import Rig, even
from test_memory import SHAPE, filled, state, stream


class ChosenRig(Rig):
    """A rig whose rule can be told what to keep, and whose free slots must hold nothing."""

    rule: Chosen  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(self, capacity: int, *, seed: int = 0) -> None:
        super().__init__("chosen", capacity, seed=seed)

    def keep(self, ids: list[int]) -> None:
        held = self.held()[0]
        self.rule.keep(np.array([held.index(number) for number in ids], np.int64))

    def forget(self, ids: list[int]) -> None:
        self.rule.forget(np.flatnonzero(np.isin(self.held()[0], ids)))

    def check_free_slots(self) -> None:
        free = np.setdiff1d(np.arange(self.index.length), self.rule.slots(np.arange(self.rule.held)))
        for array in self.index.arrays.values():
            assert not array.read(free).any()


@settings(max_examples=100)
@given(st.integers(1, 20), st.integers(0, 2**32))
def test_it_holds_what_was_chosen_in_order_and_since_then_as_many_of_each_class_as_can_be(capacity: int, seed: int):
    rng = np.random.default_rng(seed)
    rig = ChosenRig(capacity, seed=seed)
    labels: list[int] = []
    chosen: list[int] = []
    first, room, forgotten = 0, capacity, set[int]()
    for _ in range(15):
        match rng.integers(0, 4):
            case 0:
                held = rig.held()[0]
                chosen = rng.permutation(held)[: rng.integers(0, len(held) + 1)].tolist()
                rig.keep(chosen)
                first, room = len(labels), capacity - len(chosen)
            case 1:
                gone = [number for number in rig.held()[0] if rng.random() < 0.3]
                rig.forget(gone)
                forgotten.update(gone)
                chosen = [number for number in chosen if number not in gone]
            case _:
                batch = rng.integers(0, 5, rng.integers(1, 12))
                rig.show(batch, batch)
                labels += batch.tolist()
        ids, kinds, tasks = rig.held()
        assert kinds == tasks == [labels[number] for number in ids]
        assert ids[: len(chosen)] == chosen
        since = ids[len(chosen) :]
        assert set(since) <= set(range(first, len(labels))) - forgotten
        if not forgotten & set(range(first, len(labels))):
            assert len(since) == min(room, len(labels) - first)
            counts, seen = Counter(labels[number] for number in since), Counter(labels[first:])
            most = max(counts.values(), default=0)
            assert all(counts[label] == count or counts[label] >= most - 1 for label, count in seen.items())
        assert len(since) <= room
        rig.check_free_slots()


def test_since_the_choice_every_example_of_a_class_is_held_with_the_same_probability():
    streams, counts = 500, np.zeros(20, np.int64)
    for seed in range(streams):
        rig = ChosenRig(10, seed=seed)
        rig.show(np.zeros(12, np.int64))
        rig.keep(rig.held()[0][:4])
        for _ in range(4):
            rig.show(np.zeros(5, np.int64))
        counts[np.array(rig.held()[0][4:]) - 12] += 1
    assert even(counts, streams, 6) > 1e-3


def test_with_all_slots_chosen_nothing_more_is_taken():
    rig = ChosenRig(4)
    rig.show(np.arange(4))
    rig.keep([3, 1, 0, 2])
    rig.show(np.arange(9))
    assert rig.held()[0] == [3, 1, 0, 2]


def test_a_memory_keeps_whole_records_in_the_order_of_the_choice():
    memory = filled(RawPixels(SHAPE), admission="chosen")
    x, y, task = stream(100)
    ids = memory.ids[torch.randperm(40, generator=torch.Generator().manual_seed(0))[:15]]
    memory.keep(ids)
    batch = memory.recollections()
    assert batch is not None
    assert torch.equal(batch.ids, ids)
    assert torch.equal(batch.x, x[ids])
    assert torch.equal(batch.y, y[ids])
    assert torch.equal(batch.task, task[ids])
    assert memory.footprint().incremental == 8 * memory._index.nbytes
    assert memory.audit == ()
    memory.keep(torch.empty(0, dtype=torch.int64))
    assert memory.recollections() is None


def test_a_choice_that_cannot_be_changes_nothing():
    memory = filled(RawPixels(SHAPE), admission="chosen")
    held = memory.ids.tolist()
    lost = next(number for number in range(100) if number not in held)
    before = state(memory)
    for ids, message in (
        ([held[0], lost], f"ids has the value {lost}: accepted are ids of items that are held"),
        ([held[0], 100], "ids has the value 100: accepted are 0 to 99"),
        ([held[3], held[3]], "ids has a value twice"),
    ):
        with pytest.raises(ValueError, match=message):
            memory.keep(ids)
    with pytest.raises(ValueError, match="admission='ring': accepted is 'chosen'"):
        filled(RawPixels(SHAPE), admission="ring").keep([0])
    assert state(memory) == before


def test_a_file_gives_back_the_choice_and_goes_on_from_it(tmp_path: Path):
    memory = filled(RawPixels(SHAPE), admission="chosen")
    memory.commit(tmp_path / "memory.rec")
    memory.keep(memory.ids[:12].flip(0))
    memory.forget(ids=memory.ids[[2, 5]])
    memory.write(*stream(50, seed=1))
    memory.forget(label=3)
    memory.commit(tmp_path / "memory.rec")
    opened = Memory.open(tmp_path / "memory.rec")
    assert state(opened) == state(memory)
    for each in (memory, opened):
        each.write(*stream(50, seed=2))
        each.keep(each.ids[::2])
        each.write(*stream(50, seed=3))
    assert state(opened) == state(memory)


@pytest.mark.parametrize(("kept", "start"), [(-1, 3), (4, 3), (3, 41)])
def test_a_state_that_cannot_be_is_refused(kept: int, start: int):
    rule = Chosen(40, 10, PackedIndex(40, code_bits=1, label_bits=4, task_bits=4))
    since = rule.state()["since"]
    with pytest.raises(ValueError, match=r"accepted is kept <= start <= capacity"):
        rule.restore({"kept": kept, "start": start, "since": since})
