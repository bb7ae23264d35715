"""The paper's appendix on curricula: recollections that are hard for the student, unlike each other, or both."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from recollect.lab.distillation import CODES, EPISODE, EPISODES, PIXELS, PROTOCOL, QUICK, STANDARD, STORAGE
from recollect.lab.distillation import ROWS as AT_RANDOM
from recollect.lab.distilling import Distillation, DistillationRow

if TYPE_CHECKING:
    from recollect.lab.experiment import Settings

ACTIVE, DIVERSE, DPP = "active", "diverse", "diverse (DPP)"


def choosing(
    name: str, memory: Settings, sampling: tuple[str, ...], paper: tuple[float, ...] = (), *, seeds: int = 3
) -> DistillationRow:
    """A row of what is chosen, with the paper's numbers; those that are ours alone have fewer seeds."""
    numbers: dict[int, float] = dict(zip(EPISODES, paper, strict=False))
    return DistillationRow(name=name, sampling=sampling, paper=numbers, seeds=None if paper else seeds, **memory)


ROWS = (
    # Drawn at random: the first two as in the paper's table, the others beside which the choices are to be seen.
    *(row for row in AT_RANDOM if row.name in {"Real data", "Real x, teacher y", "10x compress", "100x compress"}),
    choosing("Active 10x", CODES["10x"], (ACTIVE,), (9.95, 14.80, 93.45, 98.61, 99.18)),
    choosing("Active 100x", CODES["100x"], (ACTIVE,), (10.19, 22.57, 92.97, 97.53, 98.25)),
    choosing("Diverse 10x", CODES["10x"], (DIVERSE,)),
    choosing("Diverse, DPP 10x", CODES["10x"], (DPP,)),
    choosing("Active & diverse 10x", CODES["10x"], (DIVERSE, ACTIVE), (10.67, 27.05, 94.81, 98.59, 99.20)),
    choosing("Active & diverse 100x", CODES["100x"], (DIVERSE, ACTIVE), (11.51, 29.93, 92.54, 97.66, 98.32)),
    choosing("Active & DPP 100x", CODES["100x"], (DPP, ACTIVE), seeds=1),  # a choice takes long
    choosing("Active, pixels 100x", PIXELS["100x"], (ACTIVE,)),
)

EXPERIMENT = Distillation(
    name="distillation_active",
    title="Distillation by choice: hard and diverse recollections of MNIST",
    answers="Does a student learn faster from recollections that are chosen for it?",
    rows=ROWS,
    profiles={
        "quick": replace(QUICK, episodes=3000, rows=("100x compress", "Active 100x", "Active & diverse 100x")),
        "standard": replace(STANDARD, learning_rates=(1e-3,)),  # the best for codes in the end; choosing takes long
        "paper": PROTOCOL,
    },
    notes=(
        f"{EPISODE} In `paper` the better of two learning rates on held-out training images counts; others have one.",
        "Active: the hardest of 10 for the student. Diverse: 10 of 100 that are unlike each other, by minimum sum of "
        "squared similarities, or by a determinantal point process (DPP).",
        STORAGE,
    ),
)
