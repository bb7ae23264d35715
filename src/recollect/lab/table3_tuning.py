"""The grids behind the settings of Table 3, as those of Table 2: ``python -m recollect.lab.table3_tuning``.

How a codec that knows CIFAR-10 learns on along the stream, and how long it learns before it. GEM takes the same.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import recollect as rc
from recollect.lab import tuning
from recollect.lab.table2_tuning import PROFILE, shared
from recollect.lab.table3 import EXPERIMENT

if TYPE_CHECKING:
    from recollect.lab.continual import ContinualRow

RATES = (1e-3, 3e-4, 1e-4, 1e-5)
PASSES = (20, 60)


def candidates(row: ContinualRow) -> list[ContinualRow]:
    """Every setting that is tried for a row, in its share of the items."""
    if row.learner is not rc.Replay or row.codec is not rc.DiscreteAutoencoder:
        return []
    tried = [replace(row, training=row.training | {"learning_rate": rate}) for rate in RATES]
    if row.pretraining:
        tried += [replace(row, pretraining=row.pretraining | {"passes": passes}) for passes in PASSES]
    return [shared(candidate) for candidate in tried]


if __name__ == "__main__":
    tuning.tune(EXPERIMENT, PROFILE, candidates)
