"""One writer and any number of readers: nobody sees half a commit, and nobody's work is lost."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path
from random import Random

import pytest

import recollect as rc
from recollect.memory import file
from recollect.memory.examination import Examination
from recollect.memory.file import MemoryFileError
from torture import fingerprint, raw, write


def test_a_second_writer_is_refused_and_changes_nothing(tmp_path: Path):
    path, random = tmp_path / "memory.rec", Random(0)
    raw().commit(path)
    first, second = rc.Memory.open(path), rc.Memory.open(path)
    write(first, 5, random)
    write(second, 7, random)
    first.commit(path)
    before = fingerprint(second)
    for _ in range(2):
        with pytest.raises(MemoryFileError, match=r"was changed by another writer after commit 1: .* open it again"):
            second.commit(path)
    assert fingerprint(second) == before
    assert fingerprint(rc.Memory.open(path)) == fingerprint(first)
    write(first, 5, random)
    first.commit(path)
    second.commit(tmp_path / "another.rec")
    assert fingerprint(rc.Memory.open(tmp_path / "another.rec")) == before
    assert fingerprint(rc.Memory.open(path)) == fingerprint(first)


def test_a_file_of_another_memory_is_not_written_over(tmp_path: Path):
    path = tmp_path / "memory.rec"
    raw().commit(path)
    before = path.read_bytes()
    for _ in range(2):
        with pytest.raises(MemoryFileError, match=r"memory.rec exists: accepted is a new file, or the one this memory"):
            raw(seed=1).commit(path)
    assert path.read_bytes() == before


def test_while_another_process_writes_a_commit_waits_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "memory.rec"
    memory = raw()
    memory.commit(path)
    write(memory, 5, Random(0))
    before = fingerprint(memory)
    monkeypatch.setattr(file, "WAIT", 0.1)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert len(rc.Memory.open(path)) == 0  # what is not committed yet disturbs no reader
        with pytest.raises(MemoryFileError, match="is in use by another process: a file has one writer"):
            memory.commit(path)
        other.execute("COMMIT")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(MemoryFileError, match="is in use by another process"):
            rc.Memory.open(path)
    assert fingerprint(memory) == before
    memory.commit(path)
    assert fingerprint(rc.Memory.open(path)) == before


def test_reading_a_file_does_not_take_the_lock_from_a_commit_in_the_same_process(tmp_path: Path):
    """A process loses its locks on a file as soon as it closes it once, even if it opened it twice."""
    path = tmp_path / "memory.rec"
    raw().commit(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        rc.Memory.open(path)
        assert "database is locked" in another_writer(path)
        os.truncate(path, 4096)
        assert "it is cut short: 4,096 bytes are left" in Examination(path).damage
        assert "database is locked" in another_writer(path)


def another_writer(path: Path) -> str:
    """What a process says that wants to write, even to a file that is cut short."""
    statements = ("PRAGMA writable_schema = ON", "BEGIN IMMEDIATE")
    script = f"import sqlite3; c = sqlite3.connect({str(path)!r}, timeout=0); [c.execute(s) for s in {statements}]"
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False).stderr


def test_a_file_that_grows_while_it_is_opened_is_not_taken_for_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Another writer commits as soon as the reader has asked how long the file is, unless the reader has its lock."""
    path, stat = tmp_path / "memory.rec", Path.stat
    memory = raw()
    memory.commit(path)
    states, growing = [fingerprint(memory)], []

    def late(self: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        result = stat(self, follow_symlinks=follow_symlinks)
        if self == path and not growing:
            growing.append("now")
            for _ in range(1000):
                memory.forget(label=0)  # each adds a line to the audit
            with suppress(MemoryFileError):
                memory.commit(path)
                states.append(fingerprint(memory))
            growing.clear()
        return result

    monkeypatch.setattr(file, "WAIT", 0.1)
    monkeypatch.setattr(Path, "stat", late)
    assert fingerprint(rc.Memory.open(path)) in states
