"""Cost of a write and of a sample in memories of 10^3, 10^5 and 10^7 items: it must not grow with their number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from rich.console import Console

from benchmarks.harness import Rows, report, seconds
from recollect import Memory, ResizedPixels
from recollect.memory.admission import Balanced, Reservoir

if TYPE_CHECKING:
    from recollect.memory.rules import Rule

SIZES = (10**3, 10**5, 10**7)
RULES: tuple[Rule, ...] = ("reservoir", "ring", "balanced")
SHAPE, BITS = (1, 3, 23), 3  # codes of 207 bits, about as many as 104x4 has, and no whole number of bytes
CLASSES, TASKS, CHUNK = 10, 20, 10**5


def filled(rule: Rule, size: int) -> Memory:
    """A full memory, its items evenly spread over classes and tasks."""
    codec = ResizedPixels(SHAPE, size=SHAPE[1:], bits=BITS)
    memory = Memory(codec, capacity=size, admission=rule, classes=CLASSES, tasks=TASKS)
    generator = torch.Generator().manual_seed(0)
    for start in range(0, size, CHUNK):
        numbers = torch.arange(start, min(start + CHUNK, size))
        memory.write(torch.rand(len(numbers), *SHAPE, generator=generator), numbers % CLASSES, numbers // 7 % TASKS)
    return memory


def measured() -> Rows:
    rows = []
    x, y, task = torch.rand(10, *SHAPE), torch.arange(10) % CLASSES, torch.arange(10) % TASKS
    for rule in RULES:
        smallest: dict[str, float] = {}
        for size in SIZES:
            Console(stderr=True).print(f"filling a {rule} memory of {size:,} items")
            memory = filled(rule, size)

            def write(memory: Memory = memory, size: int = size) -> None:
                # The more is seen, the less often an example is kept: every size is timed as just filled.
                if isinstance(memory._admission, Reservoir):
                    memory._admission.seen = size
                elif isinstance(memory._admission, Balanced):
                    memory._admission.counts.seen[:] = memory._admission.counts.held
                memory.write(x, y, task)

            costs = {
                "write 10": seconds(write),
                "sample 50": seconds(lambda memory=memory: memory.sample(50)),
                "sample 50, no replacement": seconds(lambda memory=memory: memory.sample(50, replace=False)),
                "sample 50 of a task": seconds(lambda memory=memory: memory.sample(50, task=3)),
            }
            smallest = smallest or costs
            rows += [
                {
                    "admission": rule,
                    "operation": operation,
                    "items": size,
                    "microseconds": 1e6 * cost,
                    f"ratio_to_{SIZES[0]:,}_items": cost / smallest[operation],
                }
                for operation, cost in costs.items()
            ]
    return rows


if __name__ == "__main__":
    report("memory", measured)
