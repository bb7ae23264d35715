"""The grids behind the settings of Table 1: ``python -m recollect.lab.table1_tuning`` goes on where it was stopped."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import TYPE_CHECKING

import recollect as rc
from recollect.lab import tuning
from recollect.lab.continual import ContinualProfile, ContinualRow
from recollect.lab.table1 import EXPERIMENT

if TYPE_CHECKING:
    from recollect.lab.experiment import Settings

PROFILE = ContinualProfile(name="tuning", seeds=len(tuning.SEEDS), matrix_examples=50)
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
    """The row's code with other settings of its learner, and for replay with other ways to train its codec.

    Recollections of 200 are not tried, since a trial is long, and GEM's codec trains as that of replay.
    """
    learned = row.codec is rc.DiscreteAutoencoder
    if learned and row.storage == 200:
        return []
    if learned:
        row = replace(row, training=FIRST_TRAINING)
    if row.learner is rc.EWC:
        return tuning.grid(row, learning_rate=(0.005, 0.01, 0.02, 0.05), strength=(3.0, 10.0, 30.0, 100.0, 300.0))
    if row.learner is rc.Replay:
        shapes = SAME_SHAPE if learned else FEW_SHAPES if row.codec is rc.JPEG else SHAPES
        grids = (tuning.grid(row, learning_rate=RATES, batch_size=[b], steps=[s]) for b, s in shapes)
        further = [replace(row, training=way) for way in TRAININGS] if learned else []
        return [*itertools.chain.from_iterable(grids), *further]
    if row.learner is rc.GEM:
        return tuning.grid(row, learning_rate=RATES[:3], memory_strength=[0.5])
    return tuning.grid(row, learning_rate=(0.002, 0.005, 0.01, 0.02, 0.05) if row.learner is rc.Online else RATES)


# How the codec trains while settings of the learner are tried; then how else it may: with fewer steps, slower, without
# rehearsal, with more steps in the first task.
FIRST_TRAINING: Settings = {"steps": 3, "learning_rate": 1e-3, "most": 10}
TRAININGS: tuple[Settings, ...] = (
    *({"steps": steps, "learning_rate": rate, "rehearse": "none"} for steps in (1, 3) for rate in (5e-4, 1e-3)),
    FIRST_TRAINING | {"steps": 1},
    FIRST_TRAINING | {"learning_rate": 5e-4},
    FIRST_TRAINING | {"warm_up": (1000, 20)},
    FIRST_TRAINING | {"warm_up": (1000, 40)},
)


if __name__ == "__main__":
    tuning.tune(EXPERIMENT, PROFILE, candidates)
