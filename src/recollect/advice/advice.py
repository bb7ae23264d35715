"""What the trials say: which memory to use, what it costs, and the numbers behind it."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.advice.candidates import Candidate
    from recollect.advice.trial import Trial
    from recollect.budget import Bill
    from recollect.module import RecollectionModule

COLUMNS = ("memory", "bits", "items", "storage", "with codec", "distortion", "retention, %")


@dataclass(frozen=True, kw_only=True)
class Tried:
    """A candidate, what it takes when it is full, and its trials, one for each seed."""

    candidate: Candidate
    bill: Bill
    trials: tuple[Trial, ...]

    @property
    def retention(self) -> float:
        """Mean over seeds, in percent."""
        return statistics.fmean(trial.retention for trial in self.trials)

    @property
    def spread(self) -> float:
        """Standard deviation over seeds; 0 for a single one."""
        return statistics.stdev(trial.retention for trial in self.trials) if len(self.trials) > 1 else 0.0

    @property
    def distortion(self) -> float:
        """Mean over seeds."""
        return statistics.fmean(trial.distortion for trial in self.trials)

    @property
    def storage(self) -> float:
        """Raw examples that the codes take: the paper's incremental storage."""
        return self.bill.examples["codes"]

    @property
    def storage_with_codec(self) -> float:
        """Raw examples that codes and codec take: the paper's total storage."""
        return self.storage + self.bill.examples["codec"]

    def as_json(self) -> dict[str, Any]:
        """In plain values, named as in the tables of the lab."""
        return {
            "name": self.candidate.name,
            "kind": self.candidate.kind,
            "codec": self.candidate.codec.__name__,
            "code": self.candidate.code,
            "training": self.candidate.training,
            "items": self.candidate.items,
            "bits_per_item": self.candidate.bits_per_item,
            "storage_examples": self.storage,
            "storage_with_codec_examples": self.storage_with_codec,
            "bits": self.bill.bits,
            "retention": {
                "mean": self.retention,
                "std": self.spread,
                "each": [trial.retention for trial in self.trials],
            },
            "distortion": self.distortion,
            "seconds": statistics.fmean(trial.seconds for trial in self.trials),
        }


@dataclass(frozen=True, kw_only=True)
class Advice:
    """Which memory to use. Print it to read it; `build` makes the memory.

    Attributes:
        storage: the budget in raw examples, of codes alone.
        tried: the candidates that were tried on the whole sample, the one that keeps most first.
        left_out: those that a first trial, on the first part of each task in a part of the storage, left out.
        examples: of the sample that each trial learned from.
        held_out: others that it was measured on.
        classes: of the sample.
        tasks: the same.
    """

    storage: float
    tried: tuple[Tried, ...]
    left_out: tuple[Tried, ...]
    examples: int
    held_out: int
    classes: int
    tasks: int

    @property
    def standard_error(self) -> float:
        """Of the difference between two candidates' retention, in points."""
        return standard_error([[trial.retention for trial in each.trials] for each in self.tried], self.held_out)

    @property
    def level(self) -> tuple[Tried, ...]:
        """The candidates that are no further than the standard error behind the one that keeps most, which is first."""
        best = self.tried[0].retention
        return tuple(each for each in self.tried if best - each.retention <= self.standard_error)

    @property
    def chosen(self) -> Tried:
        """The one of those that are level with the lightest codec; of several such the one with least distortion."""
        return min(self.level, key=lambda each: (each.bill.codec, each.distortion))

    @property
    def draw(self) -> bool:
        """Whether another candidate is level with the best."""
        return len(self.level) > 1

    @property
    def runner_up(self) -> Tried | None:
        """The candidate that keeps most of those that are not chosen."""
        return next((each for each in self.tried if each is not self.chosen), None)

    def build(self, *, classes: int | None = None, tasks: int | None = None, seed: int = 0) -> RecollectionModule:
        """The chosen memory, empty, as ``memory`` of the module that trains its codec if that learns.

        Args:
            classes: labels of your stream are 0 to classes - 1; by default those of the sample.
            tasks: of your stream; by default those of the sample.
            seed: of codec and memory.
        """
        classes = self.classes if classes is None else classes
        return self.chosen.candidate.build(classes=classes, tasks=self.tasks if tasks is None else tasks, seed=seed)

    def as_json(self) -> dict[str, Any]:
        """Everything in plain values."""
        return {
            "storage_examples": self.storage,
            "chosen": self.chosen.candidate.name,
            "draw": self.draw,
            "standard_error": self.standard_error,
            "seeds": len(self.tried[0].trials),
            "examples": self.examples,
            "held_out": self.held_out,
            "rows": [each.as_json() for each in self.tried],
            "left_out": [each.as_json() for each in self.left_out],
        }

    def __str__(self) -> str:
        seeds = len(self.tried[0].trials)
        lines = [
            *_table([COLUMNS, *map(_cells, self.tried)]),
            f"{self.examples:,} examples seen once, {self.held_out:,} held out; "
            f"{f'mean and standard deviation of {seeds} seeds' if seeds > 1 else 'one seed'}.",
            "Storage is in raw examples, that of codes and that with the codec; bits are those of an item.",
        ]
        if self.left_out:
            kept = ", ".join(f"{each.candidate.name} {each.retention:.1f} %" for each in self.left_out)
            lines.append(f"Left out after a first, shorter trial: {kept}.")
        return "\n".join([*lines, "", self.sentence])

    @property
    def sentence(self) -> str:
        """The advice in words."""
        chosen, memory, bill = self.chosen, self.chosen.candidate, self.chosen.bill
        beside = bill.examples["labels"] + bill.examples["tasks"] + bill.examples["ids"]
        text = (
            f"Use {memory.name}: {memory.items:,} item{'s' * (memory.items > 1)} of {memory.bits_per_item:,} bits. "
            f"Codes take {_number(chosen.storage)} examples of storage, with the codec "
            f"{_number(chosen.storage_with_codec)}; labels, tasks and ids take {_number(beside)} more. "
        )
        text += f"It keeps {chosen.retention:.1f} %"
        if self.runner_up is None:
            text += "; there is nothing to compare it with."
        elif self.draw:
            others = (each for each in self.level if each is not chosen)
            named = " and ".join(f"{each.candidate.name} ({each.retention:.1f} %)" for each in others)
            lighter = any(each.bill.codec > bill.codec for each in self.level)
            why = "has the lightest codec" if lighter else "loses least of the images"
            error = f"the standard error is {self.standard_error:.1f} points"
            text += f". That is a draw with {named}, for {error}; of these it {why}."
        else:
            lead = chosen.retention - self.runner_up.retention
            text += (
                f", {lead:.1f} points more than {self.runner_up.candidate.name} at a standard error of "
                f"{self.standard_error:.1f}."
            )
        if memory.items > self.examples:
            text += " It has room for more than this sample: for a longer stream, ask again with more of it."
        return text


def standard_error(retention: Sequence[Sequence[float]], held_out: int) -> float:
    """Of the difference of two rows' means: rows are candidates, columns are seeds, the same for all.

    It comes from what is left when each row's and each column's mean are taken off; for two rows that is the standard
    error of their differences. For a single seed it is that of two accuracies on so many examples.

    >>> round(standard_error([[80, 84, 83], [70, 72, 76]], 100), 4) == round(statistics.stdev([10, 12, 7]) / 3**0.5, 4)
    True
    >>> round(standard_error([[80], [70]], 100), 1)
    5.7
    """
    table = np.array(retention, np.float64)
    rows, seeds = table.shape
    if rows == 1:
        return 0.0
    if seeds == 1:
        share = table.max() / 100
        return 100 * math.sqrt(2 * share * (1 - share) / held_out)
    left = table - table.mean(0) - table.mean(1, keepdims=True) + table.mean()
    return math.sqrt(2 / seeds * float((left**2).sum()) / ((rows - 1) * (seeds - 1)))


def _cells(each: Tried) -> tuple[str, ...]:
    spread = f" ± {each.spread:.1f}" if len(each.trials) > 1 else ""
    return (
        each.candidate.name,
        f"{each.candidate.bits_per_item:,}",
        f"{each.candidate.items:,}",
        _number(each.storage),
        _number(each.storage_with_codec),
        f"{each.distortion:.3f}",
        f"{each.retention:.1f}{spread}",
    )


def _number(examples: float) -> str:
    return f"{examples:,.{int(examples < 1000)}f}"


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns side by side, the first to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join([first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))])
        for first, *rest in rows
    ]
