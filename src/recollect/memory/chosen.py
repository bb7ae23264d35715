"""Admission for whoever chooses by themselves what stays, such as exemplars of classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from recollect.memory.admission import Balanced

if TYPE_CHECKING:
    from recollect.checks import Integers
    from recollect.memory.index import PackedIndex, Slots
    from recollect.rebuild import Plain


class Chosen:
    """What was chosen last stays until the next choice; what came since is `Balanced` in the slots behind it.

    Chosen items have the first ranks, in the order in which they were named. The slots of those that are forgotten stay
    free until the next choice.
    """

    def __init__(self, capacity: int, classes: int, index: PackedIndex) -> None:
        self.capacity, self.classes, self.index = capacity, classes, index
        self.kept = 0  # chosen items
        self.since = Balanced(capacity, classes, index)

    @property
    def held(self) -> int:
        """Items held."""
        return self.kept + self.since.held

    def check(self, tasks: Integers) -> None:
        """All tasks can be taken."""

    def decide(self, labels: Integers, tasks: Integers, rng: np.random.Generator) -> Slots:
        """The choice stands, so new examples compete with those that came since."""
        return self.since.decide(labels, tasks, rng)

    def commit(self) -> None:
        """Take over the counts."""
        self.since.commit()

    def keep(self, ranks: Integers) -> None:
        """Choose these items, each once, and drop all others."""
        slots, before = self.slots(ranks), self.slots(np.arange(self.held))
        self.kept = len(ranks)
        self.index.move(slots, np.arange(self.kept))
        self.index.clear(before[before >= self.kept])
        self.since = self._since(self.kept)

    def _since(self, start: int) -> Balanced:
        return Balanced(self.capacity - start, self.classes, self.index, start)

    def forget(self, ranks: Integers) -> None:
        """Chosen items that are left move up and stay in their order."""
        self.since.forget(ranks[ranks >= self.kept] - self.kept)
        left = np.setdiff1d(np.arange(self.kept), ranks)
        self.index.move(left, np.arange(len(left)))
        self.index.clear(np.arange(len(left), self.kept))
        self.kept = len(left)

    def state(self) -> Plain:
        """How many were chosen, where the others start, and their counts."""
        return {"kept": self.kept, "start": self.since.start, "since": self.since.state()}

    def restore(self, state: Plain) -> None:
        """Take over what `state` gave."""
        kept, start = int(state["kept"]), int(state["start"])
        if not 0 <= kept <= start <= self.capacity:
            raise ValueError(f"kept={kept}, start={start} of {self.capacity}: accepted is kept <= start <= capacity")
        self.kept, self.since = kept, self._since(start)
        self.since.restore(state["since"])

    def slots(self, ranks: Integers) -> Slots:
        """First what was chosen."""
        return np.where(ranks < self.kept, ranks, self.since.slots(ranks - self.kept))

    def ranks_by_task(self) -> dict[int, range] | None:
        """Tasks are mixed."""
        return None
