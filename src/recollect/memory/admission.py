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
    from recollect.rebuild import Plain

NOT_KEPT = -1


def last_of_each(slots: Slots) -> Integers:
    """The rows that will be stored: where several want one slot, the last has it."""
    last = {slot: row for row, slot in enumerate(slots.tolist()) if slot != NOT_KEPT}
    return np.array(sorted(last.values()), np.int64)


class Admission(Protocol):
    """A rule. ``held`` items sit in the slots that `slots` gives for the ranks 0 to held - 1."""

    index: PackedIndex

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

    def forget(self, ranks: Integers) -> None:
        """Drop the items of these ranks, each once, and leave zeros where there is nothing any more."""
        ...

    def state(self) -> Plain:
        """All that the rule knows, in plain values for a file."""
        ...

    def restore(self, state: Plain) -> None:
        """Take over what `state` gave."""
        ...

    def slots(self, ranks: Integers) -> Slots:
        """The slots of held items, counted from 0."""
        ...

    def ranks_by_task(self) -> dict[int, range] | None:
        """The ranks of each task's items, if the rule keeps tasks apart; None if it does not."""
        ...


class Reservoir:
    """Every example seen so far is held with the same probability (Vitter's algorithm R).

    To the draws a forgotten item is still there until another takes its slot, so that all others keep the probability
    that they would have had. Only where nothing is left does the rule start anew.
    """

    def __init__(self, capacity: int, index: PackedIndex) -> None:
        self.capacity, self.index = capacity, index
        self.held = self.seen = 0
        self._next = 0, 0

    def check(self, tasks: Integers) -> None:
        """All tasks can be taken."""

    def decide(self, labels: Integers, tasks: Integers, rng: np.random.Generator) -> Slots:
        """The t-th example takes slot t while there is room, then a slot drawn from t, if the memory has it."""
        seen = self.seen + len(labels)
        order = np.arange(self.seen, seen)
        slots = (rng.random(len(order)) * (order + 1)).astype(np.int64)
        if (room := self.capacity - self.seen) > 0:
            slots[:room] = order[:room]
        slots[slots >= self.capacity] = NOT_KEPT
        held = min(seen, self.capacity)
        if self.held < min(self.seen, self.capacity):
            held = self._fill_gaps(slots)
        self._next = held, seen
        return slots

    def _fill_gaps(self, slots: Slots) -> int:
        """Change slots that hold nothing, since items were forgotten, to the first free one. Returns how many are held.

        Items sit in the first slots, whichever were forgotten: all slots are equally likely to be drawn.
        """
        held = self.held
        for example in np.flatnonzero(slots != NOT_KEPT):
            if slots[example] >= held:
                slots[example], held = held, held + 1
        return held

    def commit(self) -> None:
        """Count what was seen."""
        self.held, self.seen = self._next

    def forget(self, ranks: Integers) -> None:
        """The last items move to the slots that are free now."""
        self.held = close_gaps(self.index, self.held, ranks)
        self.seen = self.seen if self.held else 0

    def state(self) -> Plain:
        """The two counts."""
        return {"held": self.held, "seen": self.seen}

    def restore(self, state: Plain) -> None:
        """Take over what `state` gave."""
        self.held, self.seen = int(state["held"]), int(state["seen"])
        if not 0 <= self.held <= min(self.capacity, self.seen):
            raise ValueError(f"{state} for a reservoir of {self.capacity}: accepted is held <= seen and <= capacity")

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

    As in a `Reservoir`, to the draws a forgotten item is still there until another takes its slot. Its slots are those
    from ``start`` on.
    """

    def __init__(self, capacity: int, classes: int, index: PackedIndex, start: int = 0) -> None:
        self.capacity, self.index, self.start = capacity, index, start
        none = np.zeros(classes, np.int64)
        self.counts = _Counts(none, none.copy(), none.copy(), np.zeros(classes, np.bool_))
        self._next = self.counts

    @property
    def held(self) -> int:
        """Items held."""
        return int(self.counts.held.sum() - self.counts.gone.sum())

    def check(self, tasks: Integers) -> None:
        """All tasks can be taken."""

    def decide(self, labels: Integers, tasks: Integers, rng: np.random.Generator) -> Slots:
        """One example after the other, since each changes the balance."""
        counts = self._next = self.counts.copy()
        written: dict[int, int] = {}  # slot -> label, of the examples before this one in the batch
        slots = np.full(len(labels), NOT_KEPT)
        total, filled = int(counts.held.sum()), self.held
        for example, label in enumerate(labels.tolist()):
            counts.seen[label] += 1
            if total < self.capacity:
                slot, total = filled, total + 1
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
                if counts.gone[giving] and rng.random() * counts.held[giving] < counts.gone[giving]:
                    slot = filled
                    counts.gone[giving] -= 1
                else:
                    slot = self._find(giving, counts, written, filled, rng)
                counts.held[giving] -= 1
                counts.held[label] += 1
            filled = max(filled, slot + 1)
            written[slot] = label
            slots[example] = self.start + slot
        return slots

    def _find(self, label: int, counts: _Counts, written: dict[int, int], filled: int, rng: np.random.Generator) -> int:
        """A random slot that holds ``label``, by drawing: full classes are large, so few draws are needed."""
        while True:
            drawn = rng.integers(0, filled, 4 * -(-filled // int(counts.held[label] - counts.gone[label])))
            labels = self.index.labels.read_integers(self.start + drawn).tolist()
            for slot, stored in zip(drawn.tolist(), labels, strict=True):
                if written.get(slot, stored) == label:
                    return slot

    def commit(self) -> None:
        """Take over the counts."""
        self.counts = self._next

    def forget(self, ranks: Integers) -> None:
        """The last items move to the slots that are free now."""
        labels, each = np.unique(self.index.labels.read_integers(self.slots(ranks)), return_counts=True)
        left = close_gaps(self.index, self.held, ranks, self.start)
        self.counts.gone[labels] += each
        if left == 0:
            self.counts = _Counts(*(np.zeros_like(values) for values in vars(self.counts).values()))

    def state(self) -> Plain:
        """The counts of each class."""
        return {name: values.tolist() for name, values in vars(self.counts).items()}

    def restore(self, state: Plain) -> None:
        """Take over what `state` gave."""
        counts = _Counts(**{name: np.array(state[name], values.dtype) for name, values in vars(self.counts).items()})
        ordered = (counts.gone >= 0) & (counts.gone <= counts.held) & (counts.held <= counts.seen)
        if counts.held.shape != self.counts.held.shape or not ordered.all() or counts.held.sum() > self.capacity:
            raise ValueError(f"counts of {len(counts.held)} classes that cannot be those of {self.capacity} items")
        self.counts = counts
        labels = self.index.labels.read_integers(self.slots(np.arange(self.held)))
        if not np.array_equal(np.bincount(labels, minlength=len(counts.held)), counts.held - counts.gone):
            raise ValueError("counts of classes that are not those of the labels")

    def slots(self, ranks: Integers) -> Slots:
        """Slots are filled from the first."""
        return self.start + ranks

    def ranks_by_task(self) -> dict[int, range] | None:
        """Tasks are mixed."""
        return None


@dataclass
class _Counts:
    held: Integers  # with those that are gone
    gone: Integers  # forgotten, until another takes their slot
    seen: Integers
    full: npt.NDArray[np.bool_]

    def copy(self) -> _Counts:
        return _Counts(*(values.copy() for values in vars(self).values()))


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
        """Move to new runs if the shares changed, and leave no record behind."""
        left: list[Slots] = []
        taken: list[Slots] = []
        for task, old in self.rings.items():
            new = self._next[task]
            if new.share != old.share:
                # Shares only shrink, so runs move towards the first slot: none is written over before it was moved.
                newest = old.newest(new.share)
                targets = new.start + np.arange(len(newest))
                self.index.move(newest, targets)
                left.append(old.newest(old.held))
                taken.append(targets)
        if left:
            # A copy that stayed would outlive its item: forgetting knows only the slots of items.
            self.index.clear(np.setdiff1d(np.concatenate(left), np.concatenate(taken)))
        self.rings = self._next

    def forget(self, ranks: Integers) -> None:
        """What a task has left moves to the start of its run, oldest first."""
        gone = set(self.slots(ranks).tolist())
        for task, run in self.rings.items():
            slots = run.newest(run.held)
            left = np.array([slot for slot in slots.tolist() if slot not in gone], np.int64)
            if len(left) < run.held:
                self.index.move(left, run.start + np.arange(len(left)))
                self.index.clear(run.start + np.arange(len(left), run.held))
                self.rings[task] = _Run(run.start, run.share, len(left), len(left))
        if not self.held:  # no task has a share in what is to come
            self.rings = {}

    def state(self) -> Plain:
        """The runs in order: task, start, share, held, after."""
        return {"rings": [[task, run.start, run.share, run.held, run.after] for task, run in self.rings.items()]}

    def restore(self, state: Plain) -> None:
        """Take over what `state` gave."""
        self.rings = {task: _Run(*numbers) for task, *numbers in state["rings"]}
        end = 0
        for run in self.rings.values():
            if not (run.start >= end and 0 <= run.held <= run.share and 0 <= run.after < run.share):
                raise ValueError(f"{run}: accepted are runs one behind the other, no fuller than their share")
            end = run.start + run.share
        if end > self.capacity:
            raise ValueError(f"runs up to slot {end} in a memory of {self.capacity}")
        tasks = self.index.tasks.read_integers(self.slots(np.arange(self.held)))
        if not np.array_equal(tasks, np.repeat([*self.rings], [run.held for run in self.rings.values()])):
            raise ValueError("runs of tasks that are not those of the records")

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


def close_gaps(index: PackedIndex, held: int, gone: Integers, start: int = 0) -> int:
    """Drop items that sit in the slots from ``start`` on: the last ones move up. Returns how many are left."""
    left = held - len(gone)
    stay = np.ones(held, np.bool_)
    stay[gone] = False
    index.move(start + left + np.flatnonzero(stay[left:]), start + np.flatnonzero(~stay[:left]))
    index.clear(start + np.arange(left, held))
    return left
