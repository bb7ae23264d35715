"""Examples divided into tasks, and those of each task into what is trained on and what is tested on."""

from __future__ import annotations

import operator
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any, TypeGuard, cast

import numpy as np
import torch

from recollect.checks import IntegerLike, check_at_least, check_flag, check_integers
from recollect.seeding import derived
from recollect.streams.task import Examples, Task

Tasks = IntegerLike | Sequence[Sequence[int]]
Rows = tuple[str, torch.Tensor, torch.Tensor]  # name of a task, which examples it has, and which test examples
MOST = 2**32  # labels and tasks, as a memory takes them


@dataclass(frozen=True, eq=False, kw_only=True)
class Division:
    """How examples become a stream. The arguments are those of `from_arrays`."""

    tasks: Tasks | None
    test_tasks: IntegerLike | None
    test_share: float
    seed: int
    shuffle: bool | None

    def stream(self, pool: Examples, test: Examples | None, names: Sequence[str] = ()) -> list[Task]:
        """The tasks of the examples in ``pool``; without ``test`` a share of them is held out."""
        if not 0 <= self.test_share < 1:
            raise ValueError(f"test_share={self.test_share}: accepted is a share of at least 0 and below 1")
        check_at_least("seed", self.seed, 0)
        if self.shuffle is not None:
            check_flag("shuffle", self.shuffle)
        if test is not None and test.images.shape[1:] != pool.images.shape[1:]:
            shape, expected = (tuple(part.images.shape[1:]) for part in (test, pool))
            raise ValueError(f"test images have shape {shape}: accepted is {expected}, as all others have")
        by_class = self.tasks is None or are_groups(self.tasks) or np.ndim(self.tasks) == 0
        if self.test_tasks is not None and (test is None or by_class):
            raise ValueError("test_tasks is given: accepted is none, but with test, and with tasks for each example")
        divide = self._by_class if by_class else self._by_number
        shuffle = by_class and self.tasks is not None if self.shuffle is None else self.shuffle
        held_out, order = (np.random.default_rng(derived(self.seed, use)) for use in ("held out", "order of a stream"))
        stream = []
        for name, found, given in divide(pool.y, pool.y[:0] if test is None else test.y, names):
            rows, tested = (found, given) if test is not None else self._split(found, pool.y, held_out)
            if test is not None and len(tested) == 0:
                raise ValueError(f"there is nothing to test {name!r} on: accepted are test examples of every task")
            if shuffle:
                rows, tested = (part[torch.from_numpy(order.permutation(len(part)))] for part in (rows, tested))
            parts = ((pool, rows), (pool if test is None else test, tested))
            train, tests = (Examples(part.images[chosen], part.y[chosen]) for part, chosen in parts)
            classes = torch.cat([train.y, tests.y]).unique().tolist()
            stream.append(Task(name=name, train=train, test=tests, classes=tuple(classes)))
        return stream

    def _by_class(self, y: torch.Tensor, test_y: torch.Tensor, names: Sequence[str]) -> list[Rows]:
        """The tasks, where each has all examples of its classes."""
        found = []
        for group in self._groups(y.unique().tolist(), test_y.unique().tolist()):
            wanted = torch.tensor(group)
            rows, tested = (torch.isin(labels, wanted).nonzero()[:, 0] for labels in (y, test_y))
            listed = ", ".join(names[label] if names else str(label) for label in group)
            found.append((listed if names else f"classes {listed}", rows, tested))
        return found if self.tasks is not None else [("all", *found[0][1:])]

    def _groups(self, classes: list[int], tested: list[int]) -> list[list[int]]:
        """The classes of each task."""
        if self.tasks is None:
            return [sorted({*classes, *tested})]
        if not are_groups(self.tasks):
            number = check_at_least("tasks", np.asarray(self.tasks).item(), 1)
            if lost := {*tested} - {*classes}:
                raise ValueError(f"test examples have the class {min(lost)}: accepted are those trained on, {classes}")
            if number > len(classes):
                raise ValueError(f"tasks={number}: accepted are 1 to {len(classes)}, as many as there are classes")
            return [part.tolist() for part in np.array_split(classes, number)]
        groups = [[operator.index(label) for label in group] for group in self.tasks]
        named = [label for group in groups for label in group]
        if unknown := {*named} - {*classes}:
            raise ValueError(f"tasks has the class {min(unknown)}: accepted are those of the examples, {classes}")
        if len({*named}) < len(named) or not all(groups):
            raise ValueError(f"tasks={groups}: accepted are groups of one class or more, each class in one of them")
        return groups

    def _by_number(self, y: torch.Tensor, test_y: torch.Tensor, names: Sequence[str]) -> list[Rows]:
        """The tasks, where each example says which task it is of."""
        numbers = torch.from_numpy(check_integers("tasks", cast("IntegerLike", self.tasks), len(y), MOST))
        others = numbers[:0]
        if len(test_y):
            if self.test_tasks is None:
                raise ValueError("test_tasks=None: accepted is a number for each test example, as tasks has them")
            others = torch.from_numpy(check_integers("test_tasks", self.test_tasks, len(test_y), MOST))
            if lost := {*others.tolist()} - {*numbers.tolist()}:
                raise ValueError(f"test_tasks has the value {min(lost)}: accepted are those that tasks has")
        return [
            (f"task {number}", *((of == number).nonzero()[:, 0] for of in (numbers, others)))
            for number in numbers.unique().tolist()
        ]

    def _split(
        self, rows: torch.Tensor, y: torch.Tensor, rng: np.random.Generator
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """What is trained on, and a share of each class that is held out; both in order."""
        tested = torch.zeros(len(rows), dtype=torch.bool)
        for label in y[rows].unique() if self.test_share else ():
            own = (y[rows] == label).nonzero()[:, 0]
            if len(own) == 1:
                raise ValueError(
                    f"class {int(label)} has a single example in its task: accepted are two or more, so that one can "
                    f"be tested on, or test_share=0"
                )
            count = min(max(round(self.test_share * len(own)), 1), len(own) - 1)
            tested[own[torch.from_numpy(rng.permutation(len(own))[:count])]] = True
        return rows[~tested], rows[tested]


def are_groups(tasks: object) -> TypeGuard[Sequence[Sequence[Any]]]:
    """Whether tasks are groups of classes, and not a number for each example."""
    return (
        isinstance(tasks, Sequence)
        and len(tasks) > 0
        and all(isinstance(group, Sequence | Set) or getattr(group, "ndim", 0) == 1 for group in tasks)
    )
