"""What painters are worth to recollections of photographs and drawings: ``python -m recollect.lab.painter_tuning``.

A painter takes room that every memory of its kind pays once, and long to learn: what it is worth shows over the whole
stream, in all of the storage, and not on the first tasks on which all else is tried.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import recollect as rc
from recollect.lab import omniglot, table2, tuning

if TYPE_CHECKING:
    from recollect.lab.continual import ContinualProfile, ContinualRow

EXPERIMENTS = (table2.EXPERIMENT, omniglot.EXPERIMENT)
FILTERS = (0, 32)


def whole(profile: ContinualProfile) -> ContinualProfile:
    """The stream of a profile on held-out images: a tenth of those for training, as many as there are for testing."""
    held_out = profile.train_examples // 10
    return replace(
        profile,
        name="tuning",
        seeds=len(tuning.SEEDS),
        train_examples=profile.train_examples - held_out,
        test_examples=held_out,
    )


def candidates(row: ContinualRow) -> list[ContinualRow]:
    """A row with and without a painter. Rows of several steps take what is best with one."""
    if row.codec not in {rc.Cosines, rc.Sketch} or row.settings["steps"] > 1:
        return []
    return [replace(row, code=row.code | {"filters": filters}) for filters in FILTERS]


if __name__ == "__main__":
    for experiment in EXPERIMENTS:
        tuning.tune(experiment, whole(experiment.profiles["standard"]), candidates)
