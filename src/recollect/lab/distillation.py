"""Question 9 of the paper: from a CNN to a student of the same kind, by what is kept of MNIST in a tenth of the bits.

Each row is a column of the paper's table. Controls keep all 50,000 images as small pictures, in no more bits than the
codes and the codec together: of the nearly square ones that fit, of 1 to 4 bits a pixel, those of the least distortion
on training images. So are those that are coded: by how often each value comes, or by what stands around a pixel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import recollect as rc
from recollect.lab.distilling import Distillation, DistillationProfile, DistillationRow

if TYPE_CHECKING:
    from torch import nn

    from recollect.lab.experiment import Settings

EPISODES = (10, 100, 1000, 10_000, 100_000)

# What takes a tenth, a fiftieth and a hundredth of the bits of all images, the codec counted.
CODES: dict[str, Settings] = {
    "10x": {"codec": rc.DiscreteAutoencoder, "code": {"variables": 168, "categories": 2}},
    "50x": {"codec": rc.DiscreteAutoencoder, "code": {"variables": 62, "categories": 2}},
    "100x": {"codec": rc.DiscreteAutoencoder, "code": {"variables": 38, "categories": 2}},
}
PIXELS: dict[str, Settings] = {
    "10x": {"codec": rc.ResizedPixels, "code": {"size": (25, 24), "bits": 1}},
    "50x": {"codec": rc.ResizedPixels, "code": {"size": (11, 11), "bits": 1}},
    "100x": {"codec": rc.ResizedPixels, "code": {"size": (8, 7), "bits": 1}},
    "50x, coded": {"codec": rc.ResizedPixels, "code": {"size": (18, 18), "bits": 1}, "scheme": "entropy"},
    "100x, coded": {"codec": rc.ResizedPixels, "code": {"size": (13, 13), "bits": 1}, "scheme": "entropy"},
}
SKETCHES: dict[str, Settings] = {
    total: {
        "codec": rc.Sketch,
        "code": {"size": (side, side), "threshold": 0.5},
        "codec_rates": (),
        "scheme": "entropy",
    }
    for total, side in {"50x": 28, "100x": 17}.items()
}
LABELS: Settings = {"teacher": False}


def table(student: type[nn.Module], paper: dict[str, tuple[float, ...]]) -> tuple[DistillationRow, ...]:
    """The paper's columns as rows, with its numbers, and the controls."""
    memories: dict[str, Settings] = {
        "Real data": LABELS,
        "10 % sample": LABELS | {"share": 0.1},
        "2 % sample": LABELS | {"share": 0.02},
        "1 % sample": LABELS | {"share": 0.01},
        "Real x, teacher y": {},
        **{f"{total} compress": code for total, code in CODES.items()},
        **{f"Pixels {total}": code for total, code in PIXELS.items()},
        **{f"Sketches {total}": code for total, code in SKETCHES.items()},
    }
    return tuple(
        DistillationRow(
            name=name, student=student, paper=dict(zip(EPISODES, paper.get(name, ()), strict=False)), **memory
        )
        for name, memory in memories.items()
    )


PAPER = {
    "Real data": (10.43, 19.63, 90.45, 97.11, 98.51),
    "10 % sample": (9.94, 18.16, 88.88, 96.83, 97.99),
    "2 % sample": (11.07, 22.82, 90.71, 95.98, 96.14),
    "1 % sample": (10.70, 22.35, 89.93, 94.97, 94.92),
    "Real x, teacher y": (10.07, 25.32, 91.01, 97.42, 98.63),
    "10x compress": (10.65, 19.34, 90.66, 96.77, 98.59),
    "50x compress": (10.99, 16.20, 90.52, 96.37, 98.17),
    "100x compress": (13.89, 21.06, 90.03, 95.65, 97.75),
}
ROWS = table(rc.models.LeNet, PAPER)

QUICK = DistillationProfile(
    name="quick",
    seeds=1,
    test_examples=2000,
    teacher_epochs=1,
    codec_epochs=2,
    episodes=10_000,
    batch_size=10,
    rows=("1 % sample", "Real x", "100x compress", "Pixels 100x", "Sketches 100x"),
)
# Ten recollections a step, where the paper takes one; teacher and codec end their training in few epochs, where the
# paper takes 500. With ten a step 3e-3 is best for few episodes and for a sample, 1e-3 for codes and small pictures in
# the end, and the paper's 1e-4 far behind (`lab/distillation_tuning.py`). All four experiments on MNIST share the
# teacher, codecs and the students that they have in common.
STANDARD = DistillationProfile(
    name="standard",
    seeds=5,
    teacher_epochs=20,
    codec_epochs=10,
    episodes=100_000,
    batch_size=10,
    learning_rates=(3e-3, 1e-3),
)
PROTOCOL = DistillationProfile(
    name="paper",
    seeds=5,
    teacher_epochs=500,
    codec_epochs=500,
    paper_codec=True,
    episodes=100_000,
    batch_size=1,
)
EPISODE = "Test accuracy in percent after so many episodes, one recollection each."
NOTE = f"{EPISODE} Of several learning rates the one that is best on held-out training images counts."
STORAGE = (
    "Compression is that of all 50,000 training images, the codec counted. Pixels are controls without learning; "
    "sketches are pixels, too, coded by what the memory learns of a pixel from those around it."
)

EXPERIMENT = Distillation(
    name="distillation",
    title="Distillation: a CNN teaches a CNN by recollections of MNIST",
    answers="Can what a network knows be handed on by a memory of a hundredth of the bits?",
    rows=ROWS,
    profiles={"quick": QUICK, "standard": STANDARD, "paper": PROTOCOL},
    notes=(NOTE, STORAGE),
)
