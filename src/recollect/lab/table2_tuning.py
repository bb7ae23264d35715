"""The grids behind the settings of Table 2, on the first three tasks alone.

Each kind of memory is tried in the storage of 50 images, of 60 for GEM, and takes what is best there to all storages;
how small pixels are made is tried in each.
"""

from __future__ import annotations

from dataclasses import replace

import recollect as rc
from recollect.lab import tuning
from recollect.lab.continual import ContinualProfile, ContinualRow
from recollect.lab.table2 import EXPERIMENT, pixelated

PROFILE = ContinualProfile(
    name="tuning", seeds=len(tuning.SEEDS), tasks=3, train_examples=2250, test_examples=250, matrix_examples=50
)
RATES = (0.003, 0.01, 0.03, 0.1, 0.2)
# Height and width, and bits a value, by storage.
PIXELS = {10: ((4, 1), (3, 2), (2, 4)), 50: ((9, 1), (6, 2), (5, 3), (4, 5)), 200: ((8, 5), (10, 3), (6, 2))}
COSINES = ((12, 0.8), (16, 0.5), (16, 0.35))  # frequencies down and across, and their step


def candidates(row: ContinualRow) -> list[ContinualRow]:
    """Every setting that is tried for a row. GEM with other memories takes what is best with real storage."""
    codes = PIXELS[row.storage or 0] if row.codec is rc.ResizedPixels and row.learner is rc.Replay else ()
    pixels = [replace(row, **pixelated(row.storage or 0, *code)) for code in codes]
    if row.storage == 200 and row.codec is rc.RawPixels and row.learner is rc.Replay:
        return tuning.grid(row, learning_rate=RATES[:3])  # in the storage of 50 two of them are even
    if row.storage not in {None, 50, 60}:
        return pixels
    if row.learner is rc.GEM:
        if row.codec is not rc.RawPixels:
            return []
        return tuning.grid(row, learning_rate=RATES[2:], memory_strength=(0.1, 0.5))
    if row.learner is rc.LwF:
        return tuning.grid(row, learning_rate=RATES[:4], strength=(0.3, 1.0))
    tried = pixels + tuning.grid(row, learning_rate=RATES)
    if row.codec is rc.RawPixels:
        tried += tuning.grid(row, learning_rate=(0.001,))
    if row.codec is rc.Cosines:
        tried = tuning.grid(row, learning_rate=RATES[1:4])
        tried += [replace(row, code={"size": (size, size), "step": step}) for size, step in COSINES]
    if row.codec is rc.DiscreteAutoencoder:
        tried += [replace(row, training=row.training | change) for change in CODEC]
    return tried


# Other ways to train the codec.
CODEC = ({"learning_rate": 3e-4}, {"steps": 2}, {"warm_up": (0, 1)}, {"warm_up": (2500, 10)})


if __name__ == "__main__":
    tuning.tune(EXPERIMENT, PROFILE, candidates)
