"""What the trials say: which memory to use, what it costs, and the numbers behind it."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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
        return spread_of([trial.retention for trial in self.trials])

    @property
    def standard_error(self) -> float:
        """Of the mean."""
        return error_of([trial.retention for trial in self.trials], self.trials[-1].held_out)

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
                "standard_error": self.standard_error,
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
        first: first trials, on a quarter of the sample in a quarter of the storage, or in more where coded memories
            would hold too little to be coded well, of kinds that had more than two candidates; the best two of a kind
            went on.
        without: retention without a memory, for each seed.
        examples: of the sample that each trial learned from.
        held_out: others that it was measured on.
        classes: of the sample.
        tasks: the same.
    """

    storage: float
    tried: tuple[Tried, ...]
    first: tuple[Tried, ...]
    without: tuple[float, ...]
    examples: int
    held_out: int
    classes: int
    tasks: int

    @property
    def level(self) -> tuple[Tried, ...]:
        """The best, which is first, and those no further behind than the standard error of their difference to it."""
        best = self.tried[0]
        others = (each for each in self.tried[1:] if best.retention - each.retention <= error_between(best, each))
        return (best, *others)

    @property
    def chosen(self) -> Tried:
        """The one of those that are level with the lightest codec; of several such the one with least distortion."""
        return min(self.level, key=lambda each: (each.bill.codec, each.distortion))

    @property
    def draw(self) -> bool:
        """Whether another candidate is level with the best."""
        return len(self.level) > 1

    @property
    def tells(self) -> bool:
        """Whether some memory keeps more than none does, beyond the standard error of the difference."""
        best, error = self.tried[0], error_of(self.without, self.held_out)
        return best.retention - statistics.fmean(self.without) > math.hypot(best.standard_error, error)

    @property
    def runner_up(self) -> Tried | None:
        """The candidate that keeps most of those that are not chosen."""
        return next((each for each in self.tried if each is not self.chosen), None)

    def build(
        self, *, classes: int | None = None, tasks: int | None = None, examples: int | None = None, seed: int = 0
    ) -> RecollectionModule:
        """The chosen memory, empty, as ``memory`` of the module that trains its codec if that learns.

        Args:
            classes: labels of your stream are 0 to classes - 1; by default those of the sample.
            tasks: of your stream; by default those of the sample.
            examples: of your stream at most, for shorter ids than those that are billed; by default it may have no end.
            seed: of codec and memory.
        """
        classes = self.classes if classes is None else classes
        tasks = self.tasks if tasks is None else tasks
        return self.chosen.candidate.build(classes=classes, tasks=tasks, examples=examples, seed=seed)

    def as_json(self) -> dict[str, Any]:
        """Everything in plain values."""
        return {
            "storage_examples": self.storage,
            "chosen": self.chosen.candidate.name,
            "draw": self.draw,
            "tells": self.tells,
            "seeds": len(self.tried[0].trials),
            "examples": self.examples,
            "held_out": self.held_out,
            "rows": [each.as_json() for each in self.tried],
            "without_memory": {"mean": statistics.fmean(self.without), "each": [*self.without]},
            "first_trials": [each.as_json() for each in self.first],
        }

    def __str__(self) -> str:
        seeds = len(self.tried[0].trials)
        lines = [
            *_table([COLUMNS, *map(_cells, self.tried), ("no memory", "-", "0", "0", "0", "-", _kept(self.without))]),
            f"{self.examples:,} examples seen once, {self.held_out:,} held out; "
            f"{f'mean and standard deviation of {seeds} seeds' if seeds > 1 else 'one seed'}.",
            "Storage is in raw examples, that of codes and that with the codec; bits are those of an item.",
        ]
        if self.first:
            kept = ", ".join(f"{each.candidate.name} {each.retention:.1f} %" for each in self.first)
            lines.append(f"First trials, on a quarter of the sample in about a quarter of the storage: {kept}.")
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
            text += f". That is a draw with {named}, within the standard error of the difference; of these it {why}."
        else:
            lead = chosen.retention - self.runner_up.retention
            text += (
                f", {lead:.1f} points more than {self.runner_up.candidate.name}; the standard error of that is "
                f"{error_between(chosen, self.runner_up):.1f}."
            )
        if not self.tells:
            text += (
                f" But that is no more than without a memory, {statistics.fmean(self.without):.1f} %, by the standard "
                f"error: try more of the stream, or more steps, before you trust it."
            )
        if memory.items > self.examples:
            text += " It has room for more than this sample: for a longer stream, ask again with more of it."
        return text


def error_between(one: Tried, other: Tried) -> float:
    """The standard error of the difference in retention, in points."""
    return math.hypot(one.standard_error, other.standard_error)


def spread_of(retention: Sequence[float]) -> float:
    """Standard deviation over seeds; 0 for a single one."""
    return statistics.stdev(retention) if len(retention) > 1 else 0.0


def error_of(retention: Sequence[float], held_out: int) -> float:
    """The standard error of the mean over seeds; for a single one that of an accuracy on so many examples.

    >>> error_of([79, 80, 81, 80], held_out=100) == statistics.stdev([79, 80, 81, 80]) / 2
    True
    >>> error_of([80], held_out=100)
    4.0
    """
    if len(retention) > 1:
        return spread_of(retention) / math.sqrt(len(retention))
    (percent,) = retention
    return math.sqrt(percent * (100 - percent) / held_out)


def _cells(each: Tried) -> tuple[str, ...]:
    return (
        each.candidate.name,
        f"{each.candidate.bits_per_item:,}",
        f"{each.candidate.items:,}",
        _number(each.storage),
        _number(each.storage_with_codec),
        f"{each.distortion:.3f}",
        _kept([trial.retention for trial in each.trials]),
    )


def _kept(retention: Sequence[float]) -> str:
    spread = f" ± {spread_of(retention):.1f}" if len(retention) > 1 else ""
    return f"{statistics.fmean(retention):.1f}{spread}"


def _number(examples: float) -> str:
    return f"{examples:,.{int(examples < 1000)}f}"


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns side by side, the first to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join([first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))])
        for first, *rest in rows
    ]
