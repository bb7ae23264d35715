"""One run of a codec on a stream: trained task after task, its distortion measured on all tasks so far."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING

import torch

import recollect as rc
from recollect.budget import raw_bits
from recollect.distillation.distortion import reconstruction_distortion
from recollect.lab.clock import timed
from recollect.lab.course import stream_of
from recollect.lab.diary import diary_of
from recollect.lab.experiment import Run, silent
from recollect.lab.pretraining import pass_over

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from recollect.lab.checkpoint import Checkpoint
    from recollect.lab.codec_experiment import CodecProfile, CodecRow
    from recollect.lab.course import Course
    from recollect.lab.experiment import Report
    from recollect.lab.job import Job
    from recollect.lab.pretraining import Pretraining
    from recollect.lab.trainee import Trainee


@dataclass(frozen=True, kw_only=True)
class CodecRun(Run):
    """What is recorded of a codec on a stream. Distortions are mean absolute errors of values in [0, 1]."""

    distortion: list[float]  # after each task, on the test images of all tasks so far; NaN where the codec diverged
    by_task: list[list[float]]  # after each task (lines), on each task so far (columns); one line for a codec offline
    items: int
    bits_per_item: int
    storage_examples: float  # what is rehearsed from, in raw images
    bits: dict[str, int]  # of it by kind, and of the codec
    evaluation_seconds: float
    examples_per_second: float

    def __post_init__(self) -> None:
        """What is not a number is null in a file."""
        object.__setattr__(self, "distortion", _numbers(self.distortion))
        object.__setattr__(self, "by_task", [_numbers(line) for line in self.by_task])

    @property
    def headline(self) -> str:
        """The distortion in the end."""
        return f"distortion {self.distortion[-1]:.4f}"


def _numbers(values: Sequence[float | None]) -> list[float]:
    return [math.nan if value is None else value for value in values]


@dataclass(kw_only=True)
class Measured:
    """What is known of a run on its way, in plain values, and how far it has come."""

    by_task: list[list[float]] = field(default_factory=list)
    seconds: float = 0.0
    evaluation_seconds: float = 0.0
    lesson: int = 0  # that is under way: a task, or a pass over all of them
    batches: int = 0  # of it that were observed


def execute(
    course: Course, job: Job[CodecRow, CodecProfile], report: Report = silent, checkpoint: Checkpoint | None = None
) -> tuple[Trainee, CodecRun]:
    """Train and measure. After each task or pass ``report`` is told how many are done, and the distortion."""
    profile, row, seed, device = job.profile, job.row, job.seed, job.device
    stream = stream_of(course, profile, seed, job.validation)
    trainee, measured = _begun(partial(row.build, course, seed, device), row.pretraining(profile), report, checkpoint)
    unit, lessons, size = (
        ("pass", profile.passes, profile.pass_batch) if row.offline else ("task", profile.tasks, profile.stream_batch)
    )
    before = profile.passes if row.pretraining_rate is not None else 0
    with diary_of(job, before + measured.lesson) as diary:
        for examples, tested in _lessons(row, profile, stream, seed, measured.lesson):
            trainee.study(examples, measured.lesson, size, measured, checkpoint)
            if tested:
                with timed(measured, "evaluation_seconds"):
                    measured.by_task.append(distortions(trainee, stream[:tested]))
            measured.lesson, measured.batches = measured.lesson + 1, 0
            so_far = f", distortion {fmean(measured.by_task[-1]):.4f} so far" if measured.by_task else ""
            report(before + measured.lesson, f"{unit} {measured.lesson} of {lessons}{so_far}")
            if diary is not None and measured.by_task:
                diary.numbers(before + measured.lesson, {"distortion/tasks so far": fmean(measured.by_task[-1])})
    images, memory = sum(len(task.train) for task in stream), trainee.memory
    bill = _bill(trainee, row, images)
    items = len(memory) if memory is not None else images * row.offline
    return trainee, CodecRun(
        **job.recorded,
        distortion=over_tasks(measured.by_task, stream),
        by_task=measured.by_task,
        items=items,
        bits_per_item=bill.codes // items if items else 0,
        storage_examples=bill.examples["codes"],
        bits=bill.bits,
        seconds=measured.seconds,
        evaluation_seconds=measured.evaluation_seconds,
        examples_per_second=images * (profile.passes if row.offline else 1) / measured.seconds,
    )


def _begun(
    build: Callable[[], Trainee], pretraining: Pretraining | None, report: Report, checkpoint: Checkpoint | None
) -> tuple[Trainee, Measured]:
    """The codec as it was at the last checkpoint, or as it is before the stream."""
    resumed = checkpoint.resumed(lambda path: build().loaded(path)) if checkpoint is not None else None
    if resumed is not None:
        return resumed[0], Measured(**resumed[1])
    trainee = build()
    if pretraining is not None:
        pretraining.start(trainee.codec, report=report)
    return trainee, Measured()


def _lessons(
    row: CodecRow, profile: CodecProfile, stream: list[rc.streams.Task], seed: int, first: int
) -> Iterator[tuple[rc.streams.Examples, int]]:
    """What is learned from, from the ``first`` lesson on, and how many tasks are tested after it."""
    if not row.offline:
        yield from ((task.train, number) for number, task in enumerate(stream[first:], first + 1))
        return
    images, labels = (torch.cat([getattr(task.train, name) for task in stream]) for name in ("images", "y"))
    everything = rc.streams.Examples(images, labels)
    for number in range(first, profile.passes):
        yield pass_over(everything, seed, number), len(stream) if number == profile.passes - 1 else 0


def distortions(trainee: Trainee, tasks: list[rc.streams.Task]) -> list[float]:
    """On the test images of each task. Measuring changes nothing: codes are drawn from the same numbers as the next."""
    draws = trainee.codec.get_extra_state()
    errors = [reconstruction_distortion(trainee.codec, task.test.x.to(trainee.device)) for task in tasks]
    trainee.codec.set_extra_state(draws)
    return errors


def over_tasks(by_task: list[list[float]], stream: list[rc.streams.Task]) -> list[float]:
    """After each task, the distortion on the test images of all tasks so far; that of the only line if there is one."""
    counts = [len(task.test) for task in stream]
    lines = by_task if len(by_task) == len(stream) else by_task * len(stream)
    return [fmean(line[:number], counts[:number]) for number, line in enumerate(lines, 1)]


def _bill(trainee: Trainee, row: CodecRow, images: int) -> rc.Bill:
    """What is kept to learn from again: the buffer, or all images for a codec offline."""
    if trainee.memory is not None:
        return trainee.memory.footprint()
    example = raw_bits(trainee.codec.shape)
    return rc.Bill(codes=images * example * row.offline, codec=trainee.codec.storage_bits, example=example)
