"""Which examples are held where items differ in size, so that their number is not known beforehand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from recollect.checks import Integers
    from recollect.memory.coded_index import CodedIndex, Records
    from recollect.memory.index import Slots
    from recollect.rebuild import Plain

Keys = npt.NDArray[np.uint64]

MOST = 2**64 - 1  # the largest key
GROWN, STALE = 4, 16  # what codes are like is learned anew if one in so many is new: while there is room, and without


class Keyed:
    """Holds the examples with the smallest keys that fit: of all, or ``by_class`` equally many of each class.

    A key is a number that salt and id give, and that looks as if drawn: so every example seen is held with the same
    probability, whatever its size, to within the room of one item, and nothing is kept for that but a limit. When there
    is no room the item with the largest key goes, by class that of the largest class, and its key is the limit: an
    example with a larger one, of its class, would have gone as well and is not taken. Classes have keys too: of several
    that are as large the one with the largest gives, so that all are as likely to be held where they are too many.

    What is forgotten leaves the limit as it was, and so the chances of all others. Only where nothing is left does the
    rule start anew.
    """

    def __init__(self, index: CodedIndex, salt: int, *, by_class: bool) -> None:
        self.index, self.salt, self.by_class = index, salt, by_class
        self.limits: dict[int, int] = {}  # by class, or for 0 if that of all
        self.fresh = 0  # items that came since that was learned

    @property
    def held(self) -> int:
        """Items held."""
        return self.index.count

    def check(self, tasks: Integers) -> None:
        """All tasks can be taken."""

    def wanted(self, ids: Integers, labels: Integers) -> Integers:
        """The rows of the examples that are below their limit."""
        limits = [self.limits.get(group, MOST) for group in self._groups(labels).tolist()]
        return np.flatnonzero(keys_of(self.salt, ids) < np.array(limits, np.uint64))

    def take(self, records: Records, ids: Integers, labels: Integers) -> None:
        """Hold these examples as far as there is room for them, or items that go before them.

        After an error all is as it was.
        """
        if not len(ids):  # most examples, once the memory is full: nothing to copy for
            return
        before, limits, fresh = self.index.snapshot(), self.limits.copy(), self.fresh
        try:
            self._take(records, ids, labels)
        except BaseException:
            self.index.undo(before)
            self.limits, self.fresh = limits, fresh
            raise

    def _take(self, records: Records, ids: Integers, labels: Integers) -> None:
        start = 0
        while start < len(ids):
            stop = start + self.index.codes.block - self.held % self.index.codes.block  # up to the end of a block
            part = start + self.wanted(ids[start:stop], labels[start:stop])
            if len(part) and not self._put(records.some(part)):
                for row in part[:, None]:
                    self._take_one(records.some(row), ids[row], labels[row])
            start = stop

    def _take_one(self, record: Records, number: Integers, label: Integers) -> None:
        key, group = keys_of(self.salt, number), self._groups(label)
        while len(self.wanted(number, label)) and not self._put(record):
            if not self._learn_if_new(STALE):
                keys, groups = self._keys_and_groups(np.arange(self.held))
                first = self._first_to_go(np.append(keys, key), np.append(groups, group))
                if first == self.held or self._put(record, np.array([first])):
                    return
                self._drop(np.array([first]))

    def _put(self, records: Records, slots: Slots | None = None) -> bool:
        """Add records, or put them in the place of others, if there is room."""
        done = self.index.add(records) if slots is None else self.index.replace(slots, records)
        if done:
            self.fresh += len(records.codes)
            self._learn_if_new(GROWN)
        return done

    def _learn_if_new(self, share: int) -> bool:
        """Learn what codes are like if at least one in ``share`` items is new."""
        due = self.fresh > 0 and share * self.fresh >= self.held
        if due:
            self.index.learn()
            self.fresh = 0
        return due

    def _drop(self, slots: Slots) -> None:
        """Drop items, and in the rare case that the others take more without them, some of these as well."""
        while not self.index.drop(slots):
            others = np.setdiff1d(np.arange(self.held), slots)
            slots = np.append(slots, others[self._first_to_go(*self._keys_and_groups(others))])

    def _first_to_go(self, keys: Keys, groups: Integers) -> int:
        """Which of these items goes first; its key is the limit from now on."""
        among = np.arange(len(keys))
        if self.by_class:
            classes, counts = np.unique(groups, return_counts=True)
            classes = classes[counts == counts.max()]
            among = np.flatnonzero(groups == classes[keys_of(self.salt, ~classes).argmax()])
        first = int(among[keys[among].argmax()])
        self.limits[int(groups[first])] = int(keys[first])
        return first

    def _keys_and_groups(self, slots: Slots) -> tuple[Keys, Integers]:
        ids, labels = self.index.ids.read_integers(slots), slots
        if self.by_class:
            labels = self.index.labels.read_integers(slots)
        return keys_of(self.salt, ids), self._groups(labels)

    def _groups(self, labels: Integers) -> Integers:
        return labels if self.by_class else np.zeros(len(labels), np.int64)

    def forget(self, ranks: Integers) -> None:
        """The last items move to the slots that are free now. What is gone has no part in what is learned either."""
        self._drop(ranks)
        while not self.index.learn(anyway=True):
            self._drop(np.array([self._first_to_go(*self._keys_and_groups(np.arange(self.held)))]))
        self.fresh = 0
        self.limits = self.limits if self.held else {}

    def state(self) -> Plain:
        """Salt, limits and counts."""
        return {"salt": self.salt, "limits": [*self.limits.items()], "fresh": self.fresh, "held": self.held}

    def restore(self, state: Plain) -> None:
        """Take over what `state` gave."""
        self.salt, self.fresh = int(state["salt"]), int(state["fresh"])
        self.limits = {int(group): int(limit) for group, limit in state["limits"]}
        if any(not 0 <= number <= MOST for number in (self.salt, self.fresh, *self.limits.values())):
            raise ValueError(f"salt, limits and counts: accepted are 0 to {MOST}")
        if state["held"] != self.held:
            raise ValueError(f"{self.held} records, and not {state['held']}")
        slots = np.arange(self.held)
        labels = self.index.labels.read_integers(slots) if self.by_class else slots
        if len(self.wanted(self.index.ids.read_integers(slots), labels)) != self.held:
            raise ValueError("items with keys that are not below their limit")

    def slots(self, ranks: Integers) -> Slots:
        """Slots are filled from the first."""
        return ranks

    def ranks_by_task(self) -> dict[int, range] | None:
        """Tasks are mixed."""
        return None


def keys_of(salt: int, numbers: Integers) -> Keys:
    """A key for each number, no two the same: SplitMix64 (Steele, Lea and Flood 2014) started at ``salt``.

    >>> keys_of(0, np.arange(2))
    array([16294208416658607535,  7960286522194355700], dtype=uint64)
    """
    mixed = (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(salt)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
