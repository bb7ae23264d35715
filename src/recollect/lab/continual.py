"""Experiments of continual learning: learners on a stream of tasks, and how much they keep."""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

from torch import nn

import recollect as rc
from recollect.budget import raw_bits
from recollect.lab.cost import core_seconds
from recollect.lab.course import MNIST_ROTATIONS, Course, StreamProfile, stream_of
from recollect.lab.experiment import Experiment, Row, Settings, silent
from recollect.lab.pretraining import Pretraining
from recollect.lab.run import ContinualRun, execute
from recollect.lab.sheet import write_sheet

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch

    from recollect.lab.checkpoint import Checkpoint
    from recollect.lab.experiment import Report
    from recollect.lab.job import Job
    from recollect.lab.panels import Picture
    from recollect.lab.results import Summary
    from recollect.memory.rules import Rule
    from recollect.packing import Scheme


@dataclass(frozen=True, kw_only=True)
class ContinualRow(Row):
    """Which learner with which settings, and what its memory keeps.

    Settings are the keyword arguments of the classes that they stand beside. Those that the paper's appendix gives take
    their place in the profile ``paper``.
    """

    learner: type[Any]
    settings: Settings
    paper_settings: Settings = field(default_factory=dict)
    codec: type[Any] | None = None
    code: Settings = field(default_factory=dict)
    training: Settings = field(default_factory=dict)  # of the codec, by RecollectionModule
    quick_training: Settings = field(default_factory=dict)
    paper_training: Settings = field(default_factory=dict)
    pretraining: Settings = field(default_factory=dict)  # of the codec on CIFAR-10, by Pretraining
    pretraining_in: dict[str, Settings] = field(default_factory=dict)  # a profile, where that is another
    storage: int | None = None  # in images, what the memory may take
    items: int = 0
    code_bits: int | None = None  # in place of items, what their codes may take: with the scheme "entropy", say
    scheme: Scheme = "radix"
    admission: Rule = "reservoir"
    paper: float | None = None  # retention in the paper, in percent

    def in_profile(self, profile: ContinualProfile) -> Self:
        """The row with the settings of the profile."""
        row = replace(self, pretraining=self.pretraining_in.get(profile.name, self.pretraining))
        if profile.name == "quick":
            return replace(row, training=self.quick_training or self.training)
        if profile.name != "paper":
            return row
        settings = self.settings | self.paper_settings
        return replace(row, settings=settings, training=self.paper_training or self.training)

    @property
    def described(self) -> Settings:
        """All that decides what a run of this row does, for the record."""
        names = {"learner": self.learner.__name__, "codec": self.codec.__name__ if self.codec else None}
        chosen = ["settings", "code", "training", "items", "admission", *["pretraining"] * bool(self.pretraining)]
        if self.code_bits is not None:
            chosen += ["code_bits", "scheme"]
        return names | {name: value for name, value in asdict(self).items() if name in chosen}

    @property
    def start(self) -> Pretraining | None:
        """What the codec learns before the stream begins."""
        return Pretraining(**self.code, **self.pretraining) if self.pretraining else None

    def build(
        self,
        course: Course,
        stream: list[rc.streams.Task],
        seed: int,
        device: torch.device,
        report: Report = silent,
    ) -> rc.Learner:
        """The learner with everything it needs for a stream of the course. What comes before it is reported."""
        model = course.model(stream, seed).to(device)
        if self.codec is None:
            return self.learner(model, **self.settings)
        learned = issubclass(self.codec, nn.Module)
        codec = self.codec(course.shape, **self.code, **({"seed": seed} if learned else {}))
        if learned:
            codec.to(device)
        if self.start is not None:
            self.start.start(codec, report=lambda _, state: report(0, state))
        memory = rc.Memory(
            codec,
            capacity=self.items or None,
            code_bits=self.code_bits,
            scheme=self.scheme,
            admission=self.admission,
            classes=course.classes,
            tasks=course.tasks,
            seed=seed,
        )
        if self.learner is rc.Offline:
            return rc.Offline(model, memory, **self.settings)
        draws = {"seed": seed} if "augment" in self.settings else {}
        return self.learner(model, rc.RecollectionModule(memory, **self.training), **self.settings, **draws)


@dataclass(frozen=True, kw_only=True)
class ContinualProfile(StreamProfile):
    """How much of the stream, and what is measured on it."""

    train_examples: int = 1000
    test_examples: int = 10_000
    matrix_examples: int = 1000  # test examples of each task that the accuracy matrix is taken on


@dataclass(frozen=True, kw_only=True)
class Continual(Experiment[ContinualRow, ContinualProfile, ContinualRun]):
    """Learners on a stream of tasks."""

    course: Course = MNIST_ROTATIONS

    kind = ContinualRun
    keeps_diary = True

    @property
    def columns(self) -> tuple[str, ...]:
        """What is kept, and how much is retained."""
        return ("storage", "items", "bits", "retention, %", "paper", "difference")

    def prepare(self, profile: ContinualProfile, rows: Sequence[ContinualRow]) -> None:
        """Look for the data of the stream, and for what codecs learn before it."""
        self.course.prepare()
        Pretraining.prepare(row.start for row in rows)

    def execute(
        self, job: Job[ContinualRow, ContinualProfile], report: Report = silent, checkpoint: Checkpoint | None = None
    ) -> ContinualRun:
        """Train a row's learner on the stream and measure it after each task."""
        learner, run = execute(self.course, job, report, checkpoint)
        if job.sheet is not None and learner.memory is not None and any(map(any, run.distortion.values())):
            write_sheet(learner.memory, stream_of(self.course, job.profile, job.seed, job.validation), job.sheet)
        return run

    def steps(self, profile: ContinualProfile, row: ContinualRow) -> int:
        """The tasks."""
        return profile.tasks

    def cost(self, profile: ContinualProfile, row: ContinualRow) -> float:
        """About how many seconds of one core a run takes."""
        return core_seconds(row, profile, self.course)

    def amount(self, profile: ContinualProfile) -> str:
        """The stream in words."""
        return f"{profile.tasks} tasks of {profile.train_examples:,} examples in batches of {profile.stream_batch}"

    def cells(self, row: ContinualRow, runs: list[ContinualRun]) -> tuple[str, ...]:
        """The cells of a row, in the order of the columns."""
        storage, items, bits = held(runs)
        mean, std = retention(runs)
        spread = f" ± {std:.1f}" if len(runs) > 1 else ""
        paper = None if runs[0].profile == "quick" else row.paper  # of so short a stream the paper has no number
        return (
            f"{storage:,.{int(storage < 1000)}f}" if storage else "0",
            f"{items:,}",
            f"{bits:,}" if bits else "-",
            f"{mean:.1f}{spread}",
            f"{paper:.1f}" if paper is not None else "-",
            f"{mean - paper:+.1f}" if paper is not None else "-",
        )

    def pictures(self, found: list[Summary[ContinualRow, ContinualRun]]) -> list[Picture]:
        """What is kept over tasks and in which storage, how well codecs do, and the bill."""
        from recollect.lab import bill_pictures, stream_pictures  # noqa: PLC0415 - matplotlib takes its time to load

        example = raw_bits(self.course.shape)
        return [
            *super().pictures(found),
            *stream_pictures.pictures(found, example),
            *bill_pictures.bill(found, example),
        ]

    def as_json(self, row: ContinualRow, runs: list[ContinualRun]) -> dict[str, Any]:
        """The row as `--json` prints it."""
        mean, std = retention(runs)
        storage, items, bits = held(runs)
        return {
            "name": row.name,
            "block": row.block,
            "storage_examples": storage,
            "items": items,
            "bits_per_item": bits,
            "retention": {"mean": mean, "std": std, "each": [run.retention for run in runs]},
            "paper": row.paper,
            "seeds": [run.seed for run in runs],
            "seconds": statistics.fmean(run.seconds for run in runs),
            "backward_transfer": _mean([run.backward_transfer for run in runs]),
            "forward_transfer": _mean([run.forward_transfer for run in runs]),
            "distortion": {
                kind: _mean([run.distortion[kind][-1] for run in runs if run.distortion[kind]])
                for kind in ("new", "held")
            },
            "bits": runs[0].bits,
            "examples_per_second": statistics.fmean(run.examples_per_second for run in runs),
        }


def retention(runs: list[ContinualRun]) -> tuple[float, float]:
    """Mean and standard deviation over seeds; 0 for a single seed."""
    each = [run.retention for run in runs]
    return statistics.fmean(each), statistics.stdev(each) if len(runs) > 1 else 0.0


def held(runs: list[ContinualRun]) -> tuple[float, int, int]:
    """Storage in raw examples, items and bits of an item, the means over seeds: coded items differ in size."""
    storage, items, bits = (
        statistics.fmean(getattr(run, name) for run in runs) for name in ("storage_examples", "items", "bits_per_item")
    )
    return storage, round(items), round(bits)


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None
