"""A memory and its file driven at random, against a dictionary of what was written and a copy of what was committed."""

from __future__ import annotations

import tempfile
from collections import Counter, deque
from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import recollect as rc
from recollect.memory.file import MemoryFileError
from recollect.memory.keyed import MOST, Keyed, keys_of
from recollect.memory.rules import Rule
from torture import CLASSES, LEVELS, TASKS, fingerprint, raw, rounds, targets_of, write

Example = tuple[bytes, int | list[float], int]


class Model:
    """All examples written, by id, and which of them were forgotten; what a ring holds follows from these."""

    def __init__(self) -> None:
        self.written: dict[int, Example] = {}
        self.forgotten: set[int] = set()
        self.rings: dict[int, deque[int]] = {}
        self.since = 0  # the first example after the memory was last empty

    def copy(self) -> Model:
        other = Model()
        other.written, other.forgotten = dict(self.written), set(self.forgotten)
        other.rings = {task: ring.copy() for task, ring in self.rings.items()}
        other.since = self.since
        return other

    def write(self, number: int, example: Example) -> None:
        self.written[number] = example
        self.rings.setdefault(example[2], deque()).append(number)

    def shrink(self, capacity: int) -> None:
        """After a whole batch every task has its share."""
        share = capacity // max(len(self.rings), 1)
        self.rings = {task: deque(ring, maxlen=share) for task, ring in self.rings.items()}

    def forget(self, gone: set[int]) -> None:
        self.forgotten |= gone
        self.rings = {task: deque(n for n in ring if n not in gone) for task, ring in self.rings.items()}


class Machine(RuleBasedStateMachine):
    admission: Rule
    targets: rc.RealTargets | rc.NoTargets | None = None

    @initialize(capacity=st.sampled_from([4, 30, 130]), seed=st.integers(0, 99))
    def start(self, capacity: int, seed: int) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="recollect")
        self.path = Path(self.folder.name) / "memory.rec"
        self.memory, self.model = self.made(capacity, seed), Model()
        self.committed: tuple[str, Model] | None = None

    def made(self, capacity: int, seed: int) -> rc.Memory:
        return raw(capacity, self.admission, seed, self.targets)

    def pixels(self, count: int, generator: torch.Generator) -> torch.Tensor:
        return torch.randint(0, 256, (count, 1, 8, 8), generator=generator)

    def teardown(self) -> None:
        self.folder.cleanup()

    @rule(count=st.sampled_from([1, 2, 5, 60]), seed=st.integers(0, 2**20))
    def write(self, count: int, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        pixels = self.pixels(count, generator)
        y = torch.randint(0, CLASSES, (count,), generator=generator)
        task = torch.randint(0, TASKS, (count,), generator=generator)
        targets = targets_of(self.memory, y)
        ids = self.memory.write(pixels / 255, targets, task)
        kept = [[]] * count if targets is None else targets.tolist()
        assert ids.tolist() == [*range(len(self.model.written), len(self.model.written) + count)]
        for number, image, label, of in zip(ids.tolist(), pixels.byte(), kept, task.tolist(), strict=True):
            self.model.write(number, (image.numpy().tobytes(), label, of))
        self.model.shrink(self.memory.capacity)

    @precondition(lambda self: len(self.memory) > 0)
    @rule(n=st.integers(1, 20))
    def sample(self, n: int) -> None:
        held, rows = set(self.memory.ids.tolist()), self.records(self.memory.sample(n))
        assert len(rows) == n
        assert {number for number, _ in rows} <= held
        for number, example in rows:
            assert example == self.model.written[number]

    @precondition(lambda self: self.model.written)
    @rule(data=st.data())
    def forget_ids(self, data: st.DataObject) -> None:
        ids = data.draw(st.sets(st.sampled_from(sorted(self.model.written)), min_size=1, max_size=10))
        held = ids & set(self.memory.ids.tolist())
        assert self.memory.forget(ids=[*ids]) == len(held)
        self.model.forget(ids)

    @rule(label=st.none() | st.integers(0, CLASSES - 1), task=st.integers(0, TASKS - 1))
    def forget_kind(self, label: int | None, task: int) -> None:
        label = label if self.memory.classes else None
        gone = {n for n, (_, y, t) in self.model.written.items() if t == task and label in (None, y)}
        held = gone & set(self.memory.ids.tolist())
        assert self.memory.forget(label=label, task=task) == len(held)
        self.model.forget(gone)

    @rule()
    def commit(self) -> None:
        self.memory.commit(self.path)
        self.committed = fingerprint(self.memory), self.model.copy()

    @precondition(lambda self: self.committed is not None)
    @rule()
    def open(self) -> None:
        assert self.committed is not None
        self.memory = rc.Memory.open(self.path)
        assert fingerprint(self.memory) == self.committed[0]
        self.model = self.committed[1].copy()

    @precondition(lambda self: self.committed is not None)
    @rule(seed=st.integers(0, 99))
    def commit_by_another(self, seed: int) -> None:
        """Then this memory comes too late, whatever it has to commit, and nothing of the other's work is lost."""
        assert self.committed is not None
        other = rc.Memory.open(self.path)
        write(other, 1, Random(seed))
        other.forget(ids=[0])
        live = fingerprint(self.memory)
        other.commit(self.path)
        with pytest.raises(MemoryFileError, match="was changed by another writer"):
            self.memory.commit(self.path)
        assert fingerprint(self.memory) == live
        assert fingerprint(rc.Memory.open(self.path)) == fingerprint(other)
        self.path = self.path.with_name(f"{self.path.name}.rec")  # it may go on in another file
        self.committed = None

    @invariant()
    def what_is_held_was_written_and_not_forgotten(self) -> None:
        ids = self.memory.ids.tolist()
        model, held = self.model, set(ids)
        assert len(ids) == len(held) == len(self.memory) <= self.memory.capacity
        assert self.memory.seen == len(model.written)
        assert held <= set(model.written) - model.forgotten
        if self.admission == "ring":
            assert held == {number for ring in model.rings.values() for number in ring}
        if not model.forgotten:
            self.check_counts(held)

    def check_counts(self, held: set[int]) -> None:
        """As long as nothing was forgotten a memory is as full as it can be, and balanced."""
        model, capacity = self.model, self.memory.capacity
        if self.admission != "ring":
            assert len(held) == min(capacity, len(model.written))
        if self.admission == "balanced" and len(model.written) > capacity:
            shown = Counter(y for _, y, _ in model.written.values() if isinstance(y, int))
            kept = Counter(y for _, y, _ in map(model.written.__getitem__, held) if isinstance(y, int))
            # A class has less than another only if all that was shown of it is held, or one less for want of room.
            for label, count in shown.items():
                assert kept[label] == count or kept[label] >= max(kept.values()) - 1

    @staticmethod
    def records(batch: rc.Batch) -> list[tuple[int, Example]]:
        pixels = (batch.x * 255).round().byte().numpy()
        rows = zip(batch.ids.tolist(), pixels, batch.y.tolist(), batch.task.tolist(), strict=True)
        return [(number, (image.tobytes(), y, task)) for number, image, y, task in rows]


class ReservoirMachine(Machine):
    admission = "reservoir"


class RingMachine(Machine):
    admission = "ring"


class BalancedMachine(Machine):
    admission = "balanced"


class RealTargetsMachine(Machine):
    admission = "reservoir"
    targets = LEVELS


class NoTargetsMachine(Machine):
    admission = "ring"
    targets = rc.NoTargets()


class EntropyMachine(Machine):
    """As many items as fit so many bits: black images with some white pixels."""

    def made(self, capacity: int, seed: int) -> rc.Memory:
        codec, self.bits = rc.ResizedPixels((1, 8, 8), size=(8, 8), bits=1), 130 + 32 * capacity
        settings = {"admission": self.admission, "classes": CLASSES, "tasks": TASKS, "seed": seed}
        return rc.Memory(codec, code_bits=self.bits, scheme="entropy", **settings)

    def pixels(self, count: int, generator: torch.Generator) -> torch.Tensor:
        return 255 * (torch.rand(count, 1, 8, 8, generator=generator) < 0.1)

    @invariant()
    def what_is_held_was_written_and_not_forgotten(self) -> None:
        """All that has a key below the limit of its class, and nothing else, in no more bits than it may have."""
        bill, rule, model = self.memory.footprint(), self.memory._admission, self.model
        assert bill.codes + bill.tables <= self.bits
        assert bill.incremental == 8 * self.memory._index.nbytes
        assert isinstance(rule, Keyed)
        assert self.memory.seen == len(model.written)
        ids = self.memory.ids.tolist()
        model.since = model.since if ids else self.memory.seen  # with nothing left, it starts anew
        wanted = set()
        for number, (_, y, _) in model.written.items():
            limit = rule.limits.get(y if self.admission == "balanced" and isinstance(y, int) else 0, MOST)
            if number >= model.since and int(keys_of(rule.salt, np.array([number]))[0]) < limit:
                wanted.add(number)
        assert len(ids) == len(self.memory) == len(set(ids))
        assert set(ids) == wanted - model.forgotten


class EntropyReservoirMachine(EntropyMachine):
    admission = "reservoir"


class EntropyBalancedMachine(EntropyMachine):
    admission = "balanced"


SETTINGS = settings(max_examples=rounds(15, 1000), stateful_step_count=30)
ReservoirMachine.TestCase.settings = RingMachine.TestCase.settings = BalancedMachine.TestCase.settings = SETTINGS
RealTargetsMachine.TestCase.settings = NoTargetsMachine.TestCase.settings = SETTINGS
EntropyReservoirMachine.TestCase.settings = EntropyBalancedMachine.TestCase.settings = SETTINGS
TestEntropy, TestEntropyBalanced = EntropyReservoirMachine.TestCase, EntropyBalancedMachine.TestCase
TestReservoir, TestRing, TestBalanced = ReservoirMachine.TestCase, RingMachine.TestCase, BalancedMachine.TestCase
TestRealTargets, TestNoTargets = RealTargetsMachine.TestCase, NoTargetsMachine.TestCase
