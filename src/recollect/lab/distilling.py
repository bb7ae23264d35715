"""Experiments of distillation: students of one teacher, taught by what different memories keep in different bits."""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeVar

from torch import nn

import recollect as rc
from recollect.budget import filters_of, raw_bits
from recollect.lab.classroom import TRIAL, Classroom, DistillationRun
from recollect.lab.compressing import EAGER, FILTER, FILTER_PAIR, IMAGE
from recollect.lab.experiment import Experiment, Profile, Row, Settings, silent
from recollect.lab.lesson import MNIST
from recollect.lab.student import FORWARD, core_seconds, marks
from recollect.lab.student import IMAGE as STUDENT_IMAGE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from recollect.lab.checkpoint import Checkpoint
    from recollect.lab.experiment import Report
    from recollect.lab.job import Job
    from recollect.lab.lesson import Lesson
    from recollect.lab.panels import Picture
    from recollect.lab.results import Summary
    from recollect.memory.memory import Coding


@dataclass(frozen=True, kw_only=True)
class DistillationRow(Row):
    """What the memory keeps, who teaches, how recollections are drawn, and who learns."""

    student: type[nn.Module] = rc.models.LeNet
    teacher: bool = True  # teaches; if not, labels do
    share: float = 1.0  # of the training images that are kept, drawn at random
    codec: type[Any] = rc.RawPixels
    code: Settings = field(default_factory=dict)
    scheme: Coding = "binary"
    codec_rates: tuple[float, ...] = (1e-2, 3e-3, 1e-3)  # learning rates of a codec that learns: the best is taken
    sampling: tuple[str, ...] = ()  # around buffer sampling, or in its place, as `student.around` names them
    paper: dict[int, float] = field(default_factory=dict)  # accuracy in the paper after so many episodes, in percent

    @property
    def described(self) -> Settings:
        """All that decides what a run of this row does, for the record."""
        classes = {"student": self.student.__name__, "codec": self.codec.__name__}
        chosen = ("teacher", "share", "code", "sampling") + ("codec_rates",) * self.learns
        chosen += ("scheme",) * (self.scheme != "binary")
        return classes | {name: value for name, value in asdict(self).items() if name in chosen}

    @property
    def learns(self) -> bool:
        """Whether the codec is trained."""
        return issubclass(self.codec, nn.Module) and bool(self.codec_rates)


@dataclass(frozen=True, kw_only=True)
class DistillationProfile(Profile):
    """How long teacher, codec and student are trained; each learning rate is tried for the student."""

    train_examples: int | None = None  # at most
    test_examples: int | None = None  # at most, and as many held-out ones
    tasks: int | None = None  # at most
    teacher_epochs: int
    codec_epochs: int
    paper_codec: bool = False  # to the parameter, which wants hundreds of epochs
    episodes: int  # recollections that a student is shown
    batch_size: int  # recollections in a step of the student
    learning_rates: tuple[float, ...] = (1e-3, 1e-4)

    @property
    def of_a_student(self) -> dict[str, Any]:
        """What decides how a student turns out, but for its learning rate. Experiments may share students."""
        names = {field.name for field in fields(DistillationProfile)} - {"learning_rates"}
        return {name: value for name, value in self.amounts.items() if name in names}


DR = TypeVar("DR", bound=DistillationRow)
DP = TypeVar("DP", bound=DistillationProfile)
DU = TypeVar("DU", bound=DistillationRun)


@dataclass(frozen=True, kw_only=True)
class Distilling(Experiment[DR, DP, DU]):
    """What experiments with students share."""

    lesson: Lesson = MNIST

    def prepare(self, profile: DP, rows: Sequence[DR]) -> None:
        """Look for the data before the first run, so that what is missing is said at once."""
        self.lesson.load(profile.train_examples, profile.test_examples, profile.tasks)

    def steps(self, profile: DP, row: DR) -> int:
        """The marks of each student."""
        return len(profile.learning_rates) * len(marks(profile.episodes))

    def cost(self, profile: DP, row: DR) -> float:
        """About how many seconds of one core a run takes, with its part of what several rows share."""
        rows = self.chosen(profile)
        examples = EXAMPLES[self.lesson.name] if profile.train_examples is None else profile.train_examples
        if profile.tasks is not None:
            examples = examples * profile.tasks // 50
        students = len(profile.learning_rates)
        training = students * core_seconds(row.student, row.sampling, profile.episodes, profile.batch_size)
        tested = TESTED[self.lesson.name] if profile.test_examples is None else 2 * profile.test_examples
        tested *= students * len(marks(profile.episodes))
        seconds = training + tested * FORWARD * STUDENT_IMAGE[row.student]
        if row.teacher:
            teacher = profile.teacher_epochs * examples * STUDENT_IMAGE[self.lesson.teacher]
            seconds += teacher / max(1, profile.seeds * sum(other.teacher for other in rows))
        if row.learns:
            f = filters_of(**row.code)
            image = IMAGE + FILTER * f + FILTER_PAIR * f**2
            codec = (len(row.codec_rates) * TRIAL + profile.codec_epochs) * examples * image
            codec *= 1 if profile.paper_codec else EAGER
            sharing = profile.seeds * sum(other.code == row.code for other in rows)
            seconds += codec / max(1, sharing) + FORWARD * examples * image
        return seconds

    def amount(self, profile: DP) -> str:
        """The training in words."""
        return (
            f"teacher of {profile.teacher_epochs} and codec of {profile.codec_epochs} epochs, {profile.episodes:,} "
            f"episodes, {profile.batch_size} a step"
        )

    def as_json(self, row: DR, runs: list[DU]) -> dict[str, Any]:
        """The row as `--json` prints it."""
        each = [list(values) for values in zip(*(run.accuracy for run in runs), strict=True)]
        return {
            "name": row.name,
            "block": row.block,
            "items": runs[0].items,
            "bits": runs[0].bits,
            "compression": runs[0].compression,
            "episodes": runs[0].episodes,
            "accuracy": [{"mean": statistics.fmean(of), "std": _std(of), "each": of} for of in each],
            "paper": row.paper,
            "learning_rates": [run.learning_rates for run in runs],
            "teacher": [run.teacher for run in runs],
            "codec": [run.codec for run in runs],
            "seeds": [run.seed for run in runs],
            "seconds": statistics.fmean(run.seconds for run in runs),
        }

    def figure(self, found: list[Summary[DR, DU]]) -> Figure | None:
        """Learning curves, the paper's beside."""
        from recollect.lab.figures import learning_curves  # noqa: PLC0415 - matplotlib takes its time to load

        return learning_curves(found)

    def pictures(self, found: list[Summary[DR, DU]]) -> list[Picture]:
        """The figure, and the bill."""
        from recollect.lab.bill_pictures import bill  # noqa: PLC0415 - matplotlib takes its time to load

        return [*super().pictures(found), *bill(found, raw_bits(self.lesson.shape))]


@dataclass(frozen=True, kw_only=True)
class Distillation(Distilling[DistillationRow, DistillationProfile, DistillationRun]):
    """Students beside each other, after 10, 100 and so on episodes."""

    shown: tuple[int, ...] = (10, 100, 1000, 10_000, 100_000)  # episodes that have a column

    kind = DistillationRun

    @property
    def columns(self) -> tuple[str, ...]:
        """Fewer bits, and accuracies with the paper's in brackets."""
        return ("compression", *(f"{mark:,} (paper)" for mark in self.shown))

    def execute(
        self,
        job: Job[DistillationRow, DistillationProfile],
        report: Report = silent,
        checkpoint: Checkpoint | None = None,
    ) -> DistillationRun:
        """Train a student with each learning rate, on what the row's memory keeps."""
        room = Classroom(self.lesson, job)
        return room.recorded(room.prepared(report), report)

    def cells(self, row: DistillationRow, runs: list[DistillationRun]) -> tuple[str, ...]:
        """The cells of a row, in the order of the columns."""
        return (f"{runs[0].compression:.1f}x", *(_cell(row, runs, mark) for mark in self.shown))


EXAMPLES = {"MNIST": 50_000, "Omniglot": 29_214}
TESTED = {"MNIST": 20_000, "Omniglot": 3246}  # images, held-out ones counted


def at_mark(runs: Sequence[DistillationRun], mark: int) -> list[float]:
    """The accuracies of all seeds after so many episodes; none if the profile has fewer."""
    return [run.accuracy[run.episodes.index(mark)] for run in runs if mark in run.episodes]


def _cell(row: DistillationRow, runs: list[DistillationRun], mark: int) -> str:
    """The mean accuracy, and the paper's."""
    each, paper = at_mark(runs, mark), row.paper.get(mark)
    ours = f"{statistics.fmean(each):.1f}" + (f" ± {_std(each):.1f}" if len(each) > 1 else "") if each else "-"
    return ours + (f" ({paper:.1f})" if paper is not None else "")


def _std(each: list[float]) -> float:
    return statistics.stdev(each) if len(each) > 1 else 0.0
