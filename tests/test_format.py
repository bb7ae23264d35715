"""The format is kept: files of earlier days open, files of later ones are refused, and the overhead is what it was.

To make the golden files anew, after a change of the format that is meant: ``python tests/test_format.py``.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import torch

import recollect as rc
from recollect.codecs.interface import Codec
from recollect.memory.coded_index import CodedIndex
from recollect.memory.erasure import Erasure
from recollect.memory.file import MemoryFileError
from recollect.memory.rules import Rule
from recollect.rebuild import described

GOLDEN = Path(__file__).parent / "golden"
SHAPE = (1, 8, 8)
CODECS: dict[str, Callable[[], Codec]] = {
    "raw": lambda: rc.RawPixels(SHAPE),
    "resized": lambda: rc.ResizedPixels(SHAPE, size=(5, 5), bits=3),
    "jpeg": lambda: rc.JPEG(SHAPE, bits=400, quality=50),
    "autoencoder": lambda: rc.DiscreteAutoencoder(SHAPE, 4, 3),
    "sketch": lambda: rc.Sketch(SHAPE, size=(8, 8), threshold=0.5, filters=2),
    "continuous": lambda: rc.ContinuousAutoencoder(SHAPE, 4),
}
RULES: tuple[Rule, ...] = ("reservoir", "ring", "balanced")
TARGETS = {"reals": rc.RealTargets((2,), bits=12, between=(-1, 9)), "none": rc.NoTargets()}
NAMES = [*(f"{codec}-reservoir" for codec in CODECS), "raw-ring", "raw-balanced"]
NAMES += ["raw-reservoir-reals", "raw-ring-none"]
NAMES += ["resized-reservoir-entropy", "resized-balanced-entropy", "sketch-reservoir-entropy"]
NAMES += ["resized-reservoir-examples"]
RECORDED = GOLDEN / "memories.json"


def make(name: str) -> rc.Memory:
    """A memory that has all there is in a file: segments, a patch on top of them, weights and a line of the audit."""
    codec, rule, targets = parts_of(name)
    y = {"targets": TARGETS[targets]} if targets in TARGETS else {"classes": 10}
    bits = 8000 if codec == "sketch" else 3000  # what is learned of neighbours takes 2,312
    room = {"code_bits": bits, "scheme": "entropy"} if targets == "entropy" else {"capacity": 70, "scheme": "radix"}
    examples = 1000 if targets == "examples" else None
    memory = rc.Memory(CODECS[codec](), admission=rule, **y, **room, tasks=3, examples=examples, seed=7)
    path = GOLDEN / f"{name}.rec"
    path.unlink(missing_ok=True)
    show(memory, 0, 100)
    memory.forget(label=4) if memory.classes else memory.forget(task=1)
    memory.audit = (Erasure("2020-01-01T00:00:00+00:00", memory.audit[-1].items, memory.audit[-1].rule),)
    memory.commit(path)
    show(memory, 100, 101)
    memory.commit(path)
    return memory


def parts_of(name: str) -> tuple[str, Rule, str]:
    codec, rule, targets = [*name.split("-"), "classes"][:3]
    assert rule in RULES
    return codec, rule, targets


def show(memory: rc.Memory, first: int, last: int) -> None:
    """Images and targets by a formula."""
    for number in range(first, last):
        row, column = torch.meshgrid(torch.arange(8), torch.arange(8), indexing="ij")
        image = (number * 29 + row * row * 7 + column * (number % 5) * 11) % 256
        y = [number % 10 - 0.5, number / 100] if isinstance(memory.targets, rc.RealTargets) else None
        memory.write(image.reshape(1, *SHAPE) / 255, number % 10 if memory.classes else y, min(2, number * 3 // 101))


def recorded(memory: rc.Memory) -> dict[str, Any]:
    """What a memory holds, as it stands in the record."""
    index, slots = memory._index, memory._admission.slots(torch.arange(len(memory)).numpy())
    packed = index.codes.read(slots)
    codec, codes = memory.codec, packed
    if memory.scheme != "entropy":
        codes = rc.unpack(packed, variables=codec.variables, categories=codec.categories, scheme=memory.scheme)
    return {
        "ids": memory.ids.tolist(),
        "labels": index.labels.read_integers(slots).tolist(),
        "tasks": index.tasks.read_integers(slots).tolist(),
        "codes": [bytes(code).hex() for code in codes.tolist()],
        "seen": memory.seen,
        "audit": [[line.time, line.items, line.rule] for line in memory.audit],
        "next": memory.sample(5).ids.tolist(),
    }


@pytest.fixture
def golden(tmp_path: Path) -> Callable[[str], Path]:
    """A copy of a golden file, so that the file itself is not touched."""

    def copy(name: str) -> Path:
        (tmp_path / name).write_bytes((GOLDEN / f"{name}.rec").read_bytes())
        return tmp_path / name

    return copy


@pytest.mark.parametrize("name", NAMES)
def test_a_golden_file_opens(name: str, golden: Callable[[str], Path]):
    memory = rc.Memory.open(golden(name))
    assert recorded(memory) == json.loads(RECORDED.read_text())[name]
    codec, rule, targets = parts_of(name)
    assert memory.admission == rule
    if targets in TARGETS:
        assert described(memory.targets) == described(TARGETS[targets])
    assert type(memory.codec) is type(CODECS[codec]())
    assert (memory.capacity, memory.classes, memory.tasks, memory.scheme) == (
        0 if targets == "entropy" else 70,
        0 if targets in TARGETS else 10,
        3,
        "entropy" if targets == "entropy" else "radix",
    )
    assert memory.examples == (1000 if targets == "examples" else None)
    if memory.scheme == "entropy":
        show(fresh := rc.Memory(CODECS[codec](), 101, classes=10, tasks=3), 0, 101)
        assert [recorded(fresh)["codes"][number] for number in memory.ids] == recorded(memory)["codes"]
        assert isinstance(memory._index, CodedIndex)
        assert memory._index.codes.coder.data
    if codec == "raw":
        show(fresh := rc.Memory(rc.RawPixels(SHAPE), 101, classes=10, tasks=3), 0, 101)
        assert [recorded(fresh)["codes"][number] for number in memory.ids] == recorded(memory)["codes"]


@pytest.mark.parametrize("name", NAMES)
def test_a_golden_file_can_be_gone_on_with(name: str, golden: Callable[[str], Path]):
    memory = rc.Memory.open(path := golden(name))
    show(memory, 101, 160)
    memory.forget(label=5) if memory.classes else memory.forget(ids=[120, 130])
    memory.commit(path)
    assert recorded(rc.Memory.open(path)) == recorded(memory)


def test_golden_files_hold_a_patch(golden: Callable[[str], Path]):
    with closing(sqlite3.connect(golden("raw-reservoir"))) as connection:
        assert connection.execute("SELECT count(*) FROM patch").fetchone() == (1,)


def test_a_newer_format_is_refused(golden: Callable[[str], Path]):
    with closing(sqlite3.connect(path := golden("raw-ring"))) as connection:
        connection.execute("PRAGMA user_version = 5")
    with pytest.raises(MemoryFileError, match="raw-ring has format 5: accepted are 1, 2, 3, 4"):
        rc.Memory.open(path)


def test_another_kind_of_file_is_refused(tmp_path: Path):
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE other (x)")
    with pytest.raises(MemoryFileError, match=r"other.db is a database of another kind: accepted is a file"):
        rc.Memory.open(path)
    path.write_text("neither a memory nor a database " * 100)
    with pytest.raises(
        MemoryFileError, match=r"other.db is damaged, or never was a file of a memory: file is not a database"
    ):
        rc.Memory.open(path)


class Code:
    """Codes of 104 variables with 4 values, the paper's for MNIST, without the weights of its autoencoder."""

    shape, variables, categories, storage_bits = (1, 28, 28), 104, 4, 0

    def encode(self, x: torch.Tensor) -> torch.Tensor:
        return (x.flatten(1)[:, : self.variables] * 3.99).long()

    def decode(self, codes: torch.Tensor) -> torch.Tensor:
        return torch.zeros(len(codes), *self.shape)


LARGE: dict[str, Callable[[], Codec]] = {
    "raw": lambda: rc.RawPixels((1, 28, 28)),
    "14x14 at 1 bit": lambda: rc.ResizedPixels((1, 28, 28), size=(14, 14), bits=1),
    "104x4": Code,
}


@pytest.mark.parametrize("name", LARGE)
def test_the_file_is_hardly_larger_than_the_bill(name: str, tmp_path: Path):
    memory, path = rc.Memory(LARGE[name](), 10_000, classes=10, tasks=20), tmp_path / "memory.rec"
    memory.write(torch.rand(10_000, 1, 28, 28), 0)
    memory.commit(path)
    assert path.stat().st_size < 1.05 * memory.footprint().total / 8
    for number in range(30):  # later commits add patches, and pages that are free for the next one
        memory.write(torch.rand([1, 30, 300][number % 3], 1, 28, 28), 0)
        memory.commit(path)
    assert path.stat().st_size < 1.08 * memory.footprint().total / 8


if __name__ == "__main__":
    made = {name: recorded(make(name)) for name in NAMES}
    lines = (f"{json.dumps(name)}: {json.dumps(content)}" for name, content in made.items())
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")
