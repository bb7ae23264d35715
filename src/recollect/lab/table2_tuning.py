"""The grids behind the settings of Table 2, on the first three tasks alone, in three twentieths of the storage.

A memory that had all of its storage would hold most of these three tasks, and little of twenty: what is best then is
not what is best in the table. Each kind of memory is tried in the storage of 50 images, of 60 for recollections of GEM
and of 200 for real images, and takes what is best there to all storages; how small pixels are made is tried in each.
"""

from __future__ import annotations

from dataclasses import replace

import recollect as rc
from recollect.lab import tuning
from recollect.lab.continual import ContinualProfile, ContinualRow
from recollect.lab.table2 import EXPERIMENT, pixelated, waved

PROFILE = ContinualProfile(
    name="tuning", seeds=len(tuning.SEEDS), tasks=3, train_examples=2250, test_examples=250, matrix_examples=50
)
RATES = (0.003, 0.01, 0.03, 0.1)
# Height and width, and bits a value, by storage.
PIXELS = {10: ((3, 2), (2, 4), (3, 3)), 50: ((6, 2), (5, 3), (6, 3)), 200: ((8, 5), (10, 3), (8, 3))}
# Frequencies down and across, their step and the values that one can have, by storage.
COSINES = {
    10: ((4, 1.0, 31), (6, 1.0, 31), (6, 1.5, 31)),
    50: ((8, 1.0, 31), (12, 0.8, 31), (16, 0.5, 31)),
    200: ((16, 0.35, 31), (20, 0.3, 31), (24, 0.2, 63)),
}


def candidates(row: ContinualRow) -> list[ContinualRow]:
    """Every setting that is tried for a row, in its share of the storage."""
    return [shared(tried) for tried in settings(row)]


def shared(row: ContinualRow) -> ContinualRow:
    """The row in the share of its storage that three tasks have of the stream."""
    whole = EXPERIMENT.profiles["standard"].tasks
    code_bits = None if row.code_bits is None else row.code_bits * PROFILE.tasks // whole
    return replace(row, items=row.items * PROFILE.tasks // whole, code_bits=code_bits)


def settings(row: ContinualRow) -> list[ContinualRow]:
    """The row with every setting. GEM with recollections and JPEG takes what is best with the others."""
    storage = row.storage or 0
    if row.block:  # a row of above once more
        return []
    if row.learner is rc.Online:
        return tuning.grid(row, learning_rate=RATES[:3])
    if row.learner is rc.LwF:
        return tuning.grid(row, learning_rate=RATES[:3], strength=(0.3, 1.0))
    if row.learner is rc.GEM:
        # Of 60 real images nine are left, with which nothing is better than learning without a memory.
        if storage != {rc.RawPixels: 200, rc.ResizedPixels: 60}.get(row.codec):
            return []
        return tuning.grid(row, learning_rate=RATES[1:3], memory_strength=(0.1, 0.5, 1.0))
    tried = []
    if row.codec is rc.ResizedPixels:
        tried += [replace(row, **pixelated(storage, *code)) for code in PIXELS[storage]]
    if row.codec is rc.Cosines:
        tried += [replace(row, **waved(storage, *code)) for code in COSINES[storage]]
    # Of 50 real images eight are left, too few to tell.
    if storage == (200 if row.codec is rc.RawPixels else 50):
        tried += tuning.grid(row, learning_rate=RATES[1:])
    if row.codec is rc.RawPixels and storage == 200:
        tried += tuning.grid(row, averaging=(0.0,))
    if row.codec is rc.DiscreteAutoencoder and storage == 50:
        tried += [replace(row, training=row.training | change) for change in CODEC]
    return tried


# Other ways to train the codec.
CODEC = ({"learning_rate": 3e-4}, {"steps": 2}, {"warm_up": (0, 1)}, {"warm_up": (2500, 10)})


if __name__ == "__main__":
    tuning.tune(EXPERIMENT, PROFILE, candidates)
