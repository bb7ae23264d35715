"""Admission rules: their statistics by chi-square, and their contents against slow models."""

from __future__ import annotations

from collections import Counter, deque

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, chi2

import recollect as rc
from recollect.memory.admission import NOT_KEPT, Admission, Balanced, Reservoir, Ring
from recollect.memory.chosen import Chosen
from recollect.memory.index import PackedIndex

Integers = npt.NDArray[np.int64]


class Rig:
    """An admission rule with an index, fed with numbered examples as the memory feeds it."""

    def __init__(self, rule: str, capacity: int, *, classes: int = 16, tasks: int = 16, seed: int = 0) -> None:
        self.index = PackedIndex(capacity, code_bits=1, label_bits=4, task_bits=4)
        self.rng = np.random.default_rng(seed)
        self.rule: Admission = {
            "reservoir": lambda: Reservoir(capacity, self.index),
            "balanced": lambda: Balanced(capacity, classes, self.index),
            "ring": lambda: Ring(capacity, self.index),
            "chosen": lambda: Chosen(capacity, classes, self.index),
        }[rule]()
        self.seen = 0

    def show(self, labels: Integers, tasks: Integers | None = None) -> None:
        tasks = np.zeros_like(labels) if tasks is None else tasks
        self.rule.check(tasks)
        slots = self.rule.decide(labels, tasks, self.rng)
        self.rule.commit()
        last = {slot: example for example, slot in enumerate(slots.tolist()) if slot != NOT_KEPT}  # stays in its slot
        at, kept = np.array([*last], np.int64), np.array([*last.values()], np.int64)
        self.index.labels.write_integers(at, labels[kept])
        self.index.tasks.write_integers(at, tasks[kept])
        self.index.ids.write_integers(at, self.seen + kept)
        self.seen += len(labels)

    def held(self) -> tuple[list[int], list[int], list[int]]:
        """Ids, labels and tasks."""
        slots = self.rule.slots(np.arange(self.rule.held))
        arrays = (self.index.ids, self.index.labels, self.index.tasks)
        ids, labels, tasks = (array.read_integers(slots).tolist() for array in arrays)
        assert len(set(ids)) == len(ids)
        return ids, labels, tasks


def even(counts: npt.NDArray[np.int64], streams: int, held: int) -> float:
    """p-value for: of every stream each of these examples was held with the same probability.

    Exactly ``held`` of n are held each time, so counts are correlated; the factor (n - 1) / n accounts for that.
    """
    n = len(counts)
    share = held / n
    statistic = ((counts - streams * share) ** 2).sum() / (streams * share * (1 - share)) * (n - 1) / n
    return float(chi2.sf(statistic, n - 1))


@pytest.mark.parametrize("batch", [1, 7, 40])
def test_a_reservoir_holds_every_example_with_the_same_probability(batch: int):
    streams, length, capacity = 2000, 40, 12
    counts = np.zeros(length, np.int64)
    for seed in range(streams):
        rule, rng = (
            Reservoir(capacity, PackedIndex(capacity, code_bits=1, label_bits=4, task_bits=4)),
            np.random.default_rng(seed),
        )
        slots: dict[int, int] = {}
        for start in range(0, length, batch):
            labels = np.zeros(min(batch, length - start), np.int64)
            for example, slot in enumerate(rule.decide(labels, labels, rng).tolist(), start=start):
                slots |= {slot: example} if slot != NOT_KEPT else {}
            rule.commit()
        assert sorted(slots) == list(range(capacity))
        counts[list(slots.values())] += 1
    assert even(counts, streams, capacity) > 1e-3


@pytest.mark.parametrize("rule", ["reservoir", "balanced"])
def test_where_nothing_is_left_a_rule_starts_anew(rule: str):
    streams, counts = 1000, np.zeros(30, np.int64)
    for seed in range(streams):
        rig = Rig(rule, 12, seed=seed)
        rig.show(np.zeros(300, np.int64))
        rig.rule.forget(np.arange(rig.rule.held))
        for size in (5, 20, 5):
            before = rig.rule.held
            rig.show(np.zeros(size, np.int64))
            assert rig.rule.held == min(12, before + size)
        counts[np.array(rig.held()[0]) - 300] += 1
    assert even(counts, streams, 12) > 1e-3


def test_a_memory_of_coded_items_starts_anew_where_nothing_is_left():
    def kept(first: int) -> int:
        memory = rc.Memory(
            rc.ResizedPixels((1, 8, 8), size=(4, 4), bits=2), code_bits=2000, scheme="entropy", classes=2
        )
        for _ in range(first):
            memory.write(torch.rand(100, 1, 8, 8, generator=generator), 0)
        memory.forget(label=0)
        memory.write(torch.rand(100, 1, 8, 8, generator=generator), 1)
        return len(memory)

    generator = torch.Generator().manual_seed(0)
    assert kept(first=20) > 0.8 * kept(first=1) > 10


def test_the_first_example_after_a_reservoir_is_full_is_kept_as_often_as_it_should_be():
    capacity, tries = 12, 5000
    rule, rng = (
        Reservoir(capacity, PackedIndex(capacity, code_bits=1, label_bits=4, task_bits=4)),
        np.random.default_rng(0),
    )
    zeros = np.zeros(capacity, np.int64)
    rule.decide(zeros, zeros, rng)
    rule.commit()
    kept = sum(int(rule.decide(zeros[:1], zeros[:1], rng)[0]) != NOT_KEPT for _ in range(tries))
    assert binomtest(kept, tries, capacity / (capacity + 1)).pvalue > 1e-3


def test_balanced_holds_every_example_of_a_full_class_with_the_same_probability():
    streams, counts = 500, np.zeros(30, np.int64)
    labels = np.array([0] * 20 + [1, 0, 2] * 10)  # 30 of class 0, 10 each of 1 and 2
    zeros = np.flatnonzero(labels == 0)
    for seed in range(streams):
        rig = Rig("balanced", 12, seed=seed)
        for start in range(0, len(labels), 5):
            rig.show(labels[start : start + 5])
        ids, kinds, _ = rig.held()
        assert Counter(kinds) == {0: 4, 1: 4, 2: 4}
        counts[np.searchsorted(zeros, [i for i in ids if labels[i] == 0])] += 1
    assert even(counts, streams, 4) > 1e-3


def test_with_more_classes_than_slots_every_class_is_equally_likely_to_be_held():
    streams, counts = 600, np.zeros(16, np.int64)
    for seed in range(streams):
        rig = Rig("balanced", 4, seed=seed)
        for start in range(0, 48, 6):
            rig.show(np.arange(start, start + 6) % 16)
        _, kinds, _ = rig.held()
        assert len(set(kinds)) == 4
        counts[kinds] += 1
    assert even(counts, streams, 4) > 1e-3


@settings(max_examples=60)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=150), st.integers(1, 20), st.integers(1, 9), st.integers(0, 99))
def test_balanced_gives_room_to_the_rare(labels: list[int], capacity: int, batch: int, seed: int):
    rig = Rig("balanced", capacity, seed=seed)
    for start in range(0, len(labels), batch):
        rig.show(np.array(labels[start : start + batch]))
    ids, kinds, _ = rig.held()
    assert len(ids) == min(capacity, len(labels))
    assert all(labels[i] == kind for i, kind in zip(ids, kinds, strict=True))
    held, seen = Counter(kinds), Counter(labels)
    largest = max(held.values())
    for label, count in seen.items():
        assert held[label] == count or held[label] >= largest - 1  # whoever lacks items is among the largest


@settings(max_examples=100)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=120), st.integers(5, 30), st.integers(1, 9))
def test_a_ring_is_the_most_recent_of_each_task(tasks: list[int], capacity: int, batch: int):
    rig = Rig("ring", capacity)
    model: dict[int, deque[int]] = {}
    for start in range(0, len(tasks), batch):
        part = tasks[start : start + batch]
        rig.show(np.zeros(len(part), np.int64), np.array(part))
        for task in part:
            model.setdefault(task, deque())
        model = {task: deque(queue, capacity // len(model)) for task, queue in model.items()}
        for number, task in enumerate(part, start=start):
            model[task].append(number)
        ids, _, held_tasks = rig.held()
        free = np.setdiff1d(np.arange(capacity), rig.rule.slots(np.arange(len(ids))))
        assert not any(array.read(free).any() for array in rig.index.arrays.values())
        for task, queue in model.items():
            assert {i for i, t in zip(ids, held_tasks, strict=True) if t == task} == set(queue)
        assert len(ids) == sum(map(len, model.values()))


def test_a_ring_needs_a_slot_for_each_task_and_stays_as_it_was_when_it_has_none():
    rig = Rig("ring", 2)
    rig.show(np.zeros(3, np.int64), np.array([0, 0, 1]))
    before = rig.held()
    with pytest.raises(ValueError, match="3 tasks and capacity=2: a ring needs a slot for each task"):
        rig.show(np.zeros(1, np.int64), np.array([2]))
    assert rig.held() == before


@pytest.mark.parametrize("rule", ["reservoir", "balanced"])
@pytest.mark.parametrize("early", [True, False])
def test_what_was_not_forgotten_is_held_with_the_same_probability(rule: str, early: bool):
    """Every third of the first examples is forgotten, before or after the memory is full; the stream goes on."""
    streams, length, capacity = 600, 60, 12
    when, gone = (10, np.arange(0, 10, 3)) if early else (30, np.arange(0, 30, 3))
    counts = np.zeros(length, np.int64)
    for seed in range(streams):
        rig = Rig(rule, capacity, seed=seed)
        for start in range(0, length, 10):
            if start == when:
                rig.rule.forget(np.flatnonzero(np.isin(rig.held()[0], gone)))
            rig.show(np.zeros(10, np.int64))
        counts[rig.held()[0]] += 1
    left = np.setdiff1d(np.arange(length), gone)
    assert counts[gone].sum() == 0
    # How many are held varies where room was left, so that the even share is estimated from the counts themselves.
    share = counts[left].sum() / len(left) / streams
    statistic = ((counts[left] - streams * share) ** 2 / (streams * share * (1 - share))).sum()
    assert chi2.sf(statistic, len(left) - 1) > 1e-3


@given(st.integers(1, 12), st.integers(0, 2**32))
def test_a_ring_holds_the_most_recent_that_were_not_forgotten(capacity: int, seed: int):
    rng = np.random.default_rng(seed)
    rig = Rig("ring", capacity)
    model: dict[int, deque[int]] = {}
    for _ in range(12):
        task = int(rng.integers(0, min(capacity, 3)))
        count = int(rng.integers(1, 6))
        model.setdefault(task, deque())
        share = capacity // len(model)
        for number in range(rig.seen, rig.seen + count):
            model[task].append(number)
        model = {known: deque(items, maxlen=share) for known, items in model.items()}
        rig.show(np.zeros(count, np.int64), np.full(count, task))
        if rng.random() < 0.5:
            ids = rig.held()[0]
            gone = [number for number in ids if rng.random() < 0.4]
            rig.rule.forget(np.flatnonzero(np.isin(ids, gone)))
            model = {known: deque(n for n in items if n not in gone) for known, items in model.items()}
            model = model if any(model.values()) else {}
        assert sorted(rig.held()[0]) == sorted(number for items in model.values() for number in items)
        assert [*zip(rig.held()[2], rig.held()[0], strict=True)] == [
            (known, number) for known, items in model.items() for number in rig_order(rig, known, items)
        ]


def rig_order(rig: Rig, task: int, items: deque[int]) -> list[int]:
    """The items of a task in the order of their slots."""
    ids, _, tasks = rig.held()
    found = [number for number, known in zip(ids, tasks, strict=True) if known == task]
    assert sorted(found) == sorted(items)
    return found


@pytest.mark.parametrize("rule", ["reservoir", "balanced", "ring"])
def test_forgetting_leaves_zeros_and_keeps_the_others_whole(rule: str):
    rng = np.random.default_rng(0)
    rig = Rig(rule, 40)
    for _ in range(8):
        rig.show(rng.integers(0, 4, 10), rng.integers(0, 3, 10))
    records = {(i, y, t) for i, y, t in zip(*rig.held(), strict=True)}
    gone = {number for number in rig.held()[0] if number % 3 == 0}
    rig.rule.forget(np.flatnonzero(np.isin(rig.held()[0], [*gone])))
    assert {(i, y, t) for i, y, t in zip(*rig.held(), strict=True)} == {r for r in records if r[0] not in gone}
    free = np.setdiff1d(np.arange(40), rig.rule.slots(np.arange(rig.rule.held)))
    for array in rig.index.arrays.values():
        assert not array.read(free).any()


def test_a_ring_that_has_forgotten_all_starts_anew():
    memory = rc.Memory(rc.RawPixels((1, 2, 2)), capacity=1, admission="ring")
    memory.write(torch.rand(3, 1, 2, 2), y=0, task=0)
    memory.forget(task=0)
    memory.write(torch.rand(3, 1, 2, 2), y=0, task=1)
    assert memory.ids.tolist() == [5]
