"""Bits an item of entropy-coded memories, beside radix and the entropy of the codes, and what that costs in time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console

from benchmarks.harness import Rows, report, seconds
from recollect import Codec, Memory, ResizedPixels, Sketch
from recollect.streams import mnist_rotations

if TYPE_CHECKING:
    from recollect.memory.coding import Coding
    from recollect.streams import Task

SHAPE, BITS = (1, 28, 28), 10 * 28 * 28 * 8  # for codes and their tables: what ten images take
CODECS: dict[str, Codec] = {
    "pixels 10x10, 1 bit": ResizedPixels(SHAPE, size=(10, 10), bits=1),
    "pixels 14x14, 1 bit": ResizedPixels(SHAPE, size=(14, 14), bits=1),
    "pixels 7x7, 2 bits": ResizedPixels(SHAPE, size=(7, 7), bits=2),
    "pixels 6x6, 4 bits": ResizedPixels(SHAPE, size=(6, 6), bits=4),
    "sketch 14x14": Sketch(SHAPE, size=(14, 14), threshold=0.5, filters=0),
}
SCHEMES: tuple[Coding, Coding] = ("radix", "entropy")
TASKS, EXAMPLES = 20, 1000


def filled(codec: Codec, scheme: Coding, stream: list[Task]) -> tuple[Memory, float]:
    """A memory that has seen all of a stream, and milliseconds that it took to write ten examples."""
    memory = Memory(codec, code_bits=BITS, scheme=scheme, classes=10, tasks=TASKS)
    started = time.perf_counter()
    for number, task in enumerate(stream):
        for x, y in task.train.batches(10):
            memory.write(x, y, number)
    return memory, 1e4 * (time.perf_counter() - started) / memory.seen


def entropy(memory: Memory) -> float:
    """Bits of an item if each value took as many as its frequency asks for, and frequencies none."""
    codes = memory._index.codes.read(np.arange(len(memory)))
    counts = (np.unique(values, return_counts=True)[1] for values in codes.T)
    return sum(float((each * np.log2(len(codes) / each)).sum()) for each in counts) / len(codes)


def measured() -> Rows:
    stream = mnist_rotations(seed=0, tasks=TASKS, train_examples=EXAMPLES)
    rows = []
    for name, codec in CODECS.items():
        Console(stderr=True).print(f"filling memories of {name}")
        (radix, usual), (memory, writing) = (filled(codec, scheme, stream) for scheme in SCHEMES)
        sampling, usually = (1e3 * seconds(lambda each=each: each.sample(75)) for each in (memory, radix))
        bill = memory.footprint()
        rows.append(
            {
                "code": name,
                "radix_items": len(radix),
                "items": len(memory),
                "radix_bits": memory.radix_bits,
                "entropy": entropy(memory),
                "bits": (bill.codes + bill.tables) / len(memory),
                "of_these_tables": bill.tables / len(memory),
                "bits_to_radix": (bill.codes + bill.tables) / len(memory) / memory.radix_bits,
                "bits_to_entropy": (bill.codes + bill.tables) / len(memory) / entropy(memory),
                "sample_75_ms": sampling,
                "sample_to_radix": sampling / usually,
                "write_10_ms": writing,
                "write_to_radix": writing / usual,
            }
        )
    return rows


if __name__ == "__main__":
    report("entropy", measured)
