"""A look at what a memory holds: nothing is drawn at random, and nothing changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from recollect.checks import check_at_least
from recollect.memory.erasure import matching

if TYPE_CHECKING:
    from recollect.checks import IntegerLike
    from recollect.memory.batch import Batch
    from recollect.memory.index import BitArray
    from recollect.memory.memory import Memory


def items_by_task(memory: Memory) -> dict[int, int]:
    """How many items of each task are held.

    >>> import recollect as rc, torch
    >>> memory = rc.Memory(rc.RawPixels((1, 8, 8)), capacity=50)
    >>> ids = memory.write(torch.rand(9, 1, 8, 8), y=0, task=torch.arange(9) // 5)
    >>> items_by_task(memory), items_by_class(memory)
    ({0: 5, 1: 4}, {0: 9})
    """
    return _counts(memory, memory._index.tasks)


def items_by_class(memory: Memory) -> dict[int, int]:
    """How many items of each class are held, where targets are classes."""
    if not memory.classes:
        return {}
    return _counts(memory, memory._index.labels)


def overview(
    memory: Memory, most: int, *, ids: IntegerLike | None = None, task: int | None = None, label: int | None = None
) -> Batch:
    """Up to ``most`` recollections, the oldest first and evenly spread over all items, or those for which all holds.

    >>> import recollect as rc, torch
    >>> memory = rc.Memory(rc.RawPixels((1, 8, 8)), capacity=50)
    >>> ids = memory.write(torch.rand(41, 1, 8, 8), y=torch.arange(41) % 2)
    >>> overview(memory, 5).ids.tolist(), overview(memory, 3, label=1).ids.tolist()
    ([0, 10, 20, 30, 40], [1, 21, 39])
    """
    check_at_least("most", most, 1)
    slots = memory._slots
    given = {"ids": ids, "task": task, "label": label}
    rules = {name: value for name, value in given.items() if value is not None}
    if rules:
        limits = {"ids": memory.seen, "task": memory.tasks, "label": memory.classes}
        slots = slots[matching(memory._index, slots, rules, limits)]
    if not len(slots):
        which = " and ".join(f"{name} {value}" for name, value in rules.items())
        raise ValueError(f"no items{f' of {which}' * bool(which)} are held")
    slots = slots[np.argsort(memory._index.ids.read_integers(slots))]
    spread = np.linspace(0, len(slots) - 1, min(most, len(slots))).round().astype(np.int64)
    return memory._recollect(slots[spread])


def _counts(memory: Memory, array: BitArray) -> dict[int, int]:
    stored = array.read_integers(memory._slots)
    numbers, counts = np.unique(stored, return_counts=True)
    return dict(zip(numbers.tolist(), counts.tolist(), strict=True))
