"""The grids behind the settings of Table 2, on the first three tasks alone.

Each kind of memory is tried in the storage of 50 images, of 60 for GEM, and takes what is best there to all storages.
"""

from __future__ import annotations

from dataclasses import replace

import recollect as rc
from recollect.lab import tuning
from recollect.lab.continual import ContinualProfile, ContinualRow
from recollect.lab.table2 import EXPERIMENT

PROFILE = ContinualProfile(
    name="tuning", seeds=len(tuning.SEEDS), tasks=3, train_examples=2250, test_examples=250, matrix_examples=50
)
RATES = (0.003, 0.01, 0.03, 0.1, 0.2)


def candidates(row: ContinualRow) -> list[ContinualRow]:
    """Every setting that is tried for a row. GEM with other memories takes what is best with real storage."""
    if row.storage not in {None, 50, 60}:
        return []
    if row.learner is rc.GEM:
        if row.codec is not rc.RawPixels:
            return []
        return tuning.grid(row, learning_rate=RATES[2:], memory_strength=(0.1, 0.5))
    if row.learner is rc.LwF:
        return tuning.grid(row, learning_rate=RATES[:4], strength=(0.3, 1.0))
    tried = tuning.grid(row, learning_rate=RATES)
    if row.codec is rc.DiscreteAutoencoder:
        tried += [replace(row, training=row.training | change) for change in CODEC]
    return tried


# Other ways to train the codec.
CODEC = ({"learning_rate": 3e-4}, {"steps": 2}, {"warm_up": (0, 1)}, {"warm_up": (2500, 10)})


if __name__ == "__main__":
    tuning.tune(EXPERIMENT, PROFILE, candidates)
