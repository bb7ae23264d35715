"""Chooses settings: rows over a grid, on held-out training images and with a seed that no table uses.

``python -m recollect.lab.NAME_tuning`` makes the trials of an experiment, and goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import sys
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from recollect.lab.job import Job
from recollect.lab.runner import run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from recollect.lab.continual import Continual, ContinualProfile, ContinualRow
    from recollect.lab.experiment import Settings
    from recollect.lab.job import AnyJob
    from recollect.lab.run import ContinualRun

SEEDS = (100,)


@dataclass(frozen=True)
class Trial:
    """What a row kept with some settings and a seed."""

    row: str
    settings: dict[str, Any]
    seed: int
    retention: float
    seconds: float
    amounts: Settings | None = None  # of the stream; older trials do not say, and have those of their file

    def is_of(self, profile: ContinualProfile) -> bool:
        """Whether it was made over as much of the stream as a profile has."""
        return self.amounts is None or key(self.amounts) == key(profile.amounts)


def grid(row: ContinualRow, **choices: Iterable[Any]) -> list[ContinualRow]:
    """The row with every combination of the choices for its learner's settings.

    >>> from recollect.lab.table1 import EXPERIMENT
    >>> rows = grid(EXPERIMENT.rows[0], learning_rate=(0.1, 0.2))
    >>> [row.settings["learning_rate"] for row in rows]
    [0.1, 0.2]
    """
    combinations = itertools.product(*choices.values())
    return [replace(row, settings=row.settings | dict(zip(choices, values, strict=True))) for values in combinations]


def read(path: Path) -> list[Trial]:
    """All trials so far."""
    return [Trial(**json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []


def key(settings: Settings) -> str:
    """What tells settings apart, in whatever order they stand."""
    return json.dumps(settings, sort_keys=True)


def append(path: Path, run: ContinualRun) -> None:
    """Add a trial: one line in one write, so that workers do not get in each other's way."""
    trial = {name: getattr(run, name) for name in ("row", "settings", "seed", "retention", "seconds", "amounts")}
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, f"{json.dumps(trial)}\n".encode())
    finally:
        os.close(descriptor)


def jobs_left(
    experiment: Continual, profile: ContinualProfile, rows: list[ContinualRow], seeds: Sequence[int], path: Path
) -> list[AnyJob]:
    """The trials that are missing in the file."""
    done = {(trial.row, key(trial.settings), trial.seed) for trial in read(path) if trial.is_of(profile)}
    wanted = {(row.name, key(row.described), seed): (row, seed) for seed in seeds for row in rows}
    missing = [job for trial, job in wanted.items() if trial not in done]
    return [
        Job(number=number, experiment=experiment, profile=profile, row=row, seed=seed, validation=True)
        for number, (row, seed) in enumerate(missing)
    ]


def ranked(trials: list[Trial], row: str) -> list[tuple[float, Settings]]:
    """The settings tried for a row with their mean retention over seeds, best first."""
    scores: dict[str, list[float]] = {}
    for trial in trials:
        if trial.row == row:
            scores.setdefault(key(trial.settings), []).append(trial.retention)
    means = [(statistics.fmean(kept), json.loads(settings)) for settings, kept in scores.items()]
    return sorted(means, key=lambda pair: -pair[0])


def tune(
    experiment: Continual,
    profile: ContinualProfile,
    candidates: Callable[[ContinualRow], list[ContinualRow]],
    *,
    about: str | None = __doc__,
) -> None:
    """The command: make the trials that are missing in the file, and print the best settings of each row."""
    module = Path(sys.argv[0]).stem
    parser = argparse.ArgumentParser(prog=f"python -m recollect.lab.{module}", description=about)
    path = Path("results") / experiment.name / "tuning.jsonl"
    parser.add_argument("--out", type=Path, default=path, help=f"file of trials (default: {path})")
    parser.add_argument("--jobs", type=int, default=2, help="runs side by side (default: 2)")
    parser.add_argument("--rows", nargs="*", default=[""], help="parts of the names of the rows to tune (default: all)")
    parser.add_argument("--seeds", nargs="*", type=int, default=list(SEEDS), help="seeds (default: 100)")
    arguments = parser.parse_args()
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    rows = [row for row in experiment.rows if not row.block and any(word in row.name for word in arguments.rows)]
    wanted = [candidate for row in rows for candidate in candidates(row)]
    jobs = jobs_left(experiment, profile, wanted, arguments.seeds, arguments.out)
    console = Console()
    run(jobs, partial(append, arguments.out), workers=arguments.jobs, console=console)
    # Trials of an earlier grid, in another storage say, are no measure for those of this one.
    grid = [key(candidate.described) for candidate in wanted]
    trials = [trial for trial in read(arguments.out) if key(trial.settings) in grid and trial.is_of(profile)]
    for row in rows:
        for mean, tried in ranked(trials, row.name)[:3]:
            console.print(f"{row.name}: {mean:.1f} %", {name: tried[name] for name in ("settings", "code", "training")})
