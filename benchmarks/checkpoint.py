"""Checkpoints of a run with the paper's codec: what one costs, and which share of a run that is."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

import torch

from benchmarks.harness import Rows, report
from recollect import DiscreteAutoencoder, Memory, RecollectionModule, Replay
from recollect.lab.checkpoint import EVERY, RARELY
from recollect.models import MLP

SHAPE, CODES, ITEMS, ROUNDS = (1, 28, 28), ((104, 4), (139, 8)), 3000, 5


def measured() -> Rows:
    rows = []
    x, y = torch.rand(10, *SHAPE), torch.arange(10)
    for variables, categories in CODES:
        memory = Memory(DiscreteAutoencoder(SHAPE, variables, categories), capacity=ITEMS, classes=10, tasks=20)
        learner = Replay(MLP(), RecollectionModule(memory))
        with tempfile.TemporaryDirectory() as folder:
            path, taken = Path(folder) / "run.rec", []
            for _ in range(ROUNDS):
                learner.observe(x, y)
                started = time.perf_counter()
                learner.save(path)
                taken.append(time.perf_counter() - started)
            size = path.stat().st_size
        typical = statistics.median(taken)
        rows.append(
            {
                "code": f"{variables}x{categories}",
                "file_megabytes": size / 1e6,
                "checkpoint_seconds": typical,
                "every_seconds": max(EVERY, RARELY * typical),
                "percent_of_a_run": 100 * typical / (typical + max(EVERY, RARELY * typical)),
            }
        )
    return rows


if __name__ == "__main__":
    report("checkpoint", measured)
