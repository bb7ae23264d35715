"""The grids behind the settings of the frontier: ``python -m recollect.lab.frontier_tuning`` goes on where it stopped.

The training, which is the same for all memories, is tried in the storage of 20 images, and chosen by the best control
alone; what each memory keeps of an image is tried in those of 20 and of 100.
"""

from __future__ import annotations

from dataclasses import replace

import recollect as rc
from recollect.lab import tuning
from recollect.lab.continual import ContinualProfile, ContinualRow
from recollect.lab.frontier import EXPERIMENT, IMAGE, sketched

PROFILE = ContinualProfile(name="tuning", seeds=len(tuning.SEEDS), test_examples=2000, matrix_examples=50)
RATES = (0.1, 0.2, 0.4)
BATCHES = ((25, 3), (50, 5), (100, 5))  # and steps
PIXELS = ((10, 1), (14, 1), (18, 1), (10, 2))
SKETCHES = ((14, 0.25, 32), (14, 0.5, 0), (20, 0.5, 0), (14, 0.5, 32))
JPEG_BITS = (208, 416, 832)


def candidates(row: ContinualRow) -> list[ContinualRow]:
    """Every setting that is tried for a row."""
    tried = []
    if row.storage == 20 and row.codec in {rc.ResizedPixels, rc.Sketch}:
        for batch, steps in BATCHES:
            tried += tuning.grid(row, learning_rate=RATES, batch_size=[batch], steps=[steps])
    if row.storage not in {20, 100}:
        return tried
    if row.codec is rc.ResizedPixels:
        tried += [replace(row, code={"size": (size, size), "bits": bits}) for size, bits in PIXELS]
    if row.codec is rc.JPEG:
        fits = {bits: row.storage * IMAGE // bits for bits in JPEG_BITS}
        tried += [replace(row, code={"bits": bits}, items=items) for bits, items in fits.items()]
    if row.codec is rc.Sketch:
        tried += [replace(row, **sketched(row.storage, *sketch)) for sketch in SKETCHES]
    return tried


if __name__ == "__main__":
    tuning.tune(EXPERIMENT, PROFILE, candidates)
