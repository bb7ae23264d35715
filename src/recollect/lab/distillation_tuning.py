"""What `standard` does otherwise than the paper: students take ten recollections a step, where the paper takes one.

``python -m recollect.lab.distillation_tuning`` tries more learning rates for it, with codes, with a sample and with
small pictures (``results/distillation/tuning``), and some rows with one recollection a step and the paper's rates,
which take ten times as long (to go to ``one-a-step`` beside ``standard``). Which rate is best on held-out images after
each number of episodes is recorded.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import partial
from pathlib import Path

from rich.console import Console

from recollect.lab import distillation, distillation_active, distillation_mlp, results
from recollect.lab.distillation import STANDARD
from recollect.lab.runner import jobs_left, run

RATES = replace(
    STANDARD,
    name="tuning",
    seeds=1,
    learning_rates=(3e-3, 1e-3, 3e-4, 1e-4),
    rows=("50x compress", "1 % sample", "Pixels 100x"),
)
SINGLY = replace(
    STANDARD,
    name="one-a-step",
    seeds=1,
    batch_size=1,
    learning_rates=(1e-3, 1e-4),
    rows=("10x compress", "50x compress"),
)
TRIALS = (
    (distillation.EXPERIMENT, RATES),
    (distillation.EXPERIMENT, SINGLY),
    (distillation_mlp.EXPERIMENT, SINGLY),
    (distillation_active.EXPERIMENT, replace(SINGLY, rows=("Active & diverse 10x",))),
)

if __name__ == "__main__":
    folder = Path("results")
    missing = (jobs_left(trial, profile, trial.chosen(profile), None, folder) for trial, profile in TRIALS)
    jobs = [replace(job, number=number) for number, job in enumerate(itertools.chain.from_iterable(missing))]
    run(jobs, partial(results.write, folder), workers=2, console=Console())
