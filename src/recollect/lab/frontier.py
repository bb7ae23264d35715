"""How much is kept in how much storage: MNIST-Rotations with the same training for every kind of memory.

Learned memories are to be compared at equal bits with pictures that are merely made small: the controls have the same
steps, batches and augmentation, and are coded by their frequencies. Settings were chosen on held-out training images
(`lab/frontier_tuning.py`, ``results/frontier/tuning.jsonl``), but for the codes of the paper's codec.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import recollect as rc
from recollect.lab.against_storage import BILLS, AgainstStorage
from recollect.lab.continual import ContinualProfile, ContinualRow
from recollect.lab.course import MNIST_ROTATIONS
from recollect.lab.memories import coded, jpeg, real

if TYPE_CHECKING:
    from recollect.lab.experiment import Settings

IMAGE = 28 * 28 * 8  # bits
STORAGES: tuple[int, ...] = (10, 20, 50, 100, 200)
EVERY = 20_000  # images of the stream: what this training keeps with nothing left out
# No turning: the tasks of this stream are turns.
SAME: Settings = {"batch_size": 50, "steps": 5, "augment": {"shift": 1.5, "scale": 0.15}, "averaging": 0.998}
RATE = 0.1


PIXELS: dict[int, tuple[int, int]] = dict.fromkeys(STORAGES, (14, 1))  # height and width, and bits a pixel
# Height and width, what is white, and filters of the painter.
SKETCHES: dict[int, tuple[int, float, int]] = dict.fromkeys(STORAGES, (14, 0.5, 0))
PAINTING: Settings = {"steps": 1, "learning_rate": 2e-3, "rehearse": "none", "warm_up": (1000, 5)}
JPEG_BITS = 416
# The paper's codes, variables and categories, for about 1000 to 3000 items; it trains as in Table 1.
CODES = {10: (62, 2), 20: (84, 2), 50: (104, 2), 100: (104, 4), 200: (104, 4)}
LEARNING: Settings = {"steps": 3, "learning_rate": 1e-3, "most": 10, "warm_up": (1000, 20)}


def pixels(storage: int) -> Settings:
    """Resized pixels."""
    size, bits = PIXELS[storage]
    return coded(rc.ResizedPixels, storage * IMAGE, {"size": (size, size), "bits": bits})


def learned(storage: int) -> Settings:
    """The paper's codec."""
    variables, categories = CODES[storage]
    return coded(rc.DiscreteAutoencoder, storage * IMAGE, {"variables": variables, "categories": categories}, LEARNING)


def sketches(storage: int) -> Settings:
    """Codes of a fixed meaning, coded by what the memory learns of them; with filters a painter learns, too."""
    return sketched(storage, *SKETCHES[storage])


def sketched(storage: int, size: int, threshold: float, filters: int) -> Settings:
    """Sketches of that kind."""
    code = {"size": (size, size), "threshold": threshold, "filters": filters}
    return coded(rc.Sketch, storage * IMAGE, code, PAINTING if filters else {})


def replay(kind: str, storage: int, memory: Settings) -> ContinualRow:
    """Experience replay, with the steps, batch and augmentation that every memory has."""
    return ContinualRow(
        name=f"{kind} {storage}",
        storage=storage,
        learner=rc.Replay,
        settings=SAME | {"learning_rate": RATE},
        **memory,
    )


KINDS = {
    "Real Storage": real,
    "Resized Pixels": pixels,
    "JPEG": lambda storage: jpeg(storage * IMAGE, JPEG_BITS),
    "Recollections": learned,
    "Sketches": sketches,
}

EXPERIMENT = AgainstStorage(
    name="frontier",
    title="MNIST-Rotations: retention against storage, with the same training for every memory",
    answers="Which memory keeps most in so many bits?",
    course=MNIST_ROTATIONS,
    rows=(
        *(replay(kind, storage, memory(storage)) for kind, memory in KINDS.items() for storage in STORAGES),
        replay("Real Storage", EVERY, real(EVERY)),
    ),
    profiles={
        "quick": ContinualProfile(
            name="quick",
            seeds=1,
            train_examples=100,
            test_examples=2000,
            matrix_examples=100,
            rows=("Real Storage 20", "Resized Pixels 20", "Sketches 20"),
        ),
        "standard": ContinualProfile(name="standard", seeds=3),
        "paper": ContinualProfile(name="paper", seeds=5, stream_batch=1),
    },
    notes=(
        BILLS,
        "Recollections are those of the paper's codec. Sketches are this project's: pixels of one bit, coded by what "
        "the memory learns of a pixel from those around it, where resized pixels are coded by their frequencies.",
    ),
)
