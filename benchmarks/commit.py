"""Commits of a large memory: the first, which writes all of it, against those after a few new examples."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from benchmarks.harness import Rows, report
from recollect import Memory, ResizedPixels

if TYPE_CHECKING:
    from collections.abc import Callable

SHAPE, ITEMS, NEW, ROUNDS = (1, 28, 28), 1_000_000, 100, 9
CODE = {"size": (16, 13), "bits": 1}  # 208 bits an item, as many as 104x4


def timed(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def measured() -> Rows:
    memory = Memory(ResizedPixels(SHAPE, **CODE), capacity=ITEMS, classes=10, tasks=20)
    x, y = torch.rand(min(ITEMS, 10_000), *SHAPE), torch.arange(min(ITEMS, 10_000)) % 10
    for _ in range(ITEMS // len(x)):
        memory.write(x, y)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.rec"
        first = timed(lambda: memory.commit(path))
        later = []
        for _ in range(ROUNDS):  # the reservoir is just full, so that nearly all of the new examples are kept
            memory.write(x[:NEW], y[:NEW])
            later.append(timed(lambda: memory.commit(path)))
        opened, bytes_billed = timed(lambda: Memory.open(path)), memory.footprint().total / 8
        overhead = path.stat().st_size / bytes_billed - 1
    typical = statistics.median(later)
    return [
        {
            "items": ITEMS,
            "new": NEW,
            "first_seconds": first,
            "later_milliseconds": 1e3 * typical,
            "percent_of_first": 100 * typical / first,
            "open_seconds": opened,
            "overhead_percent": 100 * overhead,
        }
    ]


if __name__ == "__main__":
    report("commit", measured)
