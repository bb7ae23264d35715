"""Question 2 of the paper: what is kept of CIFAR-100 while CIFAR-10 is learned for long."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

import recollect as rc
from recollect.lab.colours import looks
from recollect.lab.continual import Continual, ContinualProfile, ContinualRow
from recollect.lab.course import CIFAR100, Course, ResNet
from recollect.lab.memories import real
from recollect.lab.table2 import learned, replay
from recollect.streams.task import Examples

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from recollect.lab.experiment import Settings
    from recollect.lab.results import Summary
    from recollect.lab.run import ContinualRun
    from recollect.streams import Task

FIRST = CIFAR100.tasks
PART = 4  # a part of CIFAR-10 has so many times the examples of a task of CIFAR-100


def then_cifar10(
    seed: int = 0, *, tasks: int, train_examples: int, test_examples: int, validation: bool = False
) -> list[Task]:
    """The 20 tasks of Incremental CIFAR-100, then one or more parts of CIFAR-10, drawn anew, of classes 100 to 109."""
    stream = rc.streams.incremental_cifar100(
        seed, train_examples=train_examples, test_examples=test_examples, validation=validation
    )
    shift = CIFAR100.classes
    for number in range(max(1, tasks - FIRST)):
        part = rc.streams.cifar10(
            seed + 1000 * number,
            train_examples=PART * train_examples,
            test_examples=test_examples,
            validation=validation,
        )
        train, test = (Examples(each.images, each.y + shift) for each in (part.train, part.test))
        stream.append(replace(part, train=train, test=test, classes=tuple(label + shift for label in part.classes)))
    return stream


@dataclass(frozen=True, kw_only=True)
class Retention(Continual):
    """Accuracy on the tasks of CIFAR-100 alone, when they were learned and later."""

    @property
    def columns(self) -> tuple[str, ...]:
        """What is kept of CIFAR-100."""
        return ("storage", "items", "after CIFAR-100, %", "at the end, %", "kept, %")

    def amount(self, profile: ContinualProfile) -> str:
        """The stream in words."""
        later = (profile.tasks - FIRST) * PART * profile.train_examples
        return f"{FIRST} tasks of {profile.train_examples:,} examples, then {later:,} of CIFAR-10"

    def cost(self, profile: ContinualProfile, row: ContinualRow) -> float:
        """About how many seconds of one core a run takes: parts of CIFAR-10 are longer than tasks."""
        return super().cost(replace(profile, tasks=FIRST + PART * (profile.tasks - FIRST)), row)

    def cells(self, row: ContinualRow, runs: list[ContinualRun]) -> tuple[str, ...]:
        """The cells of a row, in the order of the columns."""
        curve = kept(runs)
        return (
            f"{runs[0].storage_examples:,.1f}",
            f"{runs[0].items:,}",
            f"{curve[0]:.1f}",
            f"{curve[-1]:.1f}",
            f"{100 * curve[-1] / curve[0]:.0f}",
        )

    def as_json(self, row: ContinualRow, runs: list[ContinualRun]) -> dict[str, Any]:
        """The row as `--json` prints it, with its curve. What is retained is accuracy on CIFAR-100 at the end."""
        curve = kept(runs)
        each = [kept([run])[-1] for run in runs]
        retained = {"mean": curve[-1], "std": stdev(each) if len(each) > 1 else 0.0, "each": each}
        return super().as_json(row, runs) | {"retention": retained, "cifar100": curve}

    def figure(self, found: list[Summary[ContinualRow, ContinualRun]]) -> Figure:
        """The curve of each row."""
        from matplotlib.figure import Figure  # noqa: PLC0415 - it takes its time to load

        figure = Figure(figsize=(7, 4.5), layout="constrained")
        axes = figure.subplots()
        look_of = looks(summary.row for summary in found)
        for summary in found:
            curve = kept(summary.runs)
            part = PART * summary.runs[0].amounts["train_examples"]
            examples = [part * number for number in range(len(curve))]
            axes.plot(examples, curve, label=summary.row.name, **look_of[summary.row.name].drawn)
        axes.set(xlabel="examples of CIFAR-10 learned since", ylabel="accuracy on CIFAR-100, %")
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=2)  # below: curves are all over the axes
        return figure


def kept(runs: list[ContinualRun]) -> list[float]:
    """Accuracy on CIFAR-100 when it was learned and after each part of CIFAR-10, mean over seeds and tasks."""
    lines = zip(*(run.accuracy[FIRST - 1 :] for run in runs), strict=True)
    return [fmean(fmean(line[:FIRST]) for line in of_seeds) for of_seeds in lines]


COURSE = Course(
    stream=then_cifar10,
    shape=CIFAR100.shape,
    classes=CIFAR100.classes + 10,
    tasks=FIRST + 100,
    model=ResNet(classes=CIFAR100.classes + 10, channels=3),
    step=CIFAR100.step,
    image=CIFAR100.image,
    examples=CIFAR100.examples,
)


def row(kind: str, storage: int, memory: Settings) -> ContinualRow:
    """Replay as in Table 2, with one seed, since runs are long."""
    return replace(replay(kind, storage, None, memory), seeds=1)


STANDARD = ContinualProfile(
    name="standard", seeds=1, tasks=FIRST + 5, train_examples=2500, test_examples=500, matrix_examples=100
)
EXPERIMENT = Retention(
    name="retention",
    title="Question 2: accuracy on CIFAR-100 while CIFAR-10 is learned",
    answers="Do recollections keep knowledge for long?",
    course=COURSE,
    rows=(
        row("Recollections", 50, learned(50, 1e-3, 1e-3)),
        row("Real Storage", 50, real(50)),
        row("Real Storage", 200, real(200)),
        row("Real Storage", 300, real(300)),
        row("Real Storage", 1200, real(1200)),
    ),
    profiles={
        "quick": ContinualProfile(
            name="quick",
            seeds=1,
            tasks=FIRST + 2,
            train_examples=50,
            test_examples=50,
            matrix_examples=20,
            rows=("Recollections 50", "Real Storage 50"),
        ),
        "standard": STANDARD,
        "paper": replace(STANDARD, name="paper", tasks=FIRST + 100, stream_batch=1),
    },
    notes=(
        "The memory goes on as before: examples of CIFAR-10 are admitted like all others.",
        "The paper shows curves without their numbers: recollections keep what was learned longer than real storage, "
        "even than six times as much of it.",
    ),
)
