"""Everything that is wrong with a file, where opening it stops at the first thing."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

from recollect.memory.erasure import Erasure
from recollect.memory.file import (
    HEAD,
    SCHEMA,
    SQLITE_ERRORS,
    DamagedFileError,
    Home,
    MemoryFileError,
    checksum_of,
    connected,
    cut_short,
)
from recollect.memory.memory import Memory
from recollect.memory.saved import BROKEN, built

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from recollect.memory.file import Watch


class Examination:
    """Reads a file as far as it can be read. A file that is none of a memory is an error, as when it is opened.

    ``damage`` says what is wrong, a line each, and ``unchecked`` what could not be looked at though nothing is wrong.

    >>> import sqlite3, tempfile
    >>> from pathlib import Path
    >>> from recollect.codecs.pixels import RawPixels
    >>> memory = Memory(RawPixels((1, 8, 8)), capacity=50)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "memory.rec")
    ...     memory.commit(path)
    ...     whole = Examination(path).damage
    ...     with sqlite3.connect(path) as connection:
    ...         changed = connection.execute("UPDATE segment SET data = zeroblob(9)")
    ...     connection.close()
    ...     Examination(path).damage
    ['the checksum of segment 0 is wrong', 'its state cannot be read (9 bytes for segment 0: accepted are 3700)']
    >>> whole
    []
    """

    def __init__(self, path: Path, watch: Watch = lambda size: None) -> None:
        self.path, self._watch = path, watch
        self.damage: list[str] = []
        self.unchecked: list[str] = []
        self.parts: dict[str, bytes] = {}
        self.memory: Memory | None = None
        self.commits = 0
        self.rows = {"segment": 0, "patch": 0}  # how many could be read
        self._sums: dict[str, bytes] = {}
        self._sums_of_rows = {"segment": bytearray(), "patch": bytearray()}
        try:
            with connected(path) as (self._connection, self.size):
                self._left = self.size  # bytes that may still be read
                self._check_structure()
                self._read_parts()
                self._read_memory()
                self._check_whole()
        except DamagedFileError as error:
            self.damage.append(f"SQLite cannot open it ({error.__cause__})")
            self.size = path.stat().st_size
            if cut_short(path.resolve()):
                self.damage.append(f"it is cut short: {self.size:,} bytes are left")

    def _check_structure(self) -> None:
        """SQLite's own check of pages and rows, and the tables."""
        for (lines,) in self._query("PRAGMA integrity_check", "all pages"):
            self.damage += [f"SQLite finds: {line}" for line in lines.splitlines() if line not in {"ok", _TITLE}]
        schema = self._query("SELECT sql FROM sqlite_schema ORDER BY rowid", "the tables")
        if [statement for (statement,) in schema] != [*SCHEMA]:
            self.damage.append("its tables are not those of a memory")

    def _read_parts(self) -> None:
        for name, checksum, data in self._rows("part", "name, checksum, data", str, bytes, bytes):
            if name in self.parts:
                self.damage.append(f"there are two parts {name!r}")
            if name != HEAD and checksum != checksum_of(name, data):
                self.damage.append(f"the checksum of part {name!r} is wrong")
            self.parts[name], self._sums[name] = data, checksum

    def _read_memory(self) -> None:
        """The memory from what there is, whatever was found so far: its records may contradict its counts as well."""
        segments, patches = self._numbered("segment"), (data for _, data in self._numbered("patch"))
        if "memory" in self.parts:
            try:
                self.memory = built(Memory, self.parts, self.size, segments, patches, codec=None)
            except MemoryFileError as error:
                self.unchecked.append(f"its state and records ({error})")
            except BROKEN as error:
                self.damage.append(f"its state cannot be read ({error})")
        for _ in itertools.chain(segments, patches):  # those that were not asked for
            pass
        if "memory" not in self.parts and any(self.rows.values()):
            self.damage.append("it holds records without a memory")

    def _numbered(self, table: str) -> Iterator[tuple[int, bytes]]:
        numbers = self._numbers(table)
        for before, number in itertools.pairwise([-1, *numbers]):
            if number > before + 1:
                missing = f"{before + 1} to {number - 1}" if number > before + 2 else f"{before + 1}"
                self.damage.append(f"there is no {table} {missing}")
        for number in numbers:
            for checksum, data in self._row(table, number, "checksum, data", bytes, bytes):
                if checksum != checksum_of(f"{table} {number}", data):
                    self.damage.append(f"the checksum of {table} {number} is wrong")
                self.rows[table] += 1
                self._sums_of_rows[table] += checksum
                yield number, data

    def _check_whole(self) -> None:
        """The checksum of all checksums: nothing was added, taken away or put back from an earlier commit."""
        audit = [Erasure(*line) for line in self._rows("audit", "time, items, rule", str, int, str)]
        try:
            head = json.loads(self.parts.pop(HEAD))
            self.commits, of_whole = head["commits"], self._sums.pop(HEAD)
            home = Home(
                path=self.path,
                identity=head["identity"],
                commits=self.commits,
                parts=self._sums,
                segments=bytes(self._sums_of_rows["segment"]),
                patches=bytes(self._sums_of_rows["patch"]),
                audit=audit,
            )
        except (KeyError, RecursionError, TypeError, ValueError):
            self.damage.append("its head cannot be read or found")
            return
        if home.checksum != of_whole:
            self.damage.append("its parts, records and audit are not those of one commit")

    def _rows(self, table: str, columns: str, *kinds: type) -> Iterator[tuple[Any, ...]]:
        for number in self._numbers(table):
            yield from self._row(table, number, columns, *kinds)

    def _numbers(self, table: str) -> list[int]:
        return [number for (number,) in self._query(f"SELECT rowid FROM {table} ORDER BY rowid", f"the table {table}")]

    def _row(self, table: str, number: int, columns: str, *kinds: type) -> Iterator[tuple[Any, ...]]:
        """A row by itself: one that cannot be read does not hide those behind it."""
        for row in self._query(f"SELECT {columns} FROM {table} WHERE rowid = {number}", f"{table} {number}"):
            size = sum(8 if isinstance(value, int | float) else len(value or ()) for value in row)
            self._left -= size
            self._watch(size)
            if self._left < 0:
                self.damage.append(f"{table} {number} is more than the file is long with what was read before")
            elif [*map(type, row)] != [*kinds]:
                self.damage.append(f"{table} {number} has values of types that it should not have")
            else:
                yield row

    def _query(self, statement: str, what: str) -> Iterator[tuple[Any, ...]]:
        try:
            # No more rows than the file has bytes: pages that are damaged may lead in a circle.
            yield from itertools.islice(self._connection.execute(statement), self.size)
        except SQLITE_ERRORS as error:
            line = f"SQLite cannot read {what} ({str(error) or 'too little memory, it says'})"
            self.damage += [line] if line not in self.damage else []


_TITLE = "*** in database main ***"  # what the lines of an integrity check stand under
