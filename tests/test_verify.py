"""What `recollect verify` finds wrong with a file, and what all commands say of one that is none of a memory."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import torch

import recollect as rc
from commands import call


def test_verify_finds_nothing_wrong_with_what_was_committed(memory: rc.Memory, path: Path):
    printed, _ = call("verify", path)
    assert (
        printed
        == f"ok: {path.stat().st_size:,} bytes; commit 2; the parts memory; 40 items in 3 segments and 1 patch\n"
    )
    found = json.loads(call("verify", path, "--json")[0])
    assert (found["ok"], found["damage"]) == (True, [])
    assert (found["segments"], found["patches"], found["items"]) == (3, 1, 40)


def test_verify_looks_at_the_learner_without_touching_the_random_state(learner: rc.Replay, path: Path):
    before = torch.get_rng_state()
    assert "the parts average, codec, learner, memory, model, optimiser, state; 12 items" in call("verify", path)[0]
    assert torch.equal(torch.get_rng_state(), before)


def run(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def sealed(path: Path, **parts: Callable[[Any], object]) -> None:
    """Change parts in JSON, and make all checksums right again as docs/format.md describes them."""

    def checksum(name: str, data: bytes) -> bytes:
        return hashlib.blake2b(name.encode() + b"\0" + data, digest_size=16).digest()

    with closing(sqlite3.connect(path)) as connection:
        for name, change in parts.items():
            state = json.loads(connection.execute("SELECT data FROM part WHERE name = ?", (name,)).fetchone()[0])
            change(state)
            data = json.dumps(state).encode()
            connection.execute(
                "UPDATE part SET data = ?, checksum = ? WHERE name = ?", (data, checksum(name, data), name)
            )
        sums = []
        for table in ("segment", "patch"):
            rows = connection.execute(f"SELECT number, data FROM {table} ORDER BY number").fetchall()
            lines = [checksum(f"{table} {number}", data) for number, data in rows]
            connection.executemany(f"UPDATE {table} SET checksum = ?2 WHERE number = ?1", enumerate(lines))
            sums.append(b"".join(lines))
        head = connection.execute("SELECT data FROM part WHERE name = 'head'").fetchone()[0]
        named = connection.execute("SELECT name, checksum FROM part WHERE name != 'head' ORDER BY name").fetchall()
        whole = b"\n".join([head, *(name.encode() + line for name, line in named), *sums])
        connection.execute("UPDATE part SET checksum = ? WHERE name = 'head'", (checksum("head", whole),))
        connection.commit()


def put(path: Path, table: str, offset: int, data: bytes) -> None:
    """Change the first page of a table."""
    with closing(sqlite3.connect(path)) as connection:
        query = "SELECT rootpage FROM sqlite_schema WHERE name = ?"
        page = connection.execute(query, (table,)).fetchone()[0]
    with path.open("r+b") as file:
        file.seek(1024 * (page - 1) + offset)
        file.write(data)


DAMAGE: dict[str, tuple[Callable[[Path], object], list[str]]] = {
    "each segment": (
        lambda path: run(path, "UPDATE segment SET data = randomblob(length(data))"),
        [f"the checksum of segment {number} is wrong" for number in range(3)],
    ),
    "segments that changed places": (
        lambda path: run(path, *(f"UPDATE segment SET number = {n}" for n in ("-1 - number", "3 + number"))),
        ["the checksum of segment 0 is wrong", "the checksum of segment 2 is wrong"],
    ),
    "a part": (
        lambda path: run(path, "UPDATE part SET data = CAST('{}' AS BLOB) WHERE name = 'memory'"),
        ["the checksum of part 'memory' is wrong", "its state cannot be read ("],
    ),
    "a part twice": (
        lambda path: run(path, "INSERT INTO part SELECT * FROM part WHERE name = 'memory'"),
        ["there are two parts 'memory'"],
    ),
    "no memory": (
        lambda path: run(path, "DELETE FROM part WHERE name = 'memory'"),
        ["it holds neither a memory nor a learner", "it holds records without a memory", "are not those of one commit"],
    ),
    "no head": (lambda path: run(path, "DELETE FROM part WHERE name = 'head'"), ["its head cannot be read or found"]),
    "the first segment gone": (
        lambda path: run(path, "DELETE FROM segment WHERE number = 0"),
        ["there is no segment 0", "it holds 2 segments, and not 3", "are not those of one commit"],
    ),
    "the last segment gone": (
        lambda path: run(path, "DELETE FROM segment WHERE number = 2"),
        ["it holds 2 segments, and not 3", "are not those of one commit"],
    ),
    "a patch": (
        lambda path: run(path, "UPDATE patch SET data = randomblob(length(data))"),
        ["the checksum of patch 0 is wrong", "its state cannot be read (a patch with records that do not fit)"],
    ),
    "a patch too far": (
        lambda path: run(path, "UPDATE patch SET number = 7"),
        ["there is no patch 0 to 6", "the checksum of patch 7 is wrong"],
    ),
    "a patch gone": (
        lambda path: run(path, "DELETE FROM patch"),
        ["its parts, records and audit are not those of one commit"],
    ),
    "a line of the audit": (
        lambda path: run(path, "INSERT INTO audit VALUES ('now', 1, 'label=3')"),
        ["its parts, records and audit are not those of one commit"],
    ),
    "other types": (
        lambda path: run(path, "UPDATE segment SET data = 'text' WHERE number = 1"),
        ["segment 1 has values of types that it should not have"],
    ),
    "the schema": (
        lambda path: run(path, "CREATE TABLE more (x)"),
        ["its tables are not those of a memory"],
    ),
    "a table gone": (
        lambda path: run(path, "DROP TABLE segment"),
        ["its tables are not those of a memory", "SQLite cannot read the table segment (no such table: segment)"],
    ),
    "a page": (
        lambda path: put(path, table="segment", offset=3, data=b"\xff"),  # many cells in a page that has room for few
        ["SQLite cannot read the table segment (database disk image is malformed)"],
    ),
    "cut short": (
        lambda path: path.write_bytes(path.read_bytes()[:-1024]),
        ["SQLite cannot open it (", "it is cut short: "],
    ),
    "a state that cannot be": (
        lambda path: sealed(path, memory=lambda state: state.pop("capacity")),
        ["its state cannot be read ('capacity')"],
    ),
    "records against counts": (
        lambda path: sealed(path, memory=lambda state: state.update(seen=20, tasks=3)),
        ["its state cannot be read (tasks of 3 and above, ids of 20 and above)"],
    ),
    "an id twice": (
        lambda path: (run(path, "UPDATE segment SET data = zeroblob(length(data))"), sealed(path)),
        ["its state cannot be read (an id twice)"],
    ),
    "all at once": (
        lambda path: run(
            path,
            "CREATE TABLE more (x)",
            "DELETE FROM segment WHERE number = 0",
            "UPDATE segment SET checksum = zeroblob(16)",
            "UPDATE part SET checksum = zeroblob(16)",
        ),
        [
            "its tables are not those of a memory",
            "the checksum of part 'memory' is wrong",
            "there is no segment 0",
            "the checksum of segment 1 is wrong",
            "are not those of one commit",
        ],
    ),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_verify_reports_all_damage(kind: str, memory: rc.Memory, path: Path):
    damage, messages = DAMAGE[kind]
    damage(path)
    printed, _ = call("verify", path, code=1)
    assert printed.startswith(f"{path} is damaged:\n")
    assert "Go on from a copy" in printed
    found = json.loads(call("verify", path, "--json", code=1)[0])
    assert not found["ok"]
    for message in messages:
        assert message in printed
        assert any(message in line for line in found["damage"])
    said = call("info", path, code=1)[1]
    assert "is damaged: " in said
    assert "recollect verify" in said


def test_verify_reports_what_sqlite_finds_though_all_can_be_read(memory: rc.Memory, path: Path):
    with path.open("r+b") as file:
        file.seek(36)  # how many pages are free
        file.write(b"\0\0\0\x63")
    assert len(rc.Memory.open(path)) == 40
    assert "SQLite finds: " in call("verify", path, code=1)[0]


def test_verify_reports_a_learner_that_cannot_be_read(learner: rc.Replay, path: Path):
    whole = path.read_bytes()
    sealed(path, learner=lambda state: state["learner"]["arguments"].update(model=1))
    assert "its learner cannot be read (Replay cannot be built from a file)" in call("verify", path, code=1)[0]
    path.write_bytes(whole)
    run(path, "DELETE FROM part WHERE name IN ('model', 'codec')")
    printed = call("verify", path, code=1)[0]
    for words in (
        "there is no part 'model'",
        "weights that are not those of a DiscreteAutoencoder",
        "not those of one commit",
    ):
        assert words in printed


def test_verify_names_a_learner_that_it_does_not_know(learner: rc.Replay, path: Path):
    sealed(path, learner=lambda state: state["learner"].update({"class": "Popen"}))
    printed, _ = call("verify", path)
    assert (
        "Not checked: its learner (the file holds a Popen, which is not known here, or takes other arguments" in printed
    )


def other_database(path: Path) -> None:
    run(path, "CREATE TABLE t (x)")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: None, "does not exist"),
        (lambda path: path.mkdir(), "is a directory"),
        (lambda path: path.touch(), "is empty: nothing was committed to it"),
        (lambda path: path.write_text("a list of things to buy"), "is no file of a memory"),
        (other_database, "is a database of another kind"),
        (lambda path: run(path, "PRAGMA application_id = 1919247215", "PRAGMA user_version = 9"), "has format 9"),
    ],
)
@pytest.mark.parametrize("command", [("info",), ("verify",), ("show",), ("forget", "--label", "1", "--yes")])
def test_what_is_no_memory_is_bad_input(
    command: tuple[str, ...], make: Callable[[Path], object], message: str, path: Path
):
    make(path)
    assert message in call(*command, path, code=2)[1]
