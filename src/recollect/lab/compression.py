"""Questions 4 and 5 of the paper: distortion as a function of compression, on the training images of MNIST.

Categorical and continuous codes with the shapes and the learning rates of the paper's appendix, JPEG with its header
taken off, and resized pixels as a control without learning: packed, coded by how often each value comes, and as
sketches, which are the same pixels coded by what stands around each.
"""

from __future__ import annotations

from dataclasses import replace

import recollect as rc
from recollect.lab.compressing import Compression, CompressionProfile, CompressionRow

RATES = (1e-2, 3e-3, 1e-3, 1e-4, 1e-5)  # the paper's, and the second

# The tables of the appendix: c, l, compression and distortion; h, compression and distortion.
CATEGORICAL = (
    (6, 20, 209.067, 0.06609),
    (10, 20, 125.440, 0.04965),
    (6, 16, 261.333, 0.07546),
    (12, 10, 130.667, 0.05497),
    (10, 14, 156.800, 0.05410),
    (24, 3, 130.667, 0.05988),
    (38, 2, 165.053, 0.05785),
    (6, 2, 1045.333, 0.13831),
    (40, 3, 78.400, 0.04158),
    (20, 2, 313.600, 0.08446),
    (8, 6, 261.333, 0.08423),
    (12, 6, 174.222, 0.06756),
    (30, 2, 209.067, 0.06958),
    (24, 6, 87.111, 0.04065),
    (4, 37, 261.333, 0.07795),
    (8, 15, 196.000, 0.06812),
    (48, 10, 32.667, 0.01649),
    (209, 8, 10.003, 0.01455),
    (12, 37, 87.111, 0.03996),
    (313, 4, 10.019, 0.01420),
    (392, 3, 8.000, 0.01348),
    (50, 18, 25.088, 0.01859),
    (168, 2, 37.333, 0.01955),
    (108, 3, 29.037, 0.01894),
    (62, 2, 101.161, 0.04073),
    (208, 2, 30.154, 0.01832),
    (68, 5, 30.745, 0.01849),
)
CONTINUOUS = (
    (1, 49.0, 0.135196),
    (2, 24.5, 0.124725),
    (3, 16.33333333, 0.0947032),
    (5, 9.8, 0.0354035),
    (7, 7.0, 0.031808),
    (20, 2.45, 0.0149272),
)
QUALITIES = (1, 25, 50, 75, 100)
PIXELS = ((4, 1), (5, 1), (6, 1), (7, 1), (8, 1), (10, 1), (14, 1), (14, 2), (20, 1), (14, 4), (20, 3), (28, 2))
CODED = (6, 8, 10, 14, 20, 28)  # height and width of those of one bit that are coded


def categorical(variables: int, categories: int, compression: float, distortion: float) -> CompressionRow:
    """The paper's c and l."""
    return CompressionRow(
        name=f"Categorical {variables}x{categories}",
        block="Categorical",
        codec=rc.DiscreteAutoencoder,
        code={"variables": variables, "categories": categories},
        learning_rates=RATES,
        paper=distortion,
        paper_compression=compression,
    )


def continuous(h: int, compression: float, distortion: float) -> CompressionRow:
    """The paper's h counts filters: 4 h numbers, as its compression says."""
    return CompressionRow(
        name=f"Continuous {h}",
        block="Continuous",
        codec=rc.ContinuousAutoencoder,
        code={"latents": 4 * h},
        learning_rates=RATES,
        paper=distortion,
        paper_compression=compression,
    )


def jpeg(quality: int) -> CompressionRow:
    """The paper's points are in its figure only."""
    return CompressionRow(name=f"JPEG {quality}", block="JPEG", codec=rc.JPEG, code={"quality": quality})


def pixels(side: int, bits: int) -> CompressionRow:
    """Averaged down to side x side pixels of so many bits."""
    name = f"Pixels {side}x{side}, {bits} bit{'s' * (bits > 1)}"
    return CompressionRow(
        name=name, block="Resized pixels", codec=rc.ResizedPixels, code={"size": (side, side), "bits": bits}
    )


def coded(side: int) -> CompressionRow:
    """The same of one bit, coded by how often it is set, for each pixel."""
    return replace(
        pixels(side, 1), name=f"Pixels {side}x{side}, coded", block="Resized pixels, coded", scheme="entropy"
    )


def sketch(side: int) -> CompressionRow:
    """The same of one bit, coded by what the memory learns of a pixel from those around it."""
    code = {"size": (side, side), "threshold": 0.5, "filters": 0}
    return CompressionRow(name=f"Sketch {side}x{side}", block="Sketches", codec=rc.Sketch, code=code, scheme="entropy")


ROWS = (
    *sorted((categorical(*line) for line in CATEGORICAL), key=lambda row: -(row.paper_compression or 0)),
    *(continuous(*line) for line in CONTINUOUS),
    *(jpeg(quality) for quality in QUALITIES),
    *(pixels(*size) for size in PIXELS),
    *(coded(side) for side in CODED),
    *(sketch(side) for side in CODED),
)
# Thirteen of the categorical shapes, from the smallest code to the larger ones.
SPREAD = ["6x2", "20x2", "30x2", "38x2", "62x2", "168x2", "208x2", "6x20", "10x20", "12x10", "24x6", "40x3", "48x10"]
STATIC = ("JPEG", "Pixels", "Sketch")

EXPERIMENT = Compression(
    name="compression",
    title="Compression: what codes of so many bits lose of MNIST",
    answers="How do discrete codes compare with continuous ones, with JPEG and with small pictures?",
    rows=ROWS,
    profiles={
        "quick": CompressionProfile(
            name="quick",
            seeds=1,
            images=5000,
            trial_images=2500,
            trial_epochs=1,
            epochs=6,
            rows=("Categorical 20x2", "Categorical 38x2", "Categorical 62x2", "Continuous 5", *STATIC),
        ),
        # The paper trains for 500 epochs where it says so.
        "standard": CompressionProfile(
            name="standard",
            seeds=1,
            trial_images=12_000,
            trial_epochs=1,
            epochs=10,
            rows=(*(f"Categorical {shape}" for shape in SPREAD), "Continuous", *STATIC),
        ),
        "paper": CompressionProfile(name="paper", seeds=1, trial_epochs=500, epochs=500, paper_codec=True),
    },
    notes=(
        "Distortion is the mean absolute error on the training images, pixels in [0, 1]. Bits are those of a code as "
        "the paper counts them, without the codec; of JPEG the mean over 10,000 images, without its header; of what is "
        "coded those of a memory that holds all images, with what it has learned of them.",
        "Learned codecs have the paper's layers with a group norm and a smooth activation behind each hidden one, and "
        "take the most probable code instead of drawing it: so a few epochs do. The profile `paper` has them as the "
        "paper does.",
    ),
)
