"""The paper's appendix: from a CNN to a student of another architecture, an MLP, on MNIST."""

from __future__ import annotations

import recollect as rc
from recollect.lab.distillation import NOTE, PROTOCOL, QUICK, STANDARD, STORAGE, table
from recollect.lab.distilling import Distillation

PAPER = {
    "Real data": (13.64, 36.37, 80.54, 91.04, 96.66),
    "10 % sample": (17.04, 37.04, 79.08, 90.84, 95.02),
    "2 % sample": (14.57, 38.35, 78.18, 88.38, 91.61),
    "1 % sample": (15.13, 34.04, 77.76, 86.83, 88.97),
    "Real x, teacher y": (15.87, 38.56, 80.00, 90.86, 96.60),
    "10x compress": (16.70, 37.16, 80.72, 91.37, 96.71),
    "50x compress": (11.80, 40.09, 80.00, 90.60, 96.24),
    "100x compress": (14.66, 42.31, 77.75, 90.46, 95.22),
}
ROWS = table(rc.models.MLP, PAPER)

EXPERIMENT = Distillation(
    name="distillation_mlp",
    title="Distillation: a CNN teaches an MLP by recollections of MNIST",
    answers="Can a memory hand on what a network knows to one of another architecture?",
    rows=ROWS,
    profiles={"quick": QUICK, "standard": STANDARD, "paper": PROTOCOL},
    notes=(NOTE, STORAGE),
)
