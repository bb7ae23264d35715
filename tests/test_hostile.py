"""A file that was made to do harm, with checksums that are right, runs nothing and allocates no more than it holds."""

from __future__ import annotations

import json
import math
import pickle
import re
import sqlite3
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch

import recollect as rc
from battery import LEARNERS, batches
from recollect.inspection.facts import facts
from recollect.memory import file
from recollect.memory.examination import Examination
from recollect.memory.file import DamagedFileError, MemoryFileError
from recollect.memory.saved import bytes_to_tensors, tensors_to_bytes
from torture import REALS, learned, memory_limit, parts_and_segments, raw, rounds, write

SOURCES = Path(rc.__file__).parent
ROOM = 64 << 20  # bytes that may be allocated; the files have less than 100 KB


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> dict[str, file.Change]:
    """What honest files hold."""
    folder = tmp_path_factory.mktemp("honest")
    memories = {rule: raw(60, rule) for rule in ("reservoir", "ring", "balanced")} | {"learned": learned()}
    memories |= {"reals": raw(60, targets=REALS), "none": raw(60, "ring", targets=rc.NoTargets())}
    for name, memory in memories.items():
        write(memory, 500, Random(0))
        memory.forget(label=3 if memory.classes else None, task=None if memory.classes else 3)
        memory.commit(folder / name)
    learner = LEARNERS["replay-autoencoder-reservoir"]()
    for x, y, task in batches():
        learner.observe(x, y, task)
    learner.save(folder / "learner")
    return {name: parts_and_segments(folder / name) for name in (*memories, "learner")}


def make(path: Path, content: file.Change, **parts: Any) -> Path:
    """A new file with other parts: bytes as they are, plain values as JSON."""
    path.unlink(missing_ok=True)
    plain = {name: value if isinstance(value, bytes) else json.dumps(value).encode() for name, value in parts.items()}
    file.commit(file.home_at(path), replace(content, parts={**content.parts, **plain}))
    return path


def state_of(content: file.Change, part: str = "memory") -> dict[str, Any]:
    return json.loads(content.parts[part])


def refused(
    path: Path, load: Callable[[Path], object] = rc.Memory.open, error: type[MemoryFileError] = DamagedFileError
) -> str:
    """The message with which it is."""
    with memory_limit(ROOM), pytest.raises(error) as caught:
        load(path)
    assert "allocate" not in str(caught.value)  # it was not even tried
    return str(caught.value)


def test_what_these_files_are_made_of_opens(honest: dict[str, file.Change], tmp_path: Path):
    for name, content in honest.items():
        path = make(tmp_path / "memory.rec", content)
        with memory_limit(ROOM):
            assert len(rc.Memory.open(path)) > 0
            assert name != "learner" or rc.Learner.load(path).memory is not None


CODECS: dict[str, dict[str, Any]] = {
    "a command": {"class": "Popen", "arguments": {"args": ["touch", "harm"]}},
    "a function": {"class": "system", "arguments": {"command": "touch harm"}},
    "a path to a class": {"class": "subprocess.Popen", "arguments": {"args": ["touch", "harm"]}},
    "a network": {"class": "MLP", "arguments": {"inputs": 8}},
    "a learner": {"class": "Online", "arguments": {"learning_rate": 0.1}},
    "a part": {"class": "Replay", "arguments": {"model": 1, "module": 2}},
    "no class": {"class": None, "arguments": {}},
    "no name": {"class": ["RawPixels"], "arguments": {}},
    "other arguments": {"class": "RawPixels", "arguments": {"shape": [1, 8, 8], "more": 1}},
    "other images": {"class": "RawPixels", "arguments": {"shape": [1, 4, 16]}},
    "a huge image": {"class": "RawPixels", "arguments": {"shape": [1, 2**40, 2**40]}},
    "a huge network": {"class": "MLP", "arguments": {"inputs": 50_000, "hidden": [50_000, 50_000]}},
    "a huge codec": {
        "class": "DiscreteAutoencoder",
        "arguments": {"shape": [1, 8, 8], "variables": 20_000, "categories": 4},
    },
    "a codec beyond all numbers": {
        "class": "DiscreteAutoencoder",
        "arguments": {"shape": [2**62, 8, 8], "variables": 2**62, "categories": 4},
    },
}


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
@pytest.mark.parametrize("weights", ["none", "those of another codec"])
def test_only_codecs_are_built_and_none_larger_than_its_weights(
    codec: dict[str, Any],
    weights: str,
    honest: dict[str, file.Change],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.chdir(tmp_path)
    description = codec | {"training": True, "frozen": []}
    state = state_of(honest["reservoir"]) | {"codec": description}
    more = {} if weights == "none" else {"codec": honest["learned"].parts["codec"]}
    path = make(tmp_path / "memory.rec", honest["reservoir"], memory=state, **more)
    said = refused(path, error=MemoryFileError)
    assert ("damaged" in said) != ("a class of your own" in said)  # a name that is not known may be someone's
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.parametrize("load", [rc.Memory.open, rc.Learner.load, facts])
def test_records_without_a_memory_are_refused(
    load: Callable[[Path], object], honest: dict[str, file.Change], tmp_path: Path
):
    content = honest["learner"]
    parts = {name: data for name, data in content.parts.items() if name not in {"memory", "codec"}}
    path = make(tmp_path / "memory.rec", replace(content, parts=parts))
    assert "it holds records without a memory" in refused(path, load)


class Harm:
    """What would happen if it were unpickled."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return Path.touch, (Path("harm"),)


@pytest.mark.parametrize("part", ["codec", "model", "state", "optimiser", "memory", "learner"])
@pytest.mark.parametrize("how", ["pickle", "torch"])
def test_nothing_is_unpickled(
    part: str, how: str, honest: dict[str, file.Change], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    data = pickle.dumps({"weight": Harm()})
    if how == "torch":
        torch.save({"weight": Harm()}, tmp_path / "weights")
        data = (tmp_path / "weights").read_bytes()
        (tmp_path / "weights").unlink()
    refused(make(tmp_path / "memory.rec", honest["learner"], **{part: data}), rc.Learner.load)
    assert [*tmp_path.iterdir()] == [tmp_path / "memory.rec"]


def test_the_sources_have_no_way_to_run_what_is_read():
    modules = r"\b(pickle|cPickle|dill|marshal|shelve|joblib)\b"
    calls = r"(?<!safetensors\.)\btorch\.load\b|(?<![.\w])(eval|exec|compile|__import__)\(|load_extension"
    lines = {f"{path}: {line}" for path in SOURCES.rglob("*.py") for line in path.read_text().splitlines()}
    assert len(lines) > 1000
    assert [line for line in lines if re.search(f"{modules}|{calls}", line)] == []


SCHEMAS = [
    "CREATE TRIGGER harm AFTER INSERT ON segment BEGIN DELETE FROM audit; END",
    "CREATE VIEW harm AS SELECT * FROM part",
    "CREATE TABLE harm (x)",
    "CREATE INDEX harm ON part (name)",
    "CREATE VIRTUAL TABLE harm USING fts5 (x)",
    "ALTER TABLE audit ADD COLUMN harm",
    "DROP TABLE patch",
]


@pytest.mark.parametrize("statement", SCHEMAS)
def test_other_tables_are_refused(statement: str, honest: dict[str, file.Change], tmp_path: Path):
    path = make(tmp_path / "memory.rec", honest["reservoir"])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
    assert "its tables are not those of a memory" in refused(path)


def test_damage_that_sqlite_takes_for_a_lack_of_memory(honest: dict[str, file.Change], tmp_path: Path):
    path = make(tmp_path / "memory.rec", honest["reservoir"])
    data = path.read_bytes()
    start = data.index(b"tableauditaudit") + len("tableauditaudit")
    path.write_bytes(data[:start] + b"\xff" * 99 + data[start + 99 :])
    assert "it is damaged, or there is too little memory" in refused(path, error=MemoryFileError)
    assert any("cannot read the tables" in line for line in Examination(path).damage)


def test_a_view_in_place_of_a_table_is_refused(honest: dict[str, file.Change], tmp_path: Path):
    path = make(tmp_path / "memory.rec", honest["reservoir"])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ALTER TABLE segment RENAME TO hidden")
        connection.execute("CREATE VIEW segment AS SELECT number, checksum, randomblob(1 << 30) AS data FROM hidden")
    assert "its tables are not those of a memory" in refused(path)


HUGE: dict[str, dict[str, Any]] = {
    "capacity": {"capacity": 2**40},
    "capacity beyond all numbers": {"capacity": 2**70},
    "no number": {"capacity": math.nan},
    "classes": {"classes": 2**32},
    "tasks": {"tasks": 2**32},
    "code": {"code": [1, 8, 8, 2**40, 256]},
    "seen": {"seen": 2**80},
}


@pytest.mark.parametrize("change", HUGE.values(), ids=HUGE)
@pytest.mark.parametrize("rule", ["reservoir", "ring", "balanced"])
def test_nothing_is_allocated_that_is_only_claimed(
    change: dict[str, Any], rule: str, honest: dict[str, file.Change], tmp_path: Path
):
    path = make(tmp_path / "memory.rec", honest[rule], memory=state_of(honest[rule]) | change)
    with memory_limit(ROOM):
        try:
            rc.Memory.open(path)
        except MemoryFileError:
            return
    assert "seen" in change  # a number that takes no room


OTHER_TARGETS: dict[str, Any] = {
    "a command": {"class": "Popen", "arguments": {"args": ["touch", "harm"]}},
    "a codec": {"class": "RawPixels", "arguments": {"shape": [1, 8, 8]}},
    "a huge network": {"class": "MLP", "arguments": {"inputs": 50_000, "hidden": [50_000, 50_000]}},
    "other bits": {"class": "RealTargets", "arguments": {"shape": [2], "bits": 32}},
    "huge": {"class": "RealTargets", "arguments": {"shape": [2**40], "bits": 16}},
    "beyond all numbers": {"class": "RealTargets", "arguments": {"shape": [2**62] * 8, "bits": 16}},
    "many sides": {"class": "RealTargets", "arguments": {"shape": [1] * 1000, "bits": 16}},
    "no range": {"class": "RealTargets", "arguments": {"shape": [2], "bits": 16, "between": [math.nan, math.inf]}},
    "others": {"class": "NoTargets", "arguments": {}},
    "no class": {"class": None, "arguments": {}},
    "no arguments": {"class": "NoTargets", "arguments": None},
    "nothing": None,
}


@pytest.mark.parametrize("targets", OTHER_TARGETS.values(), ids=OTHER_TARGETS)
def test_other_targets_than_those_of_the_records_are_refused(
    targets: Any, honest: dict[str, file.Change], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    state = state_of(honest["reals"]) | {"targets": targets}
    refused(path := make(tmp_path / "memory.rec", honest["reals"], memory=state))
    assert [*tmp_path.iterdir()] == [path]


def test_targets_that_are_no_numbers_are_refused(honest: dict[str, file.Change], tmp_path: Path):
    memory = rc.Memory.open(make(tmp_path / "memory.rec", honest["reals"]))
    memory._index.labels.buffer[:2] = 0x7E, 0x00  # a NaN of 16 bits
    segments = {number: memory._index.segment(number) for number in range(len(memory._index.changed))}
    path = make(tmp_path / "other.rec", replace(honest["reals"], segments=segments))
    assert "targets that are no finite numbers" in refused(path)


def test_a_balanced_memory_of_many_classes_is_no_larger_than_its_counts(tmp_path: Path):
    """Labels of 32 bits, so that the records are as long as they should be."""
    memory = rc.Memory(rc.RawPixels((1, 8, 8)), 50, admission="ring", classes=2**32)
    write(memory, 40, Random(0))
    memory.commit(tmp_path / "honest.rec")
    content = parts_and_segments(tmp_path / "honest.rec")
    counts = {"held": [], "gone": [], "seen": [], "full": []}
    for given in (counts, {name: [0] * 10 for name in counts}):
        state = state_of(content) | {"admission": "balanced", "counts": given}
        refused(make(tmp_path / "memory.rec", content, memory=state))


@pytest.mark.parametrize("table", ["part", "segment", "patch", "audit"])
@pytest.mark.parametrize("length", [10**4, 10**8, 2**31 - 30, 2**33])
def test_a_value_that_claims_to_be_long_is_not_allocated(
    table: str, length: int, honest: dict[str, file.Change], tmp_path: Path
):
    path = make(tmp_path / "memory.rec", honest["reservoir"])
    page = root(path, table)
    # A leaf of the tree with one cell: lengths of the value and of the row, and a pointer to pages with the rest.
    kinds = [0, 44, 12 + 2 * length] if table in {"segment", "patch"} else [15, 44, 12 + 2 * length]
    record = b"".join(map(varint, kinds))
    record = varint(len(record) + 1) + record
    cell = (varint(len(record) + 17 + length) + varint(0) + record).ljust(500, b"x") + (5).to_bytes(4, "big")
    start = 1024 - len(cell)
    leaf = b"\x0d\0\0\0\1" + start.to_bytes(2, "big") + b"\0" + start.to_bytes(2, "big")
    data = bytearray(path.read_bytes())
    data[page] = leaf.ljust(start, b"\0") + cell
    path.write_bytes(data)
    refused(path)


@pytest.mark.parametrize("table", ["part", "segment", "patch", "audit"])
def test_rows_that_are_there_a_million_million_times(table: str, honest: dict[str, file.Change], tmp_path: Path):
    """Pages of pointers that all lead to the same page, which again has pointers to but one page, and so on."""
    path = make(tmp_path / "memory.rec", replace(honest["reservoir"], patch=b""))
    data = bytearray(path.read_bytes())
    page = root(path, table)
    leaf = bytes(data[page])
    for level in range(6):
        child = (len(data) // 1024 + 2).to_bytes(4, "big")
        cells = [child + varint(1 + number + 100 * level) for number in range(99)]
        starts = [1024 - sum(map(len, cells[: number + 1])) for number in range(99)]
        header = b"\x05\0\0" + len(cells).to_bytes(2, "big") + starts[-1].to_bytes(2, "big") + b"\0" + child
        pointers = b"".join(start.to_bytes(2, "big") for start in starts)
        data += (header + pointers).ljust(starts[-1], b"\0") + b"".join(reversed(cells))
    data += leaf
    data[page] = data[-7 * 1024 : -6 * 1024]
    data[28:32] = (len(data) // 1024).to_bytes(4, "big")
    path.write_bytes(data)
    refused(path)


def root(path: Path, table: str) -> slice:
    """Where the first page of a table is."""
    with closing(sqlite3.connect(path)) as connection:
        page = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).fetchone()[0]
    return slice(1024 * (page - 1), 1024 * page)


def varint(number: int) -> bytes:
    """As SQLite writes numbers: seven bits a byte, the highest first."""
    last, rest = number & 0x7F, number >> 7
    groups = [last]
    while rest:
        groups.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes(reversed(groups))


def test_a_file_of_gigabytes_without_content(honest: dict[str, file.Change], tmp_path: Path):
    path = make(tmp_path / "memory.rec", honest["reservoir"])
    with path.open("r+b") as long:
        long.truncate(5 << 30)  # takes no room on the disk
    with memory_limit(ROOM):
        assert len(rc.Memory.open(path)) > 0


@pytest.mark.parametrize("shape", [(1, 1000, 1000), (1, 999, 1001)])
def test_to_open_a_file_takes_little_more_than_what_it_holds(shape: tuple[int, int, int], tmp_path: Path):
    for codec in (rc.RawPixels(shape), rc.ResizedPixels(shape, size=shape[1:], bits=3)):
        path = tmp_path / f"{type(codec).__name__}.rec"
        rc.Memory(codec, capacity=3).commit(path)
        tracemalloc.start()
        rc.Memory.open(path)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 2.5 * path.stat().st_size


@pytest.mark.parametrize("shape", [(), (1,), (5, 5)])
def test_moments_of_another_shape_than_the_weights_are_refused(
    shape: tuple[int, ...], honest: dict[str, file.Change], tmp_path: Path
):
    """Adam does not look at shapes, and would write to memory that is not its own."""
    tensors = bytes_to_tensors(honest["learner"].parts["optimiser"])
    tensors["exp_avg.0"] = torch.zeros(shape)
    path = make(tmp_path / "memory.rec", honest["learner"], optimiser=tensors_to_bytes(tensors))
    assert "exp_avg.0 has shape" in refused(path, rc.Learner.load)


VALUES = [
    *(None, True, False, 0, 1, -1, 7, 2**31, 2**63, 2**64, -(2**63), 10**30, 0.5, -0.0, 1e308, math.nan, math.inf),
    *("", "x", "7", "ring", [], {}, [[]], [0], [1, 2], [None], {"held": 1}, "x" * 10_000),
]


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """All containers in a value, with each of their keys."""
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from places(value[key])


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")  # a layer of no units
@pytest.mark.parametrize("name", ["reservoir", "ring", "balanced", "reals", "none", "learned", "learner"])
def test_other_plain_values_are_refused_or_harmless(name: str, honest: dict[str, file.Change], tmp_path: Path):
    random, path, content = Random(name), tmp_path / "memory.rec", honest[name]
    for _ in range(rounds(60, 2000)):
        part = random.choice(["memory", "learner"]) if name == "learner" else "memory"
        state = state_of(content, part)
        for _ in range(random.choice([1, 1, 2])):
            container, key = random.choice([*places(state)])
            if random.random() < 0.15:
                del container[key]
            else:
                container[key] = random.choice(VALUES)
        make(path, content, **{part: state})
        try:
            with memory_limit(ROOM):
                opened = rc.Learner.load(path) if name == "learner" else rc.Memory.open(path)
        except MemoryFileError:
            continue
        memory = opened if isinstance(opened, rc.Memory) else opened.memory
        if memory is not None and len(memory):
            assert len(memory.sample(5)) == 5


def test_a_codec_of_ones_own_is_asked_for(honest: dict[str, file.Change], tmp_path: Path):
    state = state_of(honest["reservoir"]) | {"codec": {"class": "RawPixels", "arguments": None}}
    with pytest.raises(MemoryFileError, match="codec="):
        rc.Memory.open(make(tmp_path / "memory.rec", honest["reservoir"], memory=state))
