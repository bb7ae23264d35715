"""One run of distillation: the codec, the teacher and the memory of a row, and its students, one a learning rate."""

from __future__ import annotations

import copy
import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

import recollect as rc
from recollect.distillation import DecodedSampling
from recollect.lab.codec_training import eager, tuned
from recollect.lab.compressing import bits_of
from recollect.lab.experiment import Run, silent
from recollect.lab.shelf import Part
from recollect.lab.student import around, curve, marks
from recollect.seeding import derived

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import nn

    from recollect.distillation import Sampler
    from recollect.lab.experiment import Report
    from recollect.lab.job import Job
    from recollect.lab.lesson import Lesson, Material, Shown

TRIAL = 0.2  # share of the training images that a learning rate of a codec is tried on
WRITTEN = 1000  # images that are encoded at once
SHARED = 0  # the seed of teacher and codec: runs differ in the student, the sample that is kept and what is drawn


@dataclass(frozen=True, kw_only=True)
class DistillationRun(Run):
    """What is recorded of the students of a row. Accuracies are in percent."""

    episodes: list[int]
    accuracy: list[float]  # on the test images after so many episodes
    learning_rates: list[float]  # of the student with the best accuracy on held-out images, each time
    curves: dict[str, dict[str, list[float]]]  # by learning rate: accuracies on "held-out" and "test" images
    items: int
    bits: dict[str, int]  # of codes with what they are coded by, and of the codec
    compression: float  # of all training images, the codec counted
    teacher: dict[str, float | None] | None  # its accuracy, and the seconds that it took
    codec: dict[str, Any] | None  # its distortion on the training images, learning rates and seconds

    @property
    def headline(self) -> str:
        """The last accuracy."""
        return f"{self.accuracy[-1]:.2f} % after {self.episodes[-1]:,} episodes"


@dataclass(frozen=True, eq=False, kw_only=True)
class Prepared:
    """What the students of a row are taught with, and what is known of it."""

    codec: Any
    of_codec: dict[str, Any] | None
    teacher: nn.Module | None
    of_teacher: dict[str, Any] | None
    memory: rc.Memory | None  # none for what needs no memory


@dataclass(frozen=True, eq=False)
class Classroom:
    """Where a run is made: a student for each learning rate, and what they are taught with."""

    lesson: Lesson
    job: Job[Any, Any]

    @property
    def material(self) -> Material:
        """What is learned from."""
        profile = self.job.profile
        return self.lesson.load(profile.train_examples, profile.test_examples, profile.tasks)

    def prepared(self, report: Report = silent) -> Prepared:
        """Codec and teacher, made or from the shelf, and the memory filled."""
        job = self.job
        # The codec first: runs side by side begin with codecs of their own, and do not all wait for the one teacher.
        codec, of_codec = self._codec(report)
        teacher, of_teacher = None, None
        if job.row.teacher:
            report(0, "teacher")
            teacher, of_teacher = self.lesson.taught(
                self.material,
                epochs=job.profile.teacher_epochs,
                seed=SHARED,
                device=job.device,
                shelf=job.shelf,
                tell=lambda state: report(0, f"teacher, {state}"),
            )
        memory = None if "code" in job.row.sampling else self._memory(codec)
        return Prepared(codec=codec, of_codec=of_codec, teacher=teacher, of_teacher=of_teacher, memory=memory)

    def _codec(self, report: Report) -> tuple[Any, dict[str, Any] | None]:
        job, row = self.job, self.job.row
        if not row.learns:
            return row.codec(self.lesson.shape, **row.code), None
        more = {} if job.profile.paper_codec else eager(row.codec)
        report(0, "codec")
        return tuned(
            lambda: row.codec(self.lesson.shape, **row.code, **more, seed=SHARED).to(job.device),
            self.material.train.images,
            f"{self.lesson.name} of {len(self.material.classes)} tasks, to be distilled",
            learning_rates=row.codec_rates,
            trial_images=round(TRIAL * len(self.material.train)),
            trial_epochs=1,
            epochs=job.profile.codec_epochs,
            seed=SHARED,
            shelf=job.shelf,
            report=lambda step, state: report(0, f"codec, {state}"),
        )

    def _memory(self, codec: Any) -> rc.Memory:
        """The row's share of the training images, drawn at random."""
        train, seed = self.material.train, self.job.seed
        order = torch.Generator().manual_seed(derived(seed, "sample that is kept"))
        kept = torch.randperm(len(train), generator=order)[: round(self.job.row.share * len(train))]
        coded = self.job.row.scheme == "entropy"
        memory = rc.Memory(
            codec,
            capacity=None if coded else len(kept),
            code_bits=len(kept) * bits_of(codec) if coded else None,  # so many that all of them fit
            classes=self.lesson.classes,
            tasks=len(self.material.classes),
            scheme=self.job.row.scheme,
            seed=seed,
        )
        for rows in kept.split(WRITTEN):
            part = train[rows]
            memory.write(part.x, part.y, part.task)
        return memory

    def students(self, prepared: Prepared, tests: dict[str, Shown], report: Report) -> dict[float, dict[str, Any]]:
        """The curves of a student for each learning rate."""
        job, memory = self.job, prepared.memory
        buffer = functools.cache(
            lambda: None if memory is None else DecodedSampling(memory, prepared.teacher, seed=job.seed)
        )
        at, students = marks(job.profile.episodes), {}
        for number, rate in enumerate(job.profile.learning_rates):

            def tell(episodes: int, right: float, number: int = number, rate: float = rate) -> None:
                reached = number * len(at) + sum(mark <= episodes for mark in at)
                report(reached, f"{episodes:,} episodes at {rate:g}: {right:.1f} %")

            how = {**job.row.described, **job.profile.of_a_student, "learning_rate": rate, "seed": job.seed}
            how |= {"lesson": self.lesson.name, "tests": [*tests]}
            make = functools.partial(self._student, prepared, buffer, tests, rate, tell)
            students[rate] = job.shelf.part("student", how, make).facts
        return students

    def _student(
        self,
        prepared: Prepared,
        buffer: Callable[[], Sampler | None],
        tests: dict[str, Shown],
        rate: float,
        tell: Callable[[int, float], None],
    ) -> Part:
        job = self.job
        student = self.lesson.model(job.row.student, self.material, derived(job.seed, "student")).to(job.device)
        # A copy of the sampler, so that what one student is shown does not depend on another.
        source = copy.deepcopy(buffer())
        sampler = around(job.row.sampling, source, prepared.codec, prepared.teacher, student, seed=job.seed)
        return Part(
            curve(
                prepared.teacher,
                student,
                sampler,
                tests,
                episodes=job.profile.episodes,
                batch_size=job.profile.batch_size,
                learning_rate=rate,
                report=tell,
            )
        )

    def recorded(self, prepared: Prepared, report: Report) -> DistillationRun:
        """The run."""
        material, memory = self.material, prepared.memory
        tests = {} if material.held_out is None else {"held-out": material.held_out}
        if not (self.job.validation and tests):
            tests["test"] = material.test
        students = self.students(prepared, tests, report)
        chosen = chosen_rates({rate: facts["accuracy"] for rate, facts in students.items()})
        bill = None if memory is None else memory.footprint()
        bits = {"codes": 0 if bill is None else bill.codes, "codec": prepared.codec.storage_bits}
        if bill is not None and bill.tables:
            bits["tables"] = bill.tables
        return DistillationRun(
            **self.job.recorded,
            episodes=marks(self.job.profile.episodes),
            accuracy=[students[rate]["accuracy"][[*tests][-1]][number] for number, rate in enumerate(chosen)],
            learning_rates=chosen,
            curves={f"{rate:g}": facts["accuracy"] for rate, facts in students.items()},
            items=0 if memory is None else len(memory),
            bits=bits,
            compression=8 * material.train.images.numel() / sum(bits.values()),
            teacher=prepared.of_teacher,
            codec=prepared.of_codec,
            seconds=sum(facts["seconds"] for facts in students.values()),
        )


def chosen_rates(accuracies: dict[float, dict[str, list[float]]]) -> list[float]:
    """At each mark the learning rate of the best student on the first of its tests, the held-out images if there are.

    >>> chosen_rates({1e-3: {"held-out": [50.0, 90.0]}, 1e-4: {"held-out": [20.0, 95.0]}})
    [0.001, 0.0001]
    """
    judged = {rate: next(iter(tests.values())) for rate, tests in accuracies.items()}
    count = len(next(iter(judged.values())))
    return [max(judged, key=lambda rate: judged[rate][mark]) for mark in range(count)]
