"""Incremental Omniglot, of which the paper tells in the text behind Table 2: 50 alphabets, few images of each class."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import recollect as rc
from recollect.lab.continual import Continual, ContinualProfile, ContinualRow
from recollect.lab.course import OMNIGLOT
from recollect.lab.frontier import IMAGE, sketched
from recollect.lab.memories import coded, jpeg, real

if TYPE_CHECKING:
    from recollect.lab.experiment import Settings

CODES = {10: 62, 50: 312}  # the paper's variables, of 2 categories
PIXELS = (10, 2)  # height and width of pixels averaged down, and their bits
JPEG_BITS = 416
AVERAGING = 0.99  # of the model, over about as many steps as two alphabets have


def pixels(storage: int) -> Settings:
    """Resized pixels, coded by their frequencies; as many images as fit."""
    size, bits = PIXELS
    return coded(rc.ResizedPixels, storage * IMAGE, {"size": (size, size), "bits": bits})


def learned(storage: int) -> Settings:
    """Recollections of the paper's codec; it does not say how many, so as many as fit."""
    return {
        "codec": rc.DiscreteAutoencoder,
        "code": {"variables": CODES[storage], "categories": 2},
        "items": storage * IMAGE // CODES[storage],
        "training": {"steps": 3, "learning_rate": 1e-3, "most": 10, "warm_up": (600, 10)},
        "paper_training": {"steps": 1, "learning_rate": 1e-3},
    }


# Height and width, and what is white. No painter: over the whole stream it was worth little (`lab/whole_tuning.py`).
SKETCHES = (18, 0.25)
PAINTER = 32  # its filters, in the rows that show that


def sketches(storage: int, filters: int = 0) -> Settings:
    """Codes of a fixed meaning, in as few bits as their neighbours allow; as many as fit."""
    return sketched(storage, *SKETCHES, filters)


def replay(kind: str, storage: int, paper: float | None, memory: Settings, steps: int = 1) -> ContinualRow:
    """Experience replay from a reservoir, with one or three steps for each batch of the stream."""
    return ContinualRow(
        name=f"Replay {kind} {storage}" + (f", {steps} steps" if steps > 1 else ""),
        storage=storage,
        paper=paper,
        learner=rc.Replay,
        settings={"learning_rate": 0.1, "batch_size": 10, "steps": steps, "averaging": AVERAGING},
        paper_settings={"learning_rate": 1e-3, "averaging": 0.0},
        **memory,
    )


PAINTED = "Sketches with a painter"


def painted(storage: int, steps: int = 1) -> ContinualRow:
    """What a painter is worth: the row of sketches with one."""
    row = replay("Sketches", storage, None, sketches(storage, PAINTER), steps)
    return replace(row, name=row.name.replace("Replay", "Painted:"), block=PAINTED, seeds=1)


EXPERIMENT = Continual(
    name="omniglot",
    title="Incremental Omniglot, accuracy on all 50 alphabets after the last",
    answers="Do recollections help with many tasks and few examples of each class?",
    course=OMNIGLOT,
    rows=(
        ContinualRow(
            name="Online",
            paper=3.5,
            learner=rc.Online,
            settings={"learning_rate": 0.1, "averaging": AVERAGING},
            paper_settings={"averaging": 0.0},
        ),
        replay("Real Storage", 10, 3.6, real(10)),
        replay("Real Storage", 50, 4.3, real(50)),
        replay("Real Storage", 50, 4.8, real(50), steps=3),
        replay("Recollections", 10, 5.0, learned(10)),
        replay("Recollections", 50, 9.3, learned(50)),
        replay("Recollections", 50, 13.0, learned(50), steps=3),
        replay("Resized Pixels", 10, None, pixels(10)),
        replay("Resized Pixels", 50, None, pixels(50)),
        replay("Resized Pixels", 50, None, pixels(50), steps=3),
        replay("JPEG", 10, None, jpeg(10 * IMAGE, JPEG_BITS)),
        replay("JPEG", 50, None, jpeg(50 * IMAGE, JPEG_BITS)),
        replay("Sketches", 10, None, sketches(10)),
        replay("Sketches", 50, None, sketches(50)),
        replay("Sketches", 50, None, sketches(50), steps=3),
        painted(10),
        painted(50),
        painted(50, steps=3),
    ),
    profiles={
        "quick": ContinualProfile(
            name="quick",
            seeds=1,
            tasks=5,
            train_examples=200,
            test_examples=50,
            matrix_examples=20,
            rows=("Online", "Replay Real Storage 10", "Replay Resized Pixels 10", "Replay Recollections 10"),
        ),
        "standard": ContinualProfile(
            name="standard", seeds=3, tasks=50, train_examples=990, test_examples=110, matrix_examples=20
        ),
        "paper": ContinualProfile(
            name="paper", seeds=5, tasks=50, stream_batch=1, train_examples=990, test_examples=110, matrix_examples=110
        ),
    },
    notes=(
        "Storage, in images, is that of codes, as in the paper. Bits are those of an item.",
        "Resized pixels and JPEG are controls at equal bits, without learning. Sketches are "
        "this project's own; an item is of so many bits on average.",
    ),
)
