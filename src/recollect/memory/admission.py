"""Which example gets which slot: reservoir, ring per task, balanced per class.

Each rule first decides, and keeps what it decided aside until it is told to `commit`, once the records are ready: an
error in between leaves everything as it was. None of them keeps anything for each item: a few counters suffice, and
slots of a class are found by drawing until one fits.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from recollect.checks import Integers
    from recollect.memory.index import PackedIndex, Slots

NOT_KEPT = -1


class Admission(Protocol):
    """A rule. ``held`` items sit in the slots that `slots` gives for the ranks 0 to held - 1."""

    @property
    def held(self) -> int:
        """Items held."""
        ...

    def check(self, tasks: Integers) -> None:
        """Raise an error if examples of these tasks cannot be taken."""
        ...

    def decide(self, labels: Integers, tasks: Integers, rng: np.random.Generator) -> Slots:
        """A slot for each example in order, or NOT_KEPT; a later example may be given the slot of an earlier one."""
        ...

    def commit(self) -> None:
        """Carry out what was decided last, just before the records are written."""
        ...

    def slots(self, ranks: Integers) -> Slots:
        """The slots of held items, counted from 0."""
        ...

    def ranks_by_task(self) -> dict[int, range] | None:
        """The ranks of each task's items, if the rule keeps tasks apart; None if it does not."""
        ...


class Reservoir:
    """Every example seen so far is held with the same probability (Vitter's algorithm R)."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.held = self.seen = 0
        self._next_seen = 0

    def check(self, tasks: Integers) -> None:
        """All tasks can be taken."""

    def decide(self, labels: Integers, tasks: Integers, rng: np.random.Generator) -> Slots:
        """The t-th example takes slot t while there is room, then a slot drawn from t, if the memory has it."""
        self._next_seen = self.seen + len(labels)
        order = np.arange(self.seen, self._next_seen)
        slots = (rng.random(len(order)) * (order + 1)).astype(np.int64)
        if (room := self.capacity - self.seen) > 0:
            slots[:room] = order[:room]
        slots[slots >= self.capacity] = NOT_KEPT
        return slots

    def commit(self) -> None:
        """Count what was seen."""
        self.seen = self._next_seen
        self.held = min(self.seen, self.capacity)

    def slots(self, ranks: Integers) -> Slots:
        """Slots are filled from the first."""
        return ranks

    def ranks_by_task(self) -> dict[int, range] | None:
        """Tasks are mixed."""
        return None


class Balanced:
    """As many items of each class as can be; within a class every example seen is held with the same probability.

    Class-balancing reservoir sampling: with the memory full, a new example takes the place of a random one of the
    largest class. A class that has once been the largest is full: its examples compete with each other only. When there
    are more classes than slots, every class seen is equally likely to be one of those held.
    """

    def __init__(self, capacity: int, classes: int, index: PackedIndex) -> None:
        self.capacity, self.index = capacity, index
        self.state = _Counts(np.zeros(classes, np.int64), np.zeros(classes, np.int64), np.zeros(classes, bool))
        self._next = self.state

    @property
    def held(self) -> int:
        """Items held."""
        return int(self.state.held.sum())

    def check(self, tasks: Integers) -> None:
        """All tasks can be taken."""

    def decide(self, labels: Integers, tasks: Integers, rng: np.random.Generator) -> Slots:
        """One example after the other, since each changes the balance."""
        counts = self._next = self.state.copy()
        written: dict[int, int] = {}  # slot -> label, of the examples before this one in the batch
        slots = np.full(len(labels), NOT_KEPT)
        total = self.held
        for example, label in enumerate(labels.tolist()):
            counts.seen[label] += 1
            if total < self.capacity:
                slot, total = total, total + 1
                counts.held[label] += 1
            else:
                largest = counts.held.max()
                counts.full |= counts.held == largest
                if not counts.full[label] and largest == 1:
                    # Each class in memory has one item left, so this class is one too many: a reservoir of classes.
                    counts.full[label] = rng.random() * np.count_nonzero(counts.seen) >= self.capacity
                if not counts.full[label]:
                    giving = int(rng.choice(np.flatnonzero(counts.held == largest)))
                elif rng.random() * counts.seen[label] < counts.held[label]:
                    giving = label
                else:
                    continue
                slot = self._find(giving, counts, written, rng)
                counts.held[giving] -= 1
                counts.held[label] += 1
            written[slot] = label
            slots[example] = slot
        return slots

    def _find(self, label: int, counts: _Counts, written: dict[int, int], rng: np.random.Generator) -> int:
        """A random slot that holds ``label``, by drawing: full classes are large, so few draws are needed."""
        while True:
            drawn = rng.integers(0, self.capacity, 4 * -(-self.capacity // int(counts.held[label])))
            labels = self.index.labels.read_integers(drawn).tolist()
            for slot, stored in zip(drawn.tolist(), labels, strict=True):
                if written.get(slot, stored) == label:
                    return slot

    def commit(self) -> None:
        """Take over the counts."""
        self.state = self._next

    def slots(self, ranks: Integers) -> Slots:
        """Slots are filled from the first."""
        return ranks

    def ranks_by_task(self) -> dict[int, range] | None:
        """Tasks are mixed."""
        return None


@dataclass
class _Counts:
    held: Integers
    seen: Integers
    full: npt.NDArray[np.bool_]

    def copy(self) -> _Counts:
        return _Counts(self.held.copy(), self.seen.copy(), self.full.copy())


class Ring:
    """The most recent examples of each task, an equal share of the slots for each task seen so far.

    Each task has a run of slots of its own and overwrites its oldest. When a new task comes, shares shrink: every task
    keeps its most recent examples and moves to its new run.
    """

    def __init__(self, capacity: int, index: PackedIndex) -> None:
        self.capacity, self.index = capacity, index
        self.rings: dict[int, _Run] = {}  # by task, in the order of their first example
        self._next = self.rings

    def _order(self, tasks: Integers) -> list[int]:
        """All tasks with these, in the order of their first example."""
        return [*dict.fromkeys([*self.rings, *tasks.tolist()])]

    def check(self, tasks: Integers) -> None:
        """Each task needs a slot."""
        if (count := len(self._order(tasks))) > self.capacity:
            raise ValueError(f"{count} tasks and capacity={self.capacity}: a ring needs a slot for each task")

    @property
    def held(self) -> int:
        """Items held."""
        return sum(run.held for run in self.rings.values())

    def decide(self, labels: Integers, tasks: Integers, rng: np.random.Generator) -> Slots:
        """Examples of a task take the slots of its run one after the other, round and round."""
        order = self._order(tasks)
        share = self.capacity // len(order)
        slots = np.empty(len(tasks), np.int64)
        new = set(tasks.tolist())
        self._next = {}
        for place, task in enumerate(order):
            old = self.rings.get(task, _Run(0, share, 0, 0))
            if task not in new and share == old.share:
                self._next[task] = old
                continue
            held = min(old.held, share)
            after = old.after if share == old.share else held % share
            mine = tasks == task
            count = int(mine.sum())
            slots[mine] = place * share + (after + np.arange(count)) % share
            self._next[task] = _Run(place * share, share, min(share, held + count), (after + count) % share)
        return slots

    def commit(self) -> None:
        """Move to new runs if the shares changed."""
        for task, old in self.rings.items():
            new = self._next[task]
            if new.share != old.share:
                # Shares only shrink, so runs move towards the first slot: none is written over before it was moved.
                newest = old.newest(new.share)
                self.index.move(newest, new.start + np.arange(len(newest)))
        self.rings = self._next

    def slots(self, ranks: Integers) -> Slots:
        """Run after run."""
        held = np.array([run.held for run in self.rings.values()], np.int64)
        starts = np.array([run.start for run in self.rings.values()], np.int64)
        ends = held.cumsum()
        run = ends.searchsorted(ranks, side="right")
        return starts[run] + ranks - (ends - held)[run]

    def ranks_by_task(self) -> dict[int, range] | None:
        """The ranks of a task follow each other, in the order of the runs."""
        held = [run.held for run in self.rings.values()]
        ends = itertools.accumulate(held)
        return {task: range(end - count, end) for task, count, end in zip(self.rings, held, ends, strict=True)}


@dataclass(frozen=True)
class _Run:
    start: int
    share: int
    held: int
    after: int  # where the next example goes, counted from the start

    def newest(self, count: int) -> Slots:
        """The slots of the newest ``count`` items, oldest of them first."""
        count = min(count, self.held)
        return self.start + (self.after - count + np.arange(count)) % self.share
