"""What an experiment is: rows to be run, each a learner with its memory, and profiles that say how much of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

import recollect as rc
from recollect.lab.course import MNIST_ROTATIONS, Course

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.memory.memory import Rule

Settings = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Row:
    """A line of a table: which learner with which settings, and what its memory keeps.

    Settings are the keyword arguments of the classes that they stand beside. Those that the paper's appendix gives take
    their place in the profile ``paper``.
    """

    name: str
    learner: type[Any]
    settings: Settings
    paper_settings: Settings = field(default_factory=dict)
    codec: type[Any] | None = None
    code: Settings = field(default_factory=dict)
    training: Settings = field(default_factory=dict)  # of the codec, by RecollectionModule
    paper_training: Settings = field(default_factory=dict)
    storage: int | None = None  # in images, what the memory may take
    items: int = 0
    admission: Rule = "reservoir"
    block: str = ""
    paper: float | None = None  # retention in the paper, in percent

    def in_profile(self, profile: Profile) -> Row:
        """The row with the settings of the profile."""
        if profile.name != "paper":
            return self
        settings = self.settings | self.paper_settings
        return replace(self, settings=settings, training=self.paper_training or self.training)

    @property
    def described(self) -> Settings:
        """All that decides what a run of this row does, for the record."""
        names = {"learner": self.learner.__name__, "codec": self.codec.__name__ if self.codec else None}
        chosen = ("settings", "code", "training", "items", "admission")
        return names | {name: value for name, value in asdict(self).items() if name in chosen}

    def build(self, course: Course, stream: list[rc.streams.Task], seed: int, device: torch.device) -> rc.Learner:
        """The learner with everything it needs for a stream of the course."""
        model = course.model(stream, seed).to(device)
        if self.codec is None:
            return self.learner(model, **self.settings)
        learned = issubclass(self.codec, nn.Module)
        codec = self.codec(course.shape, **self.code, **({"seed": seed} if learned else {}))
        if learned:
            codec.to(device)
        memory = rc.Memory(
            codec,
            capacity=self.items,
            admission=self.admission,
            classes=course.classes,
            tasks=course.tasks,
            seed=seed,
        )
        if self.learner is rc.Offline:
            return rc.Offline(model, memory, **self.settings)
        return self.learner(model, rc.RecollectionModule(memory, **self.training), **self.settings)


@dataclass(frozen=True, kw_only=True)
class Profile:
    """An amount of work. ``rows`` are words in the names of the rows that are run; none stands for all."""

    name: str
    seeds: int
    stream_batch: int = 10
    tasks: int = MNIST_ROTATIONS.tasks
    train_examples: int = 1000
    test_examples: int = 10_000
    matrix_examples: int = 1000  # test examples of each task that the accuracy matrix is taken on
    rows: tuple[str, ...] = ()

    @property
    def amounts(self) -> dict[str, int]:
        """All that decides how much work a run is, for the record."""
        return {name: value for name, value in asdict(self).items() if name not in {"name", "seeds", "rows"}}


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Rows on a stream of tasks."""

    name: str
    title: str
    answers: str
    rows: tuple[Row, ...]
    profiles: dict[str, Profile]
    notes: tuple[str, ...] = ()
    course: Course = MNIST_ROTATIONS

    def distinct(self, profile: Profile, rows: Sequence[Row]) -> list[Row]:
        """Those of ``rows`` that do not do the same as another, under the names that their runs are kept by."""
        named = (replace(row, name=self.recorded_as(row, profile)) for row in rows)
        return [*{row.name: row for row in named}.values()]

    def recorded_as(self, row: Row, profile: Profile) -> str:
        """The name under which runs of a row are kept: rows that do the same share their runs."""
        rows = (other.in_profile(profile) for other in self.rows)
        return next((other.name for other in rows if other.described == row.described), row.name)

    def chosen(self, profile: Profile, words: Sequence[str] = ()) -> list[Row]:
        """The rows of a profile, or those whose names have one of ``words``, with their settings in the profile."""
        for word in words:
            if not any(word.lower() in row.name.lower() for row in self.rows):
                raise ValueError(
                    f"rows={word!r}: accepted are parts of {', '.join(repr(row.name) for row in self.rows)}"
                )
        wanted = [word.lower() for word in words or profile.rows]
        rows = [row for row in self.rows if not wanted or any(word in row.name.lower() for word in wanted)]
        return [row.in_profile(profile) for row in rows]
