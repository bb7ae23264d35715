"""The learning rates behind the students of `standard`, which take ten recollections a step where the paper takes one.

``python -m recollect.lab.distillation_tuning`` tries more of them with codes, with a sample and with small pictures.
Which is best on held-out images after each number of episodes is in ``results/distillation/tuning``.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from rich.console import Console

from recollect.lab import results
from recollect.lab.distillation import EXPERIMENT, STANDARD
from recollect.lab.runner import jobs_left, run

PROFILE = replace(
    STANDARD,
    name="tuning",
    seeds=1,
    learning_rates=(3e-3, 1e-3, 3e-4, 1e-4),
    rows=("50x compress", "1 % sample", "Pixels 100x"),
)

if __name__ == "__main__":
    folder = Path("results")
    jobs = jobs_left(EXPERIMENT, PROFILE, EXPERIMENT.chosen(PROFILE), None, folder)
    run(jobs, partial(results.write, folder), workers=2, console=Console())
