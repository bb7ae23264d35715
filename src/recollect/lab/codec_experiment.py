"""Experiments with a codec that learns from a stream of tasks, and how well it reconstructs all of them."""

from __future__ import annotations

import math
import statistics
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import recollect as rc
from recollect.budget import raw_bits
from recollect.lab.codec_run import CodecRun, execute
from recollect.lab.colours import looks
from recollect.lab.cost import codec_step_seconds, coding_seconds
from recollect.lab.course import CIFAR100, Course, StreamProfile
from recollect.lab.experiment import Experiment, Row, Settings, silent
from recollect.lab.pretraining import Pretraining
from recollect.lab.show import by_block
from recollect.lab.trainee import Trainee

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import torch
    from matplotlib.figure import Figure

    from recollect.lab.checkpoint import Checkpoint
    from recollect.lab.experiment import Report
    from recollect.lab.job import Job
    from recollect.lab.panels import Picture
    from recollect.lab.results import Summary
    from recollect.lab.trainee import Buffer


@dataclass(frozen=True, kw_only=True)
class CodecRow(Row):
    """Which codec, how it is trained, and what it rehearses from."""

    code: Settings
    training: Settings  # by RecollectionModule
    buffer: Buffer = "none"
    items: int = 0
    rehearsed: int = 0  # items that join each batch
    offline: bool = False  # trained on all tasks together, in passes over all their images
    pretraining_rate: float | None = None  # learning rate of a training on CIFAR-10 before the stream begins

    @property
    def described(self) -> Settings:
        """All that decides what a run of this row does, for the record."""
        return {name: value for name, value in asdict(self).items() if name not in {"name", "block", "seeds"}}

    def pretraining(self, profile: CodecProfile) -> Pretraining | None:
        """What comes before the stream."""
        if self.pretraining_rate is None:
            return None
        return Pretraining(
            **self.code,
            passes=profile.passes,
            examples=profile.pretraining_examples,
            batch=profile.pass_batch,
            learning_rate=self.pretraining_rate,
        )

    def build(self, course: Course, seed: int, device: torch.device) -> Trainee:
        """The codec with its buffer, untrained."""
        codec = rc.DiscreteAutoencoder(course.shape, **self.code, seed=seed).to(device)
        return Trainee(
            codec,
            self.training,
            buffer=self.buffer,
            items=self.items,
            rehearsed=self.rehearsed,
            classes=course.classes,
            tasks=course.tasks,
            seed=seed,
        )


@dataclass(frozen=True, kw_only=True)
class CodecProfile(StreamProfile):
    """How much of the stream; how much of CIFAR-10, and how often, for the rows that train in passes."""

    train_examples: int = 2500
    test_examples: int = 500
    passes: int = 100  # over all tasks offline, and over CIFAR-10 before the stream
    pass_batch: int = 50
    pretraining_examples: int = 50_000


@dataclass(frozen=True, kw_only=True)
class CodecExperiment(Experiment[CodecRow, CodecProfile, CodecRun]):
    """Codecs on a stream of tasks."""

    course: Course = CIFAR100

    kind = CodecRun
    keeps_diary = True

    @property
    def columns(self) -> tuple[str, ...]:
        """What is kept, and the distortion after so many tasks."""
        return ("storage", "items", "bits", "first task", "half of them", "all tasks")

    def prepare(self, profile: CodecProfile, rows: Sequence[CodecRow]) -> None:
        """Look for the data of the stream, and for what codecs learn before it."""
        self.course.prepare()
        Pretraining.prepare(row.pretraining(profile) for row in rows)

    def execute(
        self, job: Job[CodecRow, CodecProfile], report: Report = silent, checkpoint: Checkpoint | None = None
    ) -> CodecRun:
        """Train a row's codec on the stream and measure it after each task."""
        return execute(self.course, job, report, checkpoint)[1]

    def steps(self, profile: CodecProfile, row: CodecRow) -> int:
        """The tasks, or the passes over all of them; before them the passes over CIFAR-10."""
        lessons = profile.passes if row.offline else profile.tasks
        return lessons + (profile.passes if row.pretraining_rate is not None else 0)

    def cost(self, profile: CodecProfile, row: CodecRow) -> float:
        """About how many seconds of one core a run takes. All seeds share one training on CIFAR-10."""
        images, tested = profile.tasks * profile.train_examples, profile.tasks * profile.test_examples
        shape, code = self.course.shape, row.code
        per_pass = codec_step_seconds(shape, code, profile.pass_batch) / profile.pass_batch  # and image
        if row.offline:
            seconds = profile.passes * images * per_pass
        else:
            step = codec_step_seconds(shape, code, profile.stream_batch + row.rehearsed)
            seconds = images / profile.stream_batch * row.training.get("steps", 1) * step
            tested *= (profile.tasks + 1) / 2
        if row.pretraining_rate is not None:
            seconds += profile.passes * profile.pretraining_examples * per_pass / profile.seeds
        return seconds + 2 * tested * coding_seconds(shape, code)

    def amount(self, profile: CodecProfile) -> str:
        """The stream in words."""
        passes = f", {profile.passes} passes where it is seen again" if any(row.offline for row in self.rows) else ""
        return (
            f"{profile.tasks} tasks of {profile.train_examples:,} images in batches of {profile.stream_batch}{passes}"
        )

    def cells(self, row: CodecRow, runs: list[CodecRun]) -> tuple[str, ...]:
        """The cells of a row, in the order of the columns."""
        storage, tasks = runs[0].storage_examples, len(runs[0].distortion)
        after = (_cell([run.distortion[number - 1] for run in runs]) for number in (1, (tasks + 1) // 2, tasks))
        return (
            f"{storage:,.{int(storage < 1000)}f}" if storage else "0",
            f"{runs[0].items:,}",
            f"{runs[0].bits_per_item:,}" if runs[0].bits_per_item else "-",
            *after,
        )

    def as_json(self, row: CodecRow, runs: list[CodecRun]) -> dict[str, Any]:
        """The row as `--json` prints it."""
        return {
            "name": row.name,
            "block": row.block,
            "storage_examples": runs[0].storage_examples,
            "items": runs[0].items,
            "bits_per_item": runs[0].bits_per_item,
            "distortion": {
                "mean": _known(map(statistics.fmean, zip(*(run.distortion for run in runs), strict=True))),
                "each": [_known(run.distortion) for run in runs],
            },
            "seeds": [run.seed for run in runs],
            "seconds": statistics.fmean(run.seconds for run in runs),
            "bits": runs[0].bits,
            "examples_per_second": statistics.fmean(run.examples_per_second for run in runs),
        }

    def figure(self, found: list[Summary[CodecRow, CodecRun]]) -> Figure:
        """Distortion over the tasks, a panel for each block."""
        from recollect.lab.curves import curves  # noqa: PLC0415 - matplotlib takes its time to load

        panels = {
            block: {summary.row.name: [run.distortion for run in summary.runs] for summary in rows}
            for block, rows in by_block(found)
        }
        return curves(
            panels, looks(summary.row for summary in found), x="tasks so far", y="distortion on their test images"
        )

    def pictures(self, found: list[Summary[CodecRow, CodecRun]]) -> list[Picture]:
        """The figure, a block at a time, distortion by task, and the bill."""
        from recollect.lab import bill_pictures, codec_pictures, panels  # noqa: PLC0415 - matplotlib takes its time

        return [
            panels.pictured([self.figure(rows) for _, rows in by_block(found)]),
            *codec_pictures.pictures(found),
            *bill_pictures.bill(found, raw_bits(self.course.shape)),
        ]


def _known(values: Iterable[float]) -> list[float | None]:
    """As JSON has them: null for what is not a number."""
    return [None if math.isnan(value) else value for value in values]


def _cell(each: list[float]) -> str:
    if any(map(math.isnan, each)):
        return "diverged"
    spread = f" ± {statistics.stdev(each):.4f}" if len(each) > 1 else ""
    return f"{statistics.fmean(each):.4f}{spread}"
