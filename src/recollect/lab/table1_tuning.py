"""The grids behind the settings of Table 1: ``python -m recollect.lab.table1_tuning`` goes on where it was stopped."""

from __future__ import annotations

import argparse
import itertools
import math
from dataclasses import replace
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
    from recollect.lab.continual import ContinualRow

RATES = (0.05, 0.1, 0.2, 0.4)
# Batch sizes and steps of replay; few where a trial is long.
SHAPES = ((10, 1), (25, 1), (50, 1), (25, 3), (50, 3))
FEW_SHAPES, SAME_SHAPE = ((25, 1), (25, 3)), ((25, 3),)
# Ways to spend the storage of 100 images; for 200 they have twice the items, or the larger codes below.
PIXELS = (((14, 14), 1), ((10, 10), 1), ((20, 20), 1), ((10, 10), 2), ((14, 14), 2), ((14, 14), 3))
JPEG_BITS = (208, 416, 832)
IMAGE = 28 * 28 * 8


def codes(row: ContinualRow) -> list[ContinualRow]:
    """The row with other codes of its kind, and as many items as fit."""
    storage = IMAGE * (row.storage or 0)
    if row.learner is rc.Replay and row.codec is rc.ResizedPixels:
        shapes = [({"size": size, "bits": bits}, math.prod(size) * bits) for size, bits in PIXELS]
    elif row.learner is rc.Replay and row.codec is rc.JPEG:
        shapes = [({"bits": bits}, bits) for bits in JPEG_BITS]
    else:
        return []
    return [replace(row, code=code, items=storage // bits) for code, bits in shapes]


def candidates(row: ContinualRow) -> list[ContinualRow]:
    """Every setting that is tried for a row. What a row of the block with the same training needs is among them."""
    return codes(row) + settings(row)


def settings(row: ContinualRow) -> list[ContinualRow]:
    """The row's code with other settings of its learner. Recollections of 200 take those of 100: a trial is long."""
    learned = row.codec is rc.DiscreteAutoencoder
    if learned and row.storage == 200:
        return []
    if row.learner is rc.EWC:
        return tuning.grid(row, learning_rate=(0.005, 0.01, 0.02, 0.05), strength=(3.0, 10.0, 30.0, 100.0, 300.0))
    if row.learner is rc.Replay:
        shapes = SAME_SHAPE if learned else FEW_SHAPES if row.codec is rc.JPEG else SHAPES
        grids = (tuning.grid(row, learning_rate=RATES, batch_size=[b], steps=[s]) for b, s in shapes)
        return [*itertools.chain.from_iterable(grids), *(trainings(row) if learned else [])]
    if row.learner is rc.GEM:
        return tuning.grid(row, learning_rate=RATES[:3], memory_strength=[0.5])
    return tuning.grid(row, learning_rate=(0.002, 0.005, 0.01, 0.02, 0.05) if row.learner is rc.Online else RATES)


def trainings(row: ContinualRow) -> list[ContinualRow]:
    """The row with other ways to train its codec: how many steps, how fast, with or without rehearsal."""
    ways = [{"steps": steps, "learning_rate": rate, "rehearse": "none"} for steps in (1, 3) for rate in (5e-4, 1e-3)]
    ways += [{"steps": 1, "learning_rate": 1e-3, "most": 10}, {"steps": 3, "learning_rate": 5e-4, "most": 10}]
    return [replace(row, training=way) for way in ways]


def main() -> None:
    """Run what is missing in the file of trials, and print the best settings of each row."""
    parser = argparse.ArgumentParser(prog="python -m recollect.lab.table1_tuning", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/table1/tuning.jsonl"), help="file of trials")
    parser.add_argument("--jobs", type=int, default=2, help="runs side by side (default: 2)")
    parser.add_argument("--rows", nargs="*", default=[], help="parts of the names of the rows to tune (default: all)")
    parser.add_argument("--seeds", nargs="*", type=int, default=list(tuning.SEEDS), help="seeds (default: 100)")
    parser.add_argument("--codes", action="store_true", help="try codes only, with the settings of the row")
    arguments = parser.parse_args()
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    words = arguments.rows or [""]
    rows = [row for row in ROWS if not row.block and any(word in row.name for word in words)]
    wanted = [candidate for row in rows for candidate in (codes(row) if arguments.codes else candidates(row))]
    jobs = tuning.jobs_left(EXPERIMENT, wanted, tuple(arguments.seeds), arguments.out)
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
        for mean, tried in tuning.ranked(trials, row.name)[:3]:
            console.print(f"{row.name}: {mean:.1f} %", tried["settings"], tried["code"], tried["items"])


if __name__ == "__main__":
    main()
