"""What is forgotten is gone: from sampling at once, and from the file, to the last byte, after the commit."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest
import torch

import recollect as rc
from recollect.memory.rules import Rule
from torture import CLASSES, TASKS, fingerprint, raw, rounds, write

RULES: tuple[Rule, ...] = ("reservoir", "ring", "balanced")
CHUNK = 16  # bytes that are searched for: a record of 64 may lie on two pages, but some of its chunks are whole


class History:
    """A memory and its file, with the packed bytes of all examples ever shown."""

    def __init__(self, folder: Path, rule: Rule, capacity: int, seed: int) -> None:
        self.folder, self.path, self.random = folder, folder / "memory.rec", Random(seed)
        self.memory = raw(capacity, rule, seed)
        self.shown: list[bytes] = []
        self.forgotten: set[int] = set()

    def write(self, count: int) -> None:
        tasks = min(TASKS, 1 + len(self.shown) // 100)  # new ones come as time goes by, for which a ring makes room
        x = write(self.memory, count, self.random, tasks)
        self.shown += [image.numpy().tobytes() for image in (x * 255).round().byte()]

    def forget(self) -> None:
        """Some that are held, some that are not any more, or whole classes and tasks."""
        ids = set(self.memory.ids.tolist())
        match self.random.randrange(4):
            case 0:
                gone = self.random.sample(sorted(ids), min(len(ids), self.random.choice([1, 3, 20])))
                assert self.memory.forget(ids=gone) == len(gone)
            case 1:
                gone = self.random.sample(range(self.memory.seen), min(self.memory.seen, 30))
                assert self.memory.forget(ids=gone) == len(ids.intersection(gone))
                self.forgotten |= set(gone)
            case 2:
                self.memory.forget(label=self.random.randrange(CLASSES))
            case 3:
                self.memory.forget(task=self.random.randrange(TASKS))
        self.forgotten |= ids - set(self.memory.ids.tolist())

    def found(self, data: bytes, numbers: set[int]) -> set[int]:
        """The examples of which there is a chunk in the data."""
        at = range(0, 64, CHUNK)
        return {number for number in numbers if any(self.shown[number][start : start + CHUNK] in data for start in at)}

    def files(self) -> bytes:
        """Of all files that there are, whatever their name."""
        return b"".join(path.read_bytes() for path in self.folder.iterdir())


@pytest.mark.parametrize("rule", RULES)
def test_no_byte_of_it_stays(rule: Rule, tmp_path: Path):
    for seed in range(rounds(3, 300)):
        folder = tmp_path / str(seed)
        folder.mkdir()
        history = History(folder, rule, capacity=[60, 150, 300][seed % 3], seed=seed)
        for _ in range(12):
            for _ in range(history.random.randrange(4)):
                history.write(history.random.choice([1, 1, 2, 40, 200]))
                history.memory.commit(history.path)
            held = set(history.memory.ids.tolist())
            assert not held & history.forgotten
            if held and history.path.exists():
                assert history.found(history.files(), held) == held  # else nothing could be missed
                history.forget()
                live = b"".join(array.buffer.tobytes() for array in history.memory._index.arrays.values())
                assert not history.found(live, history.forgotten)
                history.memory.commit(history.path)
                assert not history.found(history.files(), history.forgotten)
            if history.path.exists() and history.random.random() < 0.3:
                history.memory = rc.Memory.open(history.path)
        assert history.forgotten


@pytest.mark.parametrize("rule", RULES)
def test_it_is_not_sampled_any_more(rule: Rule):
    memory = raw(rule=rule)
    write(memory, 200, Random(0))
    ids = memory.ids.tolist()
    gone = ids[::3]
    task = int(memory.sample(1).task)
    memory.forget(ids=torch.tensor(gone))
    assert set(memory.sample(2000).ids.tolist()) == set(ids) - set(gone)
    memory.forget(task=task)
    assert task not in memory.sample(2000).task
    with pytest.raises(ValueError, match=f"there are no items held of task {task}"):
        memory.sample(1, task=task)
    memory.forget(ids=[*range(200)])
    assert len(memory) == 0
    assert memory.sample_tasks() is None


def test_several_rules_must_all_hold():
    memory = raw(200)
    write(memory, 200, Random(0))
    batch = memory.sample(200, replace=False)
    ids = {
        number
        for number, y, task in zip(batch.ids.tolist(), batch.y.tolist(), batch.task.tolist(), strict=True)
        if number < 100 and y == 3 and task == 1
    }
    assert ids
    assert memory.forget(ids=[*range(100)], label=3, task=1) == len(ids)
    assert set(memory.ids.tolist()) == set(range(200)) - ids


def test_the_audit_stays_and_does_not_say_what_was_forgotten(tmp_path: Path):
    path, began = tmp_path / "memory.rec", datetime.now(UTC).replace(microsecond=0)
    memory = raw(200)
    write(memory, 200, Random(0))
    memory.commit(path)
    memory.forget(ids=[17, 123])
    memory.forget(ids=[17])
    memory.commit(path)
    memory = rc.Memory.open(path)
    memory.forget(task=2, label=4)
    memory.commit(path)
    write(memory, 100, Random(1))
    memory.commit(path)

    audit = rc.Memory.open(path).audit
    assert [line.rule for line in audit] == ["ids", "ids", "task=2 and label=4"]
    assert [line.items for line in audit[:2]] == [2, 0]
    assert 0 < audit[2].items < 30
    assert all(began <= datetime.fromisoformat(line.time) <= datetime.now(UTC) for line in audit)
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT * FROM audit").fetchall()
    assert rows == [(line.time, line.items, line.rule) for line in audit]
    assert not re.search("17|123", " ".join(rule for _, _, rule in rows))


BAD = [
    ({}, ValueError, "nothing to forget was named: accepted are ids, task and label"),
    ({"ids": [0, 60]}, ValueError, "ids has the value 60: accepted are 0 to 59"),
    ({"ids": -1}, ValueError, "ids has the value -1: accepted are 0 to 59"),
    ({"ids": [[0, 1]]}, ValueError, "ids has shape"),
    ({"ids": [0.5]}, TypeError, "ids has type float64: accepted are integers"),
    ({"label": CLASSES}, ValueError, "label has the value 10: accepted are 0 to 9"),
    ({"task": -1}, ValueError, "task has the value -1: accepted are 0 to 3"),
    ({"task": [0, 1]}, ValueError, "task has shape"),
    ({"task": True}, TypeError, "task has type bool"),
    ({"ids": [1], "label": 99}, ValueError, "label has the value 99"),
]


@pytest.mark.parametrize(("arguments", "kind", "message"), BAD, ids=[message for _, _, message in BAD])
def test_what_cannot_be_meant_is_refused_and_changes_nothing(
    arguments: dict[str, object], kind: type[Exception], message: str
):
    memory = raw()
    write(memory, 60, Random(0))
    before = fingerprint(memory)
    with pytest.raises(kind, match=message):
        memory.forget(**arguments)  # pyright: ignore[reportArgumentType]
    assert fingerprint(memory) == before
