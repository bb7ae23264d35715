"""One run: a row with a seed, trained on its stream, measured after every task."""

from __future__ import annotations

import copy
import itertools
from dataclasses import dataclass, field
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING

import torch

import recollect as rc
from recollect.distillation import reconstruction_distortion
from recollect.lab.clock import timed
from recollect.lab.course import stream_of
from recollect.lab.diary import diary_of
from recollect.lab.experiment import Run, silent
from recollect.lab.metrics import backward_transfer, forward_transfer
from recollect.lab.sheet import CHANNELS, draw_sheet

if TYPE_CHECKING:
    from recollect.lab.checkpoint import Checkpoint
    from recollect.lab.continual import ContinualProfile, ContinualRow
    from recollect.lab.course import Course
    from recollect.lab.diary import Diary
    from recollect.lab.experiment import Report
    from recollect.lab.job import Job

# Examples that the codec's distortion is measured on after every task: new ones, and items of all ages.
NEW_EXAMPLES, HELD_EXAMPLES = 100, 500


@dataclass(frozen=True, kw_only=True)
class ContinualRun(Run):
    """What is recorded of a learner on a stream. Accuracies are in percent."""

    retention: float  # mean over tasks of the accuracy on their test examples, after the last
    accuracy: list[list[float]]  # after each task (lines), on each task (columns); one line for a learner at the end
    untrained: list[float]  # accuracy before the first task
    backward_transfer: float | None
    forward_transfer: float | None
    distortion: dict[str, list[float]]  # mean absolute error of the codec on "new" and on "held", after each task
    ageing: dict[str, list[list[float | None]]] = field(default_factory=dict)  # as `Measured` has it; not in old runs
    items: int
    bits_per_item: int
    storage_examples: float  # codes, or parameters kept: the paper's incremental storage in raw examples
    bits: dict[str, int]  # by kind, as the learner's footprint bills them
    evaluation_seconds: float
    examples_per_second: float

    @property
    def headline(self) -> str:
        """What it keeps."""
        return f"{self.retention:.1f} %"


@dataclass(kw_only=True)
class Measured:
    """What is known of a run on its way, in plain values, and how far it has come."""

    untrained: list[float]
    accuracy: list[list[float]] = field(default_factory=list)
    distortion: dict[str, list[float]] = field(default_factory=lambda: {"new": [], "held": []})
    # Errors of what is "held" and of the same images encoded anew, "fresh": after each task (lines), of each (columns).
    ageing: dict[str, list[list[float | None]]] = field(default_factory=lambda: {"held": [], "fresh": []})
    seconds: float = 0.0
    evaluation_seconds: float = 0.0
    task: int = 0  # that is being learned
    batches: int = 0  # of it that were learned

    def add_ages(self, found: dict[int, rc.Aged]) -> None:
        """What was found of items by task, after one more task."""
        items = sum(aged.items for aged in found.values())
        self.distortion["held"].append(sum(aged.items * aged.held for aged in found.values()) / items)
        for kind, lines in self.ageing.items():
            lines.append([getattr(found[task], kind) if task in found else None for task in range(self.task + 1)])


def execute(
    course: Course,
    job: Job[ContinualRow, ContinualProfile],
    report: Report = silent,
    checkpoint: Checkpoint | None = None,
) -> tuple[rc.Learner, ContinualRun]:
    """Train and measure. After each task ``report`` is told its number and the accuracy on the tasks so far."""
    profile, row, seed, device = job.profile, job.row, job.seed, job.device
    stream = stream_of(course, profile, seed, job.validation)
    resumed = checkpoint.resumed(partial(rc.Learner.load, device=device)) if checkpoint is not None else None
    if resumed is not None:
        learner, measured = resumed[0], Measured(**resumed[1])
    else:
        learner = row.build(course, stream, seed, device, report=report)
        measured = Measured(untrained=accuracies(learner, stream, profile.matrix_examples))
    offline = isinstance(learner, rc.Offline)
    with diary_of(job, measured.task) as diary:
        for number in range(measured.task, len(stream)):
            _learn(learner, stream[number].train, measured, profile.stream_batch, checkpoint)
            last = number == len(stream) - 1
            if last:
                with timed(measured, "seconds"):
                    learner.finish()
            with timed(measured, "evaluation_seconds"):
                if last or not offline:
                    measured.accuracy.append(accuracies(learner, stream, profile.matrix_examples))
                if learner.memory is not None:
                    measured.distortion["new"].append(distortion_of_new(learner.memory.codec, stream[number]))
                    measured.add_ages(ages(learner.memory, stream[: number + 1]))
            measured.task, measured.batches = number + 1, 0
            kept = f", {fmean(measured.accuracy[-1][: number + 1]):.1f} % so far" if measured.accuracy else ""
            report(number + 1, f"task {number + 1} of {len(stream)}{kept}")
            if diary is not None:
                _tell(diary, learner, measured, stream)
        with timed(measured, "evaluation_seconds"):
            retention = fmean(accuracies(learner, stream, profile.test_examples))
        if diary is not None:
            diary.numbers(len(stream), {"retention": retention})
    bill, memory = learner.footprint(), learner.memory
    return learner, ContinualRun(
        **job.recorded,
        retention=retention,
        accuracy=measured.accuracy,
        untrained=measured.untrained,
        backward_transfer=None if offline else backward_transfer(measured.accuracy),
        forward_transfer=None if offline else forward_transfer(measured.accuracy, measured.untrained),
        distortion=measured.distortion,
        ageing=measured.ageing,
        items=len(memory) if memory is not None else row.items,
        bits_per_item=memory.bits_per_item if memory is not None else 0,
        storage_examples=sum(bill.examples[kind] for kind in ("codes", "tables", "parameters")),
        bits=bill.bits,
        seconds=measured.seconds,
        evaluation_seconds=measured.evaluation_seconds,
        examples_per_second=sum(len(task.train) for task in stream) / measured.seconds,
    )


def _tell(diary: Diary, learner: rc.Learner, measured: Measured, stream: list[rc.streams.Task]) -> None:
    """Write down what is known after a task. A learner offline has no accuracies before the last."""
    done = measured.task
    numbers = {f"distortion/{kind}": errors[-1] for kind, errors in measured.distortion.items() if errors}
    if measured.accuracy:
        line = measured.accuracy[-1]
        numbers |= {"accuracy/tasks so far": fmean(line[:done]), "accuracy/all tasks": fmean(line)}
        diary.matrix(done, "accuracy of every task after every task", measured.accuracy, most=100)
    diary.numbers(done, numbers)
    if learner.memory is not None and learner.memory.codec.shape[0] in CHANNELS:
        diary.image(done, "originals above recollections", draw_sheet(learner.memory, stream[:done]))


def _learn(
    learner: rc.Learner, examples: rc.streams.Examples, measured: Measured, size: int, checkpoint: Checkpoint | None
) -> None:
    """What is left of a task."""
    device = next(learner.model.parameters()).device
    for x, y in itertools.islice(examples.batches(size), measured.batches, None):
        with timed(measured, "seconds"):
            learner.observe(x.to(device), y, measured.task)
        measured.batches += 1
        if checkpoint is not None:
            checkpoint.save_if_due(learner, vars(measured))


def accuracies(learner: rc.Learner, stream: list[rc.streams.Task], examples: int) -> list[float]:
    """Test accuracy on each task, in percent."""
    device = next(learner.model.parameters()).device
    scores = []
    for number, task in enumerate(stream):
        x, y = task.test[:examples]
        right = learner.predict(x.to(device), number).cpu() == y
        scores.append(100 * float(right.double().mean()))
    return scores


def distortion_of_new(codec: rc.Codec, task: rc.streams.Task) -> float:
    """The mean absolute error of the codec on examples that it has not seen.

    A copy is asked, so that what it draws at random changes nothing.
    """
    return reconstruction_distortion(copy.deepcopy(codec), task.test[:NEW_EXAMPLES][0])


def ages(memory: rc.Memory, past: list[rc.streams.Task]) -> dict[int, rc.Aged]:
    """How items of each task have aged. Ids count the examples of the stream, which has the originals.

    Only those that are measured are taken from there: a large memory has many.
    """
    held, first, originals = memory.ids.sort().values, 0, []
    held = held[torch.linspace(0, len(held) - 1, min(HELD_EXAMPLES, len(held)), dtype=torch.float64).round().long()]
    for task in past:
        last = first + len(task.train)
        originals.append(task.train.images[held[(held >= first) & (held < last)] - first])
        first = last
    held = held[held < first]  # a stream may go on with others
    ageing = rc.Ageing(memory)
    ageing.watch(torch.cat(originals).float() / 255, held)
    return ageing.by_task()
