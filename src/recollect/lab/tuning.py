"""Chooses settings: rows over a grid, on held-out training images and with a seed that no table uses."""

from __future__ import annotations

import itertools
import json
import os
import statistics
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from recollect.lab.continual import ContinualProfile, ContinualRow
from recollect.lab.runner import Job

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from recollect.lab.continual import Continual
    from recollect.lab.experiment import Settings
    from recollect.lab.run import ContinualRun

SEEDS = (100,)
PROFILE = ContinualProfile(name="tuning", seeds=len(SEEDS), matrix_examples=50)


@dataclass(frozen=True)
class Trial:
    """What a row kept with some settings and a seed."""

    row: str
    settings: dict[str, Any]
    seed: int
    retention: float
    seconds: float


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


def append(path: Path, run: ContinualRun) -> None:
    """Add a trial: one line in one write, so that workers do not get in each other's way."""
    trial = {name: getattr(run, name) for name in ("row", "settings", "seed", "retention", "seconds")}
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, f"{json.dumps(trial)}\n".encode())
    finally:
        os.close(descriptor)


def jobs_left(experiment: Continual, rows: list[ContinualRow], seeds: tuple[int, ...], path: Path) -> list[Job]:
    """The trials that are missing in the file."""
    done = {(trial.row, json.dumps(trial.settings), trial.seed) for trial in read(path)}
    wanted = {(row.name, json.dumps(row.described), seed): (row, seed) for seed in seeds for row in rows}
    missing = [job for key, job in wanted.items() if key not in done]
    return [
        Job(number=number, experiment=experiment, profile=PROFILE, row=row, seed=seed, validation=True)
        for number, (row, seed) in enumerate(missing)
    ]


def ranked(trials: list[Trial], row: str) -> list[tuple[float, Settings]]:
    """The settings tried for a row with their mean retention over seeds, best first."""
    scores: dict[str, list[float]] = {}
    for trial in trials:
        if trial.row == row:
            scores.setdefault(json.dumps(trial.settings), []).append(trial.retention)
    means = [(statistics.fmean(kept), json.loads(settings)) for settings, kept in scores.items()]
    return sorted(means, key=lambda pair: -pair[0])
