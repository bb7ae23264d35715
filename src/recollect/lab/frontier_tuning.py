"""The grids behind the settings of the frontier: ``python -m recollect.lab.frontier_tuning`` goes on where it stopped.

How large a picture each memory keeps is tried in every storage; learning rates in the storage of 20 images alone.
"""

from __future__ import annotations

from dataclasses import replace

import recollect as rc
from recollect.lab import tuning
from recollect.lab.continual import ContinualProfile, ContinualRow
from recollect.lab.frontier import EXPERIMENT, IMAGE, PAINTING

PROFILE = ContinualProfile(name="tuning", seeds=len(tuning.SEEDS), test_examples=2000, matrix_examples=50)
RATES = (0.1, 0.2, 0.4)
PIXELS = ((10, 1), (12, 1), (14, 1), (18, 1), (10, 2))
SKETCHES = ((12, 0.25), (14, 0.25), (14, 0.5), (18, 0.25), (20, 0.5))
JPEG_BITS = (208, 416, 832)
# Others for the painter, in the storage of 20 images.
PAINTINGS = ({"steps": 2}, {"learning_rate": 4e-3}, {"warm_up": (0, 1)}, {"warm_up": (1000, 20)})


def candidates(row: ContinualRow) -> list[ContinualRow]:
    """Every setting that is tried for a row."""
    tried = tuning.grid(row, learning_rate=RATES) if row.storage == 20 else []
    if row.codec is rc.ResizedPixels:
        tried += [replace(row, code={"size": (size, size), "bits": bits}) for size, bits in PIXELS]
    if row.codec is rc.JPEG:
        fits = {bits: (row.storage or 0) * IMAGE // bits for bits in JPEG_BITS}
        tried += [replace(row, code={"bits": bits}, items=items) for bits, items in fits.items()]
    if row.codec is rc.Sketch:
        tried += [replace(row, code={"size": (size, size), "threshold": cut}) for size, cut in SKETCHES]
        if row.storage == 20:
            tried += [replace(row, training=PAINTING | change) for change in PAINTINGS]
    return tried


if __name__ == "__main__":
    tuning.tune(EXPERIMENT, PROFILE, candidates)
