"""Steps a second of `Replay.observe` with real storage, against a loop in bare PyTorch that does the same."""

from __future__ import annotations

import itertools
import statistics
import time
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F

from benchmarks.harness import Rows, report
from recollect import Memory, RawPixels, RecollectionModule, Replay
from recollect.models import MLP, ResNet18

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import nn

CAPACITY, NEW, OLD = 200, 10, 10
# A model, the shape of its images, steps of a round and rounds.
MODELS = (
    ("MLP", MLP, (1, 28, 28), 100, 60),
    ("ResNet-18", lambda: ResNet18([range(10)], classes=10), (3, 32, 32), 2, 30),
)


def bare(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> Callable[[], None]:
    """A reservoir of 8-bit images in two tensors, and a step on new and old examples."""
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    images, labels = torch.zeros(CAPACITY, *x.shape[2:], dtype=torch.uint8), torch.zeros(CAPACITY, dtype=torch.int64)
    masked = isinstance(model, ResNet18)
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
            outputs = model(inputs, torch.zeros_like(targets)) if masked else model(inputs)
            F.cross_entropy(outputs, targets).backward()
            optimiser.step()
            order = np.arange(seen, seen + len(new))
            slots = np.where(order < CAPACITY, order, rng.integers(0, order + 1))
            for example in np.flatnonzero(slots < CAPACITY):
                images[slots[example]] = (new[example] * 255).round().byte()
                labels[slots[example]] = new_y[example]
            seen += len(new)

    return steps


def ours(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> Callable[[], None]:
    """The same by the library."""
    memory = Memory(RawPixels(x.shape[2:]), capacity=CAPACITY, classes=10, tasks=20)
    learner = Replay(model, RecollectionModule(memory), learning_rate=0.1, batch_size=OLD)

    def steps() -> None:
        for new, new_y in zip(x, y, strict=True):
            learner.observe(new, new_y, 0)

    return steps


def measured() -> Rows:
    rows = []
    for (name, make, shape, steps, rounds), threads in itertools.product(MODELS, (1, 2)):
        torch.set_num_threads(threads)
        x, y = torch.rand(steps, NEW, *shape), torch.randint(0, 10, (steps, NEW))
        times: dict[str, list[float]] = {"bare": [], "ours": []}
        loops = {"bare": bare(make(), x, y), "ours": ours(make(), x, y)}
        for _ in range(rounds):  # in turns, so that what else the machine does meets both
            for loop, run in loops.items():
                started = time.perf_counter()
                run()
                times[loop].append(time.perf_counter() - started)
        rate = {loop: steps / statistics.median(taken) for loop, taken in times.items()}
        rows.append(
            {
                "model": name,
                "threads": threads,
                "bare_steps_a_second": rate["bare"],
                "our_steps_a_second": rate["ours"],
                "ratio": rate["ours"] / rate["bare"],
            }
        )
    return rows


if __name__ == "__main__":
    report("replay", measured)
