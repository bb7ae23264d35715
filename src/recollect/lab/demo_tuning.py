"""Chooses the demonstration's settings: every row over a grid, on held-out training images and other seeds.

``python -m recollect.lab.demo_tuning`` goes on where it was stopped and prints the best of each row.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import statistics
import time
from pathlib import Path

from rich.console import Console

import recollect as rc
from recollect.lab.demo import ROWS, Row, learner_of, retention, train
from recollect.lab.environment import environment

BATCH_SIZES, SEEDS = (10, 25, 50), (100, 101)
LEARNING_RATES = (0.05, 0.1, 0.2, 0.4, 0.8)
ONLINE_LEARNING_RATES = (0.002, 0.005, 0.01, 0.02, 0.05)  # without a memory, slower learning forgets less


def grid() -> list[tuple[Row, int]]:
    """Every row with every setting and seed; a row without a memory has no batch size."""
    return [
        (dataclasses.replace(row, learning_rate=rate, batch_size=size), seed)
        for row in ROWS
        for size, rate, seed in itertools.product(
            BATCH_SIZES if row.items else (0,),
            LEARNING_RATES if row.items else ONLINE_LEARNING_RATES,
            SEEDS,
        )
    ]


@dataclasses.dataclass(frozen=True)
class Trial:
    """A cell of the grid with what it kept."""

    name: str
    learning_rate: float
    batch_size: int
    seed: int
    retention: float
    seconds: float


def best(trials: list[Trial]) -> dict[str, tuple[float, int]]:
    """For each row the learning rate and batch size with the highest mean retention."""
    scores: dict[tuple[str, float, int], list[float]] = {}
    for trial in trials:
        scores.setdefault((trial.name, trial.learning_rate, trial.batch_size), []).append(trial.retention)
    ranked = sorted(scores, key=lambda cell: statistics.mean(scores[cell]))
    return {name: (rate, size) for name, rate, size in ranked}  # the last of a name is its best


def main() -> None:
    """Run what is missing in the file of results, and print the best settings."""
    parser = argparse.ArgumentParser(prog="python -m recollect.lab.demo_tuning", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/demo/tuning.json"), help="file of results")
    out = parser.parse_args().out
    out.parent.mkdir(parents=True, exist_ok=True)
    trials = [Trial(**trial) for trial in json.loads(out.read_text())["trials"]] if out.exists() else []
    done = {(trial.name, trial.learning_rate, trial.batch_size, trial.seed) for trial in trials}
    streams = {seed: rc.streams.mnist_rotations(seed=seed, validation=True) for seed in SEEDS}
    console = Console()
    for number, (row, seed) in enumerate(grid(), start=1):
        if (row.name, row.learning_rate, row.batch_size, seed) not in done:
            started = time.perf_counter()
            learner = learner_of(row, seed)
            train(learner, streams[seed], lambda: None)
            kept, passed = retention(learner, streams[seed]), time.perf_counter() - started
            trials.append(Trial(row.name, row.learning_rate, row.batch_size, seed, kept, passed))
            written = {"trials": [dataclasses.asdict(trial) for trial in trials], "environment": environment()}
            out.write_text(json.dumps(written, indent=1) + "\n")
            console.print(f"{number} of {len(grid())}: {trials[-1]}")
    for name, (rate, size) in best(trials).items():
        console.print(f"{name}: learning rate {rate}, batch size {size}")


if __name__ == "__main__":
    main()
