"""What an experiment is: rows to be run with several seeds, and profiles that say how much of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from recollect.lab.checkpoint import Checkpoint
    from recollect.lab.job import Job
    from recollect.lab.panels import Picture
    from recollect.lab.results import Summary

Settings = dict[str, Any]
Report = Callable[[int, str], object]  # is told how many steps of a run are done, and what is known so far


def silent(step: int, state: str) -> None:
    """Report to nobody."""


@dataclass(frozen=True, kw_only=True)
class Row(ABC):
    """A line of a table or a curve of a figure."""

    name: str
    block: str = ""
    seeds: int | None = None  # at most, where a run is long

    @property
    @abstractmethod
    def described(self) -> Settings:
        """All that decides what a run of this row does, for the record."""

    def in_profile(self, profile: Any) -> Self:
        """The row with the settings of the profile."""
        return self


@dataclass(frozen=True, kw_only=True)
class Profile:
    """An amount of work. ``rows`` are words in the names of the rows that are run; none stands for all."""

    name: str
    seeds: int
    rows: tuple[str, ...] = ()

    @property
    def amounts(self) -> dict[str, Any]:
        """All that decides how much work a run is, for the record."""
        return {name: value for name, value in asdict(self).items() if name not in {"name", "seeds", "rows"}}

    def seeds_of(self, row: Row, wanted: int | None = None) -> range:
        """The seeds that a row is run with, ``wanted`` of them if that is said."""
        return range(wanted if wanted is not None else min(self.seeds, row.seeds or self.seeds))


@dataclass(frozen=True, kw_only=True)
class Run(ABC):
    """What is recorded of a finished run."""

    experiment: str
    profile: str
    row: str
    seed: int
    validation: bool  # measured on held-out training data
    amounts: dict[str, Any]  # of the profile
    settings: Settings
    seconds: float  # of training
    environment: dict[str, Any]

    @property
    @abstractmethod
    def headline(self) -> str:
        """What is said of the run when it is finished."""


R = TypeVar("R", bound=Row)
P = TypeVar("P", bound=Profile)
U = TypeVar("U", bound=Run)


class Kept(NamedTuple):
    """Under which names runs are kept."""

    experiment: str
    row: str


@dataclass(frozen=True, kw_only=True)
class Experiment(ABC, Generic[R, P, U]):
    """Rows that answer a question together. Each kind of experiment says how its rows are run and shown."""

    name: str
    title: str
    answers: str
    rows: tuple[R, ...]
    profiles: dict[str, P]
    notes: tuple[str, ...] = ()
    shares: AnyExperiment | None = None  # another one on the same stream, whose runs serve rows that do the same

    kind: ClassVar[type[Run]]  # of its runs
    keeps_diary: ClassVar[bool] = False  # its runs tell TensorBoard, if they are asked to

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """What stands above the cells, behind the name of a row."""

    def prepare(self, profile: P, rows: Sequence[R]) -> None:
        """Make sure that what the runs of ``rows`` need is there, or say what is missing, before the first of them."""

    @abstractmethod
    def execute(self, job: Job[R, P], report: Report = silent, checkpoint: Checkpoint | None = None) -> U:
        """Make a run. It may go on from a checkpoint, and save itself there."""

    @abstractmethod
    def steps(self, profile: P, row: R) -> int:
        """How many steps of a run are reported."""

    @abstractmethod
    def cost(self, profile: P, row: R) -> float:
        """About how many seconds of one core a run takes."""

    @abstractmethod
    def cells(self, row: R, runs: list[U]) -> tuple[str, ...]:
        """The cells of a row, in the order of the columns."""

    @abstractmethod
    def as_json(self, row: R, runs: list[U]) -> dict[str, Any]:
        """The row as `--json` prints it."""

    @abstractmethod
    def amount(self, profile: P) -> str:
        """A profile's amount of work, in words."""

    def command(self, profile: P) -> str:
        """What is typed to have it run."""
        return f"recollect run {self.name} --profile {profile.name}"

    def figure(self, found: list[Summary[R, U]]) -> Figure | None:
        """A figure of its rows, for an experiment that has one."""
        return None

    def pictures(self, found: list[Summary[R, U]]) -> list[Picture]:
        """What a report shows of its rows: the figure, for an experiment that has no more."""
        from recollect.lab.panels import pictured  # noqa: PLC0415 - matplotlib takes its time to load

        figure = self.figure(found)
        return [pictured([figure])] if figure is not None else []

    def distinct(self, profile: P, rows: Sequence[R]) -> list[R]:
        """Those of ``rows`` that do not do the same as another before them."""
        distinct: dict[Kept, R] = {}
        for row in rows:
            distinct.setdefault(self.kept(row, profile), row)  # the first has a say in how many seeds there are
        return [*distinct.values()]

    def kept(self, row: R, profile: P) -> Kept:
        """Where the runs of a row are: rows that do the same share them, those of another experiment, too."""
        for experiment in (self,) if self.shares is None else (self.shares, self):
            theirs = experiment.profiles.get(profile.name)
            if theirs is not None and theirs.amounts == profile.amounts:
                for other in experiment.rows:
                    if other.in_profile(theirs).described == row.described:
                        return Kept(experiment.name, other.name)
        return Kept(self.name, row.name)

    def chosen(self, profile: P, words: Sequence[str] = ()) -> list[R]:
        """The rows of a profile, or those of ``words``, with their settings in the profile.

        A word is the name of a row, or a part of the names of several.
        """
        for word in words:
            if not any(word.lower() in row.name.lower() for row in self.rows):
                raise ValueError(
                    f"rows={word!r}: accepted are parts of {', '.join(repr(row.name) for row in self.rows)}"
                )
        names = {row.name.lower() for row in self.rows}
        wanted = [word.lower() for word in words or profile.rows]
        parts = [word for word in wanted if word not in names]

        def is_wanted(name: str) -> bool:
            return not wanted or name in wanted or any(part in name for part in parts)

        return [row.in_profile(profile) for row in self.rows if is_wanted(row.name.lower())]


AnyExperiment = Experiment[Any, Any, Any]
