"""Steps a second of `Replay.observe` with real storage, against a loop in bare PyTorch that does the same."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F

from benchmarks.harness import report
from recollect import Memory, RawPixels, RecollectionModule, Replay
from recollect.models import MLP

if TYPE_CHECKING:
    from collections.abc import Callable

SHAPE, CAPACITY, NEW, OLD = (1, 28, 28), 200, 10, 10
STEPS, ROUNDS = 100, 60


def bare(x: torch.Tensor, y: torch.Tensor) -> Callable[[], None]:
    """A reservoir of 8-bit images in two tensors, and a step on new and old examples."""
    model = MLP()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    images, labels = torch.zeros(CAPACITY, *SHAPE, dtype=torch.uint8), torch.zeros(CAPACITY, dtype=torch.int64)
    rng, seen = np.random.default_rng(0), 0

    def steps() -> None:
        nonlocal seen
        for new, new_y in zip(x, y, strict=True):
            inputs, targets = new, new_y
            if seen:
                drawn = torch.from_numpy(rng.integers(0, min(seen, CAPACITY), OLD))
                inputs = torch.cat([new, images[drawn].float() / 255])
                targets = torch.cat([new_y, labels[drawn]])
            optimiser.zero_grad()
            F.cross_entropy(model(inputs), targets).backward()
            optimiser.step()
            order = np.arange(seen, seen + len(new))
            slots = np.where(order < CAPACITY, order, rng.integers(0, order + 1))
            for example in np.flatnonzero(slots < CAPACITY):
                images[slots[example]] = (new[example] * 255).round().byte()
                labels[slots[example]] = new_y[example]
            seen += len(new)

    return steps


def ours(x: torch.Tensor, y: torch.Tensor) -> Callable[[], None]:
    """The same by the library."""
    memory = Memory(RawPixels(SHAPE), capacity=CAPACITY, classes=10, tasks=20)
    learner = Replay(MLP(), RecollectionModule(memory), learning_rate=0.1, batch_size=OLD)

    def steps() -> None:
        for new, new_y in zip(x, y, strict=True):
            learner.observe(new, new_y, 0)

    return steps


def main() -> None:
    x, y = torch.rand(STEPS, NEW, *SHAPE), torch.randint(0, 10, (STEPS, NEW))
    rows = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        times: dict[str, list[float]] = {"bare": [], "ours": []}
        loops = {"bare": bare(x, y), "ours": ours(x, y)}
        for _ in range(ROUNDS):  # in turns, so that what else the machine does meets both
            for name, steps in loops.items():
                started = time.perf_counter()
                steps()
                times[name].append(time.perf_counter() - started)
        rate = {name: STEPS / statistics.median(taken) for name, taken in times.items()}
        rows.append(
            {
                "threads": threads,
                "bare_steps_a_second": rate["bare"],
                "our_steps_a_second": rate["ours"],
                "ratio": rate["ours"] / rate["bare"],
            }
        )
    report("replay", rows)


if __name__ == "__main__":
    main()
