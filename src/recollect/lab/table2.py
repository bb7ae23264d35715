"""Table 2 of the paper: Incremental CIFAR-100 in the storage of 10 to 200 images.

Each row can be read beside the paper's. Settings were chosen on held-out training images of the first three tasks
(`lab/table2_tuning.py`, ``results/table2/tuning.jsonl``). ``paper_settings`` are those of the paper's appendix.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import recollect as rc
from recollect.lab.continual import Continual, ContinualProfile, ContinualRow
from recollect.lab.course import CIFAR100
from recollect.lab.memories import coded, jpeg, real

if TYPE_CHECKING:
    from recollect.lab.experiment import Settings

IMAGE = 32 * 32 * 3 * 8  # bits
ITEMS = 5000  # recollections that the paper keeps in any storage
# Its codes, variables and categories, in the storage of so many images. 620x3 fits as one number in base 3.
CODES = {10: (48, 2), 20: (98, 2), 50: (244, 2), 60: (294, 2), 200: (620, 3)}
# Pixels that are averaged down, height and width, and the bits of each value: about as many items as recollections.
PIXELS = {10: (3, 3), 20: (4, 2), 50: (6, 2), 60: (7, 2), 200: (10, 3)}
WARM_UP = (2500, 10)  # the paper's codec takes 10 steps a batch for so many images, then one
JPEG_BITS = 983  # as many as a code of 620x3; fewer do not hold an image of this size


def pixels(storage: int) -> Settings:
    """Resized pixels, as many images as fit in as few bits as their frequencies allow."""
    return pixelated(storage, *PIXELS[storage])


def pixelated(storage: int, size: int, bits: int) -> Settings:
    """Resized pixels of that kind."""
    return coded(rc.ResizedPixels, storage * IMAGE, {"size": (size, size), "bits": bits})


def ringed(storage: int) -> Settings:
    """Resized pixels for GEM, whose ring of each task has items of one size."""
    size, bits = PIXELS[storage]
    code = {"size": (size, size), "bits": bits}
    return {"codec": rc.ResizedPixels, "code": code, "items": storage * IMAGE // (3 * size**2 * bits)}


def learned(storage: int, learning_rate: float, paper_rate: float) -> Settings:
    """Recollections of the paper's codec, which rehearses as in Algorithm 1."""
    variables, categories = CODES[storage]
    return {
        "codec": rc.DiscreteAutoencoder,
        "code": {"variables": variables, "categories": categories},
        "items": ITEMS,
        "training": {"steps": 1, "learning_rate": learning_rate, "most": 10, "warm_up": WARM_UP},
        "paper_training": {"steps": 1, "learning_rate": paper_rate},
    }


# The lowest frequencies, down and across, the step that they are rounded to, and the values that one can have.
COSINES = {10: (6, 1.0, 31), 50: (12, 0.8, 31), 200: (20, 0.3, 31)}


def cosines(storage: int) -> Settings:
    """Codes of a fixed meaning, in as few bits as the frequencies of their values allow; as many as fit."""
    return waved(storage, *COSINES[storage])


def waved(storage: int, size: int, step: float, levels: int) -> Settings:
    """Cosines of that kind. No painter: over the whole stream it was worth little (`lab/whole_tuning.py`)."""
    code = {"size": (size, size), "step": step, "levels": levels, "filters": 0}
    return coded(rc.Cosines, storage * IMAGE, code)


BATCH = 10  # images that are replayed beside 10 new ones, with any memory
RATE = 0.03  # the learning rate of replay, the best with real images, small pictures and cosines
AVERAGING = 0.998  # of the model, over about as many steps as two tasks have


def replay(kind: str, storage: int, paper: float | None, memory: Settings) -> ContinualRow:
    """Experience replay from a reservoir; all memories train in the same way."""
    return ContinualRow(
        name=f"Replay {kind} {storage}",
        storage=storage,
        paper=paper,
        learner=rc.Replay,
        settings={"learning_rate": RATE, "batch_size": BATCH, "steps": 1, "averaging": AVERAGING},
        paper_settings={"learning_rate": 1e-3, "averaging": 0.0},
        **memory,
    )


def gem(kind: str, storage: int, paper: float | None, memory: Settings) -> ContinualRow:
    """GEM with the most recent items of each task, gradients of at most 5 memories of each; runs are long.

    Groups of so few memories are normalised together, with the new examples.
    """
    return ContinualRow(
        name=f"GEM {kind} {storage}",
        storage=storage,
        paper=paper,
        learner=rc.GEM,
        settings={
            "learning_rate": 0.03,
            "memory_strength": 0.1,
            "memory_batch": 5,
            "batch_size": BATCH,
            "together": True,
            "averaging": AVERAGING,
        },
        paper_settings={
            "learning_rate": 0.1,
            "memory_strength": 0.01 if kind == "Recollections" else 0.1,
            "memory_batch": None,
            "together": False,
            "averaging": 0.0,
        },
        admission="ring",
        seeds=1,
        **memory,
    )


REPLAY = (
    replay("Real Storage", 10, 29.4, real(10)),
    replay("Real Storage", 50, 33.4, real(50)),
    replay("Real Storage", 200, 43.0, real(200)),
    replay("Recollections", 10, 39.7, learned(10, 1e-3, 1e-3)),
    replay("Recollections", 50, 47.9, learned(50, 1e-3, 1e-3)),
    replay("Recollections", 200, 51.6, learned(200, 3e-4, 1e-4)),
    replay("Resized Pixels", 10, None, pixels(10)),
    replay("Resized Pixels", 50, None, pixels(50)),
    replay("Resized Pixels", 200, None, pixels(200)),
    replay("JPEG", 10, None, jpeg(10 * IMAGE, JPEG_BITS)),
    replay("JPEG", 50, None, jpeg(50 * IMAGE, JPEG_BITS)),
    replay("JPEG", 200, None, jpeg(200 * IMAGE, JPEG_BITS)),
    replay("Cosines", 10, None, cosines(10)),
    replay("Cosines", 50, None, cosines(50)),
    replay("Cosines", 200, None, cosines(200)),
)
SAME = "The same training for all"
AS_IT_IS = "Without the average"
PAINTED = "Cosines with a painter"
BY_ITSELF = "Each group of GEM normalised by itself"
PAINTER = 32  # its filters
PAINTING: Settings = {"steps": 1, "learning_rate": 2e-3, "rehearse": "none"}


def unaveraged(row: ContinualRow) -> ContinualRow:
    """What the average is worth: the same row without it."""
    settings = {name: value for name, value in row.settings.items() if name != "averaging"}
    name = row.name.replace("Replay", "As is:")
    return replace(row, name=name, block=AS_IT_IS, settings=settings, paper=None, seeds=1)


def painted(row: ContinualRow) -> ContinualRow:
    """What a painter is worth: the same row with one."""
    name, code = row.name.replace("Replay", "Painted:"), row.code | {"filters": PAINTER}
    return replace(row, name=name, block=PAINTED, code=code, training=PAINTING, paper=None, seeds=1)


def by_itself(row: ContinualRow) -> ContinualRow:
    """What it costs to normalise groups as GEM's code does: the same row with that."""
    settings = {name: value for name, value in row.settings.items() if name != "together"}
    settings |= {"learning_rate": 0.01, "memory_strength": 0.5}
    return replace(row, name=row.name.replace("GEM", "By itself: GEM"), block=BY_ITSELF, settings=settings, paper=None)


GEM = (
    gem("Real Storage", 20, 23.4, real(20)),
    gem("Real Storage", 60, 40.6, real(60)),
    gem("Real Storage", 200, 48.7, real(200)),
    gem("Recollections", 20, 52.4, learned(20, 1e-3, 1e-4)),
    gem("Recollections", 60, 56.0, learned(60, 1e-3, 1e-3)),
    gem("Recollections", 200, 59.0, learned(200, 3e-4, 1e-4)),
    gem("Resized Pixels", 20, None, ringed(20)),
    gem("Resized Pixels", 60, None, ringed(60)),
    gem("Resized Pixels", 200, None, ringed(200)),
    gem("JPEG", 60, None, jpeg(60 * IMAGE, JPEG_BITS)),
    gem("JPEG", 200, None, jpeg(200 * IMAGE, JPEG_BITS)),
)
ROWS = (
    ContinualRow(
        name="Online",
        paper=33.3,
        learner=rc.Online,
        settings={"learning_rate": 0.01, "averaging": AVERAGING},
        paper_settings={"averaging": 0.0},
    ),
    ContinualRow(
        name="LwF",
        paper=34.5,
        learner=rc.LwF,
        settings={"learning_rate": 0.01, "strength": 1.0, "averaging": AVERAGING},
        paper_settings={"averaging": 0.0},
    ),
    *REPLAY,
    *GEM,
    # Replay trains in the same way with every memory anyway: the runs above once more, by storage.
    *(
        replace(row, name=row.name.replace("Replay", "Same:"), block=SAME, paper=None)
        for row in sorted(REPLAY, key=lambda row: row.storage or 0)
    ),
    *(unaveraged(row) for row in REPLAY if row.name in {"Replay Real Storage 200", "Replay Recollections 50"}),
    *(painted(row) for row in REPLAY if row.codec is rc.Cosines),
    *(by_itself(row) for row in GEM if row.name == "GEM Recollections 20"),
)

EXPERIMENT = Continual(
    name="table2",
    title="Table 2: Incremental CIFAR-100, accuracy on all 20 tasks after the last",
    answers="Do recollections help where images are hard to compress?",
    course=CIFAR100,
    rows=ROWS,
    profiles={
        "quick": ContinualProfile(
            name="quick",
            seeds=1,
            tasks=5,
            train_examples=200,
            test_examples=200,
            matrix_examples=50,
            rows=("Online", "Replay Real Storage 50", "Replay Resized Pixels 50", "Replay Recollections 50"),
        ),
        "standard": ContinualProfile(
            name="standard", seeds=3, train_examples=2500, test_examples=500, matrix_examples=100
        ),
        "paper": ContinualProfile(
            name="paper", seeds=5, stream_batch=1, train_examples=2500, test_examples=500, matrix_examples=500
        ),
    },
    notes=(
        "Storage, in images, is that of codes or of parameters kept, as in the paper. Bits are those of an item.",
        "Resized pixels and JPEG are controls at equal bits, without learning. "
        "Cosines are this project's own; an item is of so many bits on average.",
    ),
)
