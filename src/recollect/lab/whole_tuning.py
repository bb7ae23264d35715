"""What shows only over a whole stream, in all of the storage: ``python -m recollect.lab.whole_tuning table2``.

All else is tried on the first tasks. But a painter, whose room every memory of its kind pays once, takes long to learn;
and a rate of JPEG's that was better on the first tasks may be too large for all of them.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import recollect as rc
from recollect.lab import frontier, omniglot, table2, tuning

if TYPE_CHECKING:
    from recollect.lab.continual import ContinualProfile, ContinualRow

EXPERIMENTS = {each.name: each for each in (table2.EXPERIMENT, omniglot.EXPERIMENT)}
FILTERS = (0, 32)
JPEG_RATE = 0.1


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
    """A row with and without a painter, and JPEG with the rate that all memories have and with its own."""
    if row.block:  # a row of above once more
        return []
    if row.learner is rc.Replay and row.codec is rc.JPEG and row.storage == 200:
        return tuning.grid(row, learning_rate=(table2.RATE, JPEG_RATE))
    if row.codec in {rc.Cosines, rc.Sketch} and row.settings["steps"] == 1:  # rows of more take what is best with one
        training = frontier.PAINTING if row.codec is rc.Sketch else table2.PAINTING
        return [replace(row, code=row.code | {"filters": filters}, training=training) for filters in FILTERS]
    return []


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in EXPERIMENTS:
        sys.exit(f"usage: python -m recollect.lab.whole_tuning {{{','.join(EXPERIMENTS)}}} [--help]")
    chosen = EXPERIMENTS[sys.argv.pop(1)]
    tuning.tune(chosen, whole(chosen.profiles["standard"]), candidates, about=__doc__)
