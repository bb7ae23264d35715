"""Drawing slots evenly, at a cost that does not depend on the number of items."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection

    from recollect.checks import Integers
    from recollect.memory.admission import Admission
    from recollect.memory.index import BitArray, Slots
    from recollect.memory.keyed import Keyed

SCAN = 1 << 20  # items looked through at once


def draw(n: int, admission: Admission | Keyed, rng: np.random.Generator, *, replace: bool) -> Slots:
    """``n`` slots of the items held."""
    return admission.slots(_draw_ranks(n, range(admission.held), rng, replace, "held"))


def draw_from_task(
    n: int, task: int, admission: Admission | Keyed, tasks: BitArray, rng: np.random.Generator, *, replace: bool
) -> Slots:
    """``n`` slots of one task.

    A ring knows them. With the other rules slots are drawn from all until enough are of the task, so that nothing need
    be kept by task: that takes about as many draws as the task's share of the memory is small. Should it come to more
    draws than there are items, as for a task with a handful of items in millions, the items are looked through instead.
    """
    held = f"held of task {task}"
    if (ranks := admission.ranks_by_task()) is not None:
        return admission.slots(_draw_ranks(n, ranks.get(task, range(0)), rng, replace, held))
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
    return members[_draw_ranks(n, range(len(members)), rng, replace, held)]


def draw_from_each_task(
    most: int | None, but: Collection[int], admission: Admission | Keyed, tasks: BitArray, rng: np.random.Generator
) -> Slots:
    """For each task held, all its slots or ``most`` of them, task after task; those of the tasks ``but`` left out.

    A ring knows the slots of a task; with the other rules all items are looked through.
    """
    parts = [np.empty(0, np.int64)]
    for task, ranks in sorted(_ranks_by_task(admission, tasks).items()):
        if task not in but:
            parts.append(ranks if most is None or len(ranks) <= most else rng.choice(ranks, most, replace=False))
    return admission.slots(np.concatenate(parts))


def _ranks_by_task(admission: Admission | Keyed, tasks: BitArray) -> dict[int, Integers]:
    if (ranks := admission.ranks_by_task()) is not None:
        return {task: np.arange(run.start, run.stop) for task, run in ranks.items()}
    stored = tasks.read_integers(admission.slots(np.arange(admission.held)))
    return {int(task): np.flatnonzero(stored == task) for task in np.unique(stored)}


def _draw_ranks(n: int, ranks: range, rng: np.random.Generator, replace: bool, which: str) -> Integers:
    if len(ranks) == 0:
        raise ValueError(f"n={n}: there are no items {which}")
    if replace:
        return rng.integers(ranks.start, ranks.stop, n)
    if n > len(ranks):
        raise ValueError(f"n={n} without replacement: accepted are 1 to {len(ranks)}, the items {which}")
    return ranks.start + rng.choice(len(ranks), n, replace=False)


def _slots_of_task(task: int, admission: Admission | Keyed, tasks: BitArray) -> Slots:
    parts = []
    for start in range(0, admission.held, SCAN):
        slots = admission.slots(np.arange(start, min(start + SCAN, admission.held)))
        parts.append(slots[tasks.read_integers(slots) == task])
    return np.concatenate(parts) if parts else np.empty(0, np.int64)
