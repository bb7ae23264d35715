"""Drawing slots evenly, at a cost that does not grow with the number of items."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from recollect.memory.admission import Admission
    from recollect.memory.index import BitArray, Slots

SCAN = 1 << 20  # items looked through at once


def draw(n: int, admission: Admission, rng: np.random.Generator, *, replace: bool) -> Slots:
    """``n`` slots of the items held."""
    held = admission.held
    if held == 0:
        raise ValueError("the memory is empty: write to it before sampling from it")
    if replace:
        return admission.slots(rng.integers(0, held, n))
    if n > held:
        raise ValueError(f"n={n} without replacement: accepted are 1 to {held}, the items held")
    return admission.slots(rng.choice(held, n, replace=False))


def draw_from_task(
    n: int, task: int, admission: Admission, tasks: BitArray, rng: np.random.Generator, *, replace: bool
) -> Slots:
    """``n`` slots of one task: drawn from all until enough are of the task, so that nothing is kept by task.

    This takes about n draws for each share that the task has of the memory. When that comes to more than there are
    items, the items are looked through instead.
    """
    found = np.empty(0, np.int64)
    drawn, block = 0, 4 * n
    while drawn < admission.held:
        slots = admission.slots(rng.integers(0, admission.held, block))
        found = np.concatenate([found, slots[tasks.read_integers(slots) == task]])
        if not replace:
            found = np.array([*dict.fromkeys(found.tolist())], np.int64)
        if len(found) >= n:
            return found[:n]
        drawn, block = drawn + block, 2 * block
    members = _slots_of_task(task, admission, tasks)
    if len(members) == 0:
        raise ValueError(f"task={task}: the memory holds no item of this task")
    if not replace and n > len(members):
        raise ValueError(f"n={n} without replacement: accepted are 1 to {len(members)}, the items held of task {task}")
    return rng.choice(members, n, replace=replace)


def _slots_of_task(task: int, admission: Admission, tasks: BitArray) -> Slots:
    parts = []
    for start in range(0, admission.held, SCAN):
        slots = admission.slots(np.arange(start, min(start + SCAN, admission.held)))
        parts.append(slots[tasks.read_integers(slots) == task])
    return np.concatenate(parts) if parts else np.empty(0, np.int64)
