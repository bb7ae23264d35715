"""What the tests of the durable file share: how much to try, memories to try it on, and all that can be seen of one."""

from __future__ import annotations

import hashlib
import os
import resource
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import torch
from torch import nn

import recollect as rc
from recollect.memory import file
from recollect.memory.coded_index import CodedIndex
from recollect.memory.rules import Rule
from recollect.rebuild import described

SHAPE = (1, 8, 8)
CLASSES, TASKS = 10, 4
REALS = rc.RealTargets((2,), bits=16)
LEVELS = rc.RealTargets((2,), bits=6, between=(-1.5, 14.25))  # a quarter apart


def rounds(suite: int, torture: int) -> int:
    """How often to try: `make torture` sets a variable to 1; a share of it, such as 0.1, does so much of the work."""
    return max(suite, int(torture * float(os.environ.get("RECOLLECT_TORTURE", "0"))))


def raw(
    capacity: int = 60, rule: Rule = "reservoir", seed: int = 0, targets: rc.RealTargets | rc.NoTargets | None = None
) -> rc.Memory:
    """A memory whose packed codes are the pixels, so that they can be searched for."""
    y = {"classes": CLASSES} if targets is None else {"targets": targets}
    settings = {"admission": rule, **y, "tasks": TASKS, "seed": seed}
    return rc.Memory(rc.RawPixels(SHAPE), capacity, **settings)


def targets_of(memory: rc.Memory, labels: torch.Tensor) -> torch.Tensor | None:
    """In place of labels, targets that the memory takes and gives back exactly."""
    if memory.classes:
        return labels
    return torch.stack([labels - 1.5, 0.25 * labels], 1) if isinstance(memory.targets, rc.RealTargets) else None


def coded(bits: int = 2000, rule: Rule = "reservoir", seed: int = 0) -> rc.Memory:
    """A memory whose items differ in size: means of random pixels, which are gray more often than black or white."""
    settings = {"admission": rule, "classes": CLASSES, "tasks": TASKS, "seed": seed}
    return rc.Memory(rc.ResizedPixels(SHAPE, size=(2, 2), bits=4), code_bits=bits, scheme="entropy", **settings)


def coded_bytes(index: CodedIndex) -> bytes:
    """What entropy-coded records hold beside their fields."""
    return index.codes.words.tobytes() + index.codes.lengths.tobytes() + index.codes.coder.data


def learned(capacity: int = 300, rule: Rule = "reservoir") -> rc.Memory:
    """A memory with weights in its file; large enough that few changed records are committed as a patch."""
    return rc.Memory(codec(), capacity, admission=rule, classes=CLASSES, tasks=TASKS)


def codec() -> rc.DiscreteAutoencoder:
    """To open a `learned` memory with: ten times faster than to have it built from its description."""
    return rc.DiscreteAutoencoder(SHAPE, 8, 2)


def write(memory: rc.Memory, count: int, random: Random, tasks: int = TASKS) -> torch.Tensor:
    """Show random examples of so many tasks to a memory. Returns them."""
    generator = torch.Generator().manual_seed(random.getrandbits(60))
    x = torch.randint(0, 256, (count, *SHAPE), generator=generator) / 255
    y, task = (torch.randint(0, most, (count,), generator=generator) for most in (CLASSES, tasks))
    memory.write(x, targets_of(memory, y), task)
    return x


def change(memory: rc.Memory, random: Random) -> None:
    """Something between two commits: few examples or many, weights that are trained, items that are forgotten."""
    write(memory, random.choice([1, 1, 2, 3, 40]), random)
    if isinstance(memory.codec, nn.Module) and random.random() < 0.3:
        with torch.no_grad():
            for parameter in memory.codec.parameters():
                parameter.add_(random.uniform(-1, 1))
    if len(memory) and random.random() < 0.2:
        memory.forget(ids=random.sample(memory.ids.tolist(), min(len(memory), 5)))


def fingerprint(memory: rc.Memory) -> str:
    """Of all that a memory is, and of what it would do next."""
    codec = memory.codec
    weights = codec.state_dict() if isinstance(codec, nn.Module) else {}
    index = memory._index
    seen = (
        [array.buffer.tobytes() for array in index.arrays.values()],
        coded_bytes(index) if isinstance(index, CodedIndex) else b"",
        (memory.capacity, memory.admission, memory.classes, memory.tasks, memory.scheme, described(memory.targets)),
        (len(memory), memory.seen, memory.ids.tolist(), memory._admission.state(), memory.audit),
        [rng.bit_generator.state for rng in (memory._admission_rng, memory._sample_rng)],
        (type(codec).__name__, codec.shape, codec.variables, codec.categories, codec.storage_bits),
        sorted((name, tensor.numpy().tobytes()) for name, tensor in weights.items()),
    )
    return hashlib.sha256(repr(seen).encode()).hexdigest()


@contextmanager
def memory_limit(more: int) -> Iterator[None]:
    """No more than so many bytes can be allocated, whether they are used or not."""
    usual = resource.getrlimit(resource.RLIMIT_AS)
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + more, usual[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, usual)


def parts_and_segments(path: Path) -> file.Change:
    """All that a file holds but its patches, to be committed to another one with what a test changes in it."""
    with file.reading(path) as reader:
        segments = dict(reader.segments())
        parts = {name: data for name, data in reader.parts.items() if name != file.HEAD}
        return file.Change(parts=parts, segments=segments, audit=reader.audit)


def small_cache(path: Path, mode: str) -> sqlite3.Connection:
    """A connection that writes to the file long before it commits, as it does with memories of many megabytes."""
    connection = CONNECT(path, mode)
    connection.execute("PRAGMA cache_size = 4")
    return connection


CONNECT = file._connect
