"""The grids behind the settings of Incremental Omniglot: ``python -m recollect.lab.omniglot_tuning``.

On the first ten alphabets alone, in the storage of 50 images; what is best there goes for that of 10, too.
"""

from __future__ import annotations

from dataclasses import replace

import recollect as rc
from recollect.lab import tuning
from recollect.lab.continual import ContinualProfile, ContinualRow
from recollect.lab.frontier import IMAGE, sketched
from recollect.lab.omniglot import EXPERIMENT

PROFILE = ContinualProfile(
    name="tuning", seeds=len(tuning.SEEDS), tasks=10, train_examples=990, test_examples=110, matrix_examples=20
)
RATES = (0.01, 0.03, 0.1, 0.3)
PIXELS = ((14, 1), (18, 1), (10, 2), (8, 2), (12, 2))  # height and width, and bits of a pixel
JPEG_BITS = (320, 416, 624)
SKETCHES = ((14, 0.25, 32), (14, 0.25, 0), (18, 0.5, 0), (28, 0.5, 0))
# How the paper's codec learns.
CODEC = ({"warm_up": (0, 1), "steps": 1}, {"warm_up": (600, 10), "steps": 1}, {"warm_up": (600, 10), "steps": 3})
AUGMENTED = {"shift": 1.5, "scale": 0.15, "turn": 10}
AVERAGING = (0.98, 0.99)  # what stays of the average in a step; in so few steps more than 0.985 never does


def candidates(row: ContinualRow) -> list[ContinualRow]:
    """Every setting that is tried for a row: rates with an average of the model and without, all else without it."""
    if row.block or row.storage == 10 or row.settings.get("steps", 1) > 1:
        return []
    averaged = [*tuning.grid(row, averaging=AVERAGING), *tuning.grid(row, learning_rate=RATES)]
    row = replace(row, settings={name: value for name, value in row.settings.items() if name != "averaging"})
    tried = [*tuning.grid(row, learning_rate=RATES), *averaged]
    if row.codec is rc.ResizedPixels:
        codes = [{"size": (size, size), "bits": bits} for size, bits in PIXELS]
        tried += [replace(row, code=code) for code in codes]
    if row.codec is rc.JPEG:
        tried += [replace(row, code={"bits": bits}, items=50 * IMAGE // bits) for bits in JPEG_BITS]
    if row.codec is rc.DiscreteAutoencoder:
        tried += [replace(row, training=row.training | change) for change in CODEC]
    if row.codec is rc.Sketch:
        tried += [replace(row, **sketched(50, *sketch)) for sketch in SKETCHES]
    if row.codec in {rc.ResizedPixels, rc.Sketch}:
        tried += tuning.grid(row, augment=[AUGMENTED])
    return tried


if __name__ == "__main__":
    tuning.tune(EXPERIMENT, PROFILE, candidates)
