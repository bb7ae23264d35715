"""The grids behind the settings of Table 1: ``python -m recollect.lab.table1_tuning`` goes on where it was stopped."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from rich.console import Console

import recollect as rc
from recollect.lab import tuning
from recollect.lab.runner import run
from recollect.lab.table1 import EXPERIMENT, ROWS

if TYPE_CHECKING:
    from recollect.lab.experiment import Row

RATES = (0.05, 0.1, 0.2, 0.4)
BATCHES_AND_STEPS = ((10, 1), (25, 1), (50, 1), (25, 3), (50, 3))


def candidates(row: Row) -> list[Row]:
    """Every setting that is tried for a row. What a row of the block with the same training needs is among them."""
    if row.block:
        return []
    if row.learner is rc.Online:
        return tuning.grid(row, learning_rate=(0.002, 0.005, 0.01, 0.02, 0.05))
    if row.learner is rc.EWC:
        return tuning.grid(row, learning_rate=(0.01, 0.02, 0.05, 0.1), strength=(3.0, 10.0, 30.0, 100.0, 300.0))
    if row.learner is rc.Offline:
        return tuning.grid(row, learning_rate=RATES)
    if row.learner is rc.GEM:
        return tuning.grid(row, learning_rate=RATES[:3], memory_strength=(0.2, 0.5, 1.0))
    settings = [tuning.grid(row, learning_rate=RATES, batch_size=[b], steps=[s]) for b, s in BATCHES_AND_STEPS]
    return [row for rows in settings for row in rows]


def main() -> None:
    """Run what is missing in the file of trials, and print the best settings of each row."""
    parser = argparse.ArgumentParser(prog="python -m recollect.lab.table1_tuning", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/table1/tuning.jsonl"), help="file of trials")
    parser.add_argument("--jobs", type=int, default=2, help="runs side by side (default: 2)")
    parser.add_argument("--rows", nargs="*", default=[], help="parts of the names of the rows to tune (default: all)")
    parser.add_argument("--seeds", nargs="*", type=int, default=list(tuning.SEEDS), help="seeds (default: 100 101)")
    arguments = parser.parse_args()
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    rows = [row for row in ROWS if not arguments.rows or any(word in row.name for word in arguments.rows)]
    tried = [candidate for row in rows for candidate in candidates(row)]
    jobs = tuning.jobs_left(EXPERIMENT, tried, tuple(arguments.seeds), arguments.out)
    console = Console()
    run(
        jobs,
        partial(tuning.append, arguments.out),
        workers=arguments.jobs,
        device=torch.device("cpu"),
        console=console,
    )
    trials = tuning.read(arguments.out)
    for row in rows:
        for mean, settings in tuning.ranked(trials, row.name)[:3]:
            console.print(f"{row.name}: {mean:.1f} % with {settings['settings']}", highlight=False)


if __name__ == "__main__":
    main()
