"""Table 1 of the paper: MNIST-Rotations in the storage of 100 and 200 images.

Each row can be read beside the paper's. Learning rates, batch sizes and steps were chosen on held-out training images
(`lab/table1_tuning.py`, ``results/table1/tuning.jsonl``); ``paper_settings`` are those of the paper's appendix.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import recollect as rc
from recollect.lab.continual import Continual, ContinualProfile, ContinualRow
from recollect.lab.course import MNIST_ROTATIONS

if TYPE_CHECKING:
    from recollect.lab.experiment import Settings

# What a memory keeps. Recollections are the paper's, 3000 items; the controls keep as many items as fit.
REAL_100: Settings = {"codec": rc.RawPixels, "items": 100}
REAL_200: Settings = {"codec": rc.RawPixels, "items": 200}
PIXELS_100: Settings = {"codec": rc.ResizedPixels, "code": {"size": (14, 14), "bits": 1}, "items": 3200}
PIXELS_200: Settings = {"codec": rc.ResizedPixels, "code": {"size": (14, 14), "bits": 1}, "items": 6400}
JPEG_100: Settings = {"codec": rc.JPEG, "code": {"bits": 416}, "items": 1507}
JPEG_200: Settings = {"codec": rc.JPEG, "code": {"bits": 416}, "items": 3015}
WHOLE_STREAM: Settings = {"codec": rc.RawPixels, "items": MNIST_ROTATIONS.tasks * 1000}
# The codec trains as in Algorithm 1, on the new examples and on recollections; the paper found that on this stream it
# may do without them. In the first task it takes more steps: codes that it writes before it has learned stay poor.
LEARNED_100: Settings = {
    "codec": rc.DiscreteAutoencoder,
    "code": {"variables": 104, "categories": 4},
    "items": 3000,
    "training": {"steps": 3, "learning_rate": 1e-3, "most": 10, "warm_up": (1000, 20)},
    "quick_training": {"steps": 3, "learning_rate": 1e-3, "most": 10},  # the first task alone would take a minute
    "paper_training": {"steps": 1, "learning_rate": 1e-3, "rehearse": "none"},
}
LEARNED_200: Settings = {
    "codec": rc.DiscreteAutoencoder,
    "code": {"variables": 139, "categories": 8},
    "items": 3000,
    "training": {"steps": 2, "learning_rate": 7e-4, "most": 10, "warm_up": (1000, 20)},
    "paper_training": {"steps": 1, "learning_rate": 1e-3, "rehearse": "none"},
}


def replay(kind: str, storage: int, paper: float | None, memory: Settings, settings: Settings) -> ContinualRow:
    """Experience replay from a reservoir."""
    return ContinualRow(
        name=f"Replay {kind} {storage}",
        storage=storage,
        paper=paper,
        learner=rc.Replay,
        settings=settings,
        paper_settings={"learning_rate": 0.01, "batch_size": 5 if storage == 100 else 25, "steps": 1},
        **memory,
    )


def gem(kind: str, storage: int, paper: float | None, memory: Settings, settings: Settings) -> ContinualRow:
    """GEM with the most recent items of each task."""
    return ContinualRow(
        name=f"GEM {kind} {storage}",
        storage=storage,
        paper=paper,
        learner=rc.GEM,
        settings=settings,
        paper_settings={"learning_rate": 0.1, "memory_strength": 0.5, "memory_batch": None},
        admission="ring",
        **memory,
    )


def tuned(learning_rate: float, batch_size: int, steps: int) -> Settings:
    """Settings of replay: `steps` steps for each batch of the stream."""
    return {"learning_rate": learning_rate, "batch_size": batch_size, "steps": steps}


def projected(learning_rate: float, memory_strength: float) -> Settings:
    """Settings of GEM: gradients of at most 10 memories of each task."""
    return {"learning_rate": learning_rate, "memory_strength": memory_strength, "memory_batch": 10}


def offline(epochs: int) -> ContinualRow:
    """All examples at hand in any order: what forgetting costs is the distance to this."""
    return ContinualRow(
        name=f"Offline, {epochs} epoch{'s' * (epochs > 1)}",
        learner=rc.Offline,
        settings={"learning_rate": 0.1, "epochs": epochs},
        **WHOLE_STREAM,
    )


SAME = "The same training for all"
SAME_BATCH, SAME_STEPS = 25, 3


def same(kind: str, storage: int, memory: Settings, learning_rate: float) -> ContinualRow:
    """Replay with the steps and batch that every memory of the block has, and a learning rate of its own."""
    row = replay(kind, storage, None, memory, tuned(learning_rate, SAME_BATCH, SAME_STEPS))
    return replace(row, name=f"Same: {kind} {storage}", block=SAME)


ROWS = (
    gem("Real Storage", 100, 62.5, REAL_100, projected(0.1, 0.5)),
    gem("Real Storage", 200, 67.4, REAL_200, projected(0.1, 0.5)),
    gem("Recollections", 100, 79.0, LEARNED_100, projected(0.1, 0.5)),
    gem("Recollections", 200, 81.5, LEARNED_200, projected(0.1, 0.5)),
    gem("Resized Pixels", 100, None, PIXELS_100, projected(0.1, 0.5)),
    gem("Resized Pixels", 200, None, PIXELS_200, projected(0.1, 0.5)),
    gem("JPEG", 100, None, JPEG_100, projected(0.1, 0.5)),
    gem("JPEG", 200, None, JPEG_200, projected(0.1, 0.5)),
    replay("Real Storage", 100, 63.4, REAL_100, tuned(0.4, 50, 1)),
    replay("Real Storage", 200, 71.3, REAL_200, tuned(0.4, 50, 1)),
    replay("Recollections", 100, 75.6, LEARNED_100, tuned(0.2, 25, 3)),
    replay("Recollections", 200, 81.1, LEARNED_200, tuned(0.2, 25, 3)),
    replay("Resized Pixels", 100, None, PIXELS_100, tuned(0.2, 25, 3)),
    replay("Resized Pixels", 200, None, PIXELS_200, tuned(0.4, 50, 3)),
    replay("JPEG", 100, None, JPEG_100, tuned(0.2, 25, 3)),
    replay("JPEG", 200, None, JPEG_200, tuned(0.4, 25, 3)),
    ContinualRow(
        name="EwC", paper=54.6, learner=rc.EWC, settings={"learning_rate": 0.01, "strength": 30.0}, items=1000
    ),
    ContinualRow(name="Online", paper=51.9, learner=rc.Online, settings={"learning_rate": 0.005}),
    offline(epochs=1),
    offline(epochs=5),
    same("Real Storage", 100, REAL_100, 0.2),
    same("Resized Pixels", 100, PIXELS_100, 0.2),
    same("JPEG", 100, JPEG_100, 0.2),
    same("Recollections", 100, LEARNED_100, 0.2),
    same("Real Storage", 200, REAL_200, 0.2),
    same("Resized Pixels", 200, PIXELS_200, 0.2),
    same("JPEG", 200, JPEG_200, 0.4),
    same("Recollections", 200, LEARNED_200, 0.2),
)

EXPERIMENT = Continual(
    name="table1",
    title="Table 1: MNIST-Rotations, accuracy on all 20 tasks after the last",
    answers="Do many approximate memories beat a few exact ones in the same storage?",
    rows=ROWS,
    profiles={
        "quick": ContinualProfile(
            name="quick",
            seeds=1,
            train_examples=400,
            test_examples=2000,
            matrix_examples=100,
            rows=("Online", "Replay Real Storage 100", "Replay Resized Pixels 100", "Replay Recollections 100"),
        ),
        "standard": ContinualProfile(name="standard", seeds=3),
        "paper": ContinualProfile(
            name="paper", seeds=5, stream_batch=1, rows=("GEM", "Replay", "EwC", "Online", "Offline")
        ),
    },
    notes=(
        "Storage, in images, is that of codes or of parameters kept, as in the paper; the learned codecs take as much "
        "as 5,548 and 39,509 images more. Bits are those of an item.",
        "Resized pixels and JPEG are controls at equal bits, without learning.",
    ),
)
