"""Question 6 of the paper: codes that a memory holds against codes at random, as examples and as lessons."""

from __future__ import annotations

import recollect as rc
from recollect.lab.distillation import PROTOCOL, QUICK, STANDARD
from recollect.lab.representing import Sampling, SamplingProfile, SamplingRow


def drawn(how: str, variables: int, reconstruction: float, neighbour: float) -> SamplingRow:
    """A line of the paper's table: variables of 2 values, from the buffer or at random."""
    return SamplingRow(
        name=f"{how} sampling {variables}x2",
        codec=rc.DiscreteAutoencoder,
        code={"variables": variables, "categories": 2},
        sampling=("code",) if how == "Code" else (),
        paper_reconstruction=reconstruction,
        paper_neighbour=neighbour,
    )


ROWS = (
    drawn("Code", 38, 0.058, 0.074),
    drawn("Buffer", 38, 0.058, 0.054),
    drawn("Code", 168, 0.021, 0.081),
    drawn("Buffer", 168, 0.021, 0.021),
)

# Students, teachers and codecs are those of the experiment `distillation`, and shared with it. It has three seeds in
# `standard`: to look for the nearest of 50,000 images takes as long as training.
EXPERIMENT = Sampling(
    name="sampling",
    title="Sampling: what a buffer of codes adds to a decoder",
    answers="Are codes that were stored better samples than codes at random, and better lessons?",
    rows=ROWS,
    profiles={
        "quick": SamplingProfile(**{**vars(QUICK), "rows": ("38x2",)}, samples=200),
        "standard": SamplingProfile(**{**vars(STANDARD), "seeds": 3}),
        "paper": SamplingProfile(**vars(PROTOCOL)),
    },
    notes=(
        "Distortions are mean absolute errors, pixels in [0, 1]: of reconstruction on the test images, and between a "
        "sample and the training image nearest to it, over 10,000 samples (200 in quick).",
        "The student is a CNN that learns from a CNN what it says of the samples. Code sampling needs no buffer.",
    ),
)
