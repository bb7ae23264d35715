"""What each part of a memory of sketches is worth: MNIST-Rotations in the storage of 20 images.

Beside the parts that pay stand those that were tried and do not.
"""

from __future__ import annotations

from dataclasses import replace

import recollect as rc
from recollect.lab.against_storage import BILLS, AgainstStorage
from recollect.lab.continual import ContinualProfile, ContinualRow
from recollect.lab.frontier import EXPERIMENT as FRONTIER
from recollect.lab.frontier import IMAGE, LEARNING, replay, sketched
from recollect.lab.memories import coded

STORAGE = 20
FULL = replay("Sketches, painted", STORAGE, sketched(STORAGE, 14, 0.25, 32))
SIZE = FULL.code["size"]
BY_STEPS = "From small pictures to painted sketches"
LESS, MORE, LEARNED = "Without a part", "With another part", "With an encoder that learns"


def changed(name: str, block: str, row: ContinualRow = FULL, **parts: object) -> ContinualRow:
    """The row with other parts, under a name that says which."""
    merged = {part: getattr(row, part) | value if isinstance(value, dict) else value for part, value in parts.items()}
    return replace(row, name=name, block=block, **merged)


def autoencoder(name: str, **code: object) -> ContinualRow:
    """The paper's codec, with the code that the frontier has in this storage."""
    shape = {"variables": 84, "categories": 2}
    return changed(
        name, LEARNED, replay("", STORAGE, coded(rc.DiscreteAutoencoder, STORAGE * IMAGE, shape, LEARNING)), code=code
    )


SKETCHES = replay("", STORAGE, sketched(STORAGE, 14, 0.5, 0))
PIXELS = replay("", STORAGE, coded(rc.ResizedPixels, STORAGE * IMAGE, {"size": SIZE, "bits": 1}))
ROWS = (
    changed("Resized pixels", BY_STEPS, PIXELS, scheme="radix"),
    changed("and coded by frequencies", BY_STEPS, PIXELS),
    changed("and by their neighbours", BY_STEPS, SKETCHES),
    changed("and cut at a quarter", BY_STEPS, SKETCHES, code={"threshold": 0.25}),
    changed("and painted", BY_STEPS),
    changed("Not coded", LESS, scheme="radix"),
    changed("Cut at a half", LESS, code={"threshold": 0.5}),
    replace(FULL, name="No augmentation", block=LESS, settings=FULL.settings | {"augment": None}),
    changed("No warm-up of the painter", LESS, training={"warm_up": (0, 1)}),
    changed("A painter of 64 filters", MORE, code={"filters": 64}),
    changed("Two steps of the painter", MORE, training={"steps": 2}),
    changed("A painter that rehearses", MORE, training={"rehearse": "recollections", "most": 10}),
    changed("Balanced admission", MORE, admission="balanced"),
    autoencoder("The paper's codec"),
    autoencoder("normalised, smooth activations", normalised=True),
    autoencoder("normalised, codes not drawn", normalised=True, stochastic=False),
    autoencoder("normalised, codes not drawn, averaged", normalised=True, stochastic=False, averaging=0.995),
)

EXPERIMENT = AgainstStorage(
    name="ablation",
    title="The parts of a memory of sketches: MNIST-Rotations in the storage of 20 images",
    answers="What is each part worth?",
    shares=FRONTIER,
    rows=ROWS,
    profiles={
        "quick": ContinualProfile(
            name="quick", seeds=1, train_examples=100, test_examples=2000, matrix_examples=100, rows=("and ",)
        ),
        "standard": ContinualProfile(name="standard", seeds=3),
    },
    notes=(
        BILLS,
        f"All in {STORAGE * IMAGE:,} bits, with the training of the frontier. A row of the first block has all parts "
        "of the rows above it; those of the others differ from the last of them, but for encoders that learn.",
    ),
)
