"""Which items to erase, and what is kept on record about it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Self

import numpy as np

from recollect.checks import as_ids, check_integers

if TYPE_CHECKING:
    from collections.abc import Mapping, Set

    from recollect.checks import IntegerLike, Integers
    from recollect.memory.coded_index import CodedIndex
    from recollect.memory.index import PackedIndex, Slots

    Rules = Mapping[str, IntegerLike | Set[int] | None]


@dataclass(frozen=True)
class Erasure:
    """A line of the audit: when how many items were erased by which rule, never what they were."""

    time: str
    items: int
    rule: str

    @classmethod
    def now(cls, items: int, rules: Rules) -> Self:
        """A line with the time of this moment. Ids are not told: they would say what was erased."""
        given = (name if name == "ids" else f"{name}={value}" for name, value in rules.items() if value is not None)
        return cls(datetime.now(UTC).isoformat(timespec="seconds"), items, " and ".join(given))


def matching(index: PackedIndex | CodedIndex, slots: Slots, rules: Rules, limits: Mapping[str, int]) -> Integers:
    """The ranks of the items in ``slots`` for which all rules hold; ids, tasks and labels are below their limits."""
    given = {name: value for name, value in rules.items() if value is not None}
    if not given:
        raise ValueError("nothing to forget was named: accepted are ids, task and label")
    if "label" in given and not limits["label"]:
        raise ValueError(f"label={given['label']}: accepted are ids and task, since the memory keeps no classes")
    arrays = {"ids": index.ids, "task": index.tasks, "label": index.labels}
    found = np.ones(len(slots), np.bool_)
    for name, value in given.items():
        numbers = as_ids(value)
        wanted = check_integers(name, numbers, len(numbers) if name == "ids" else 1, limits[name])
        found &= np.isin(arrays[name].read_integers(slots), wanted)
    return np.flatnonzero(found)
