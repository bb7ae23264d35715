"""The durable file: parts and segments with checksums in one SQLite database, changed in one transaction or not at all.

docs/format.md describes it. What is in the file is not trusted: nothing in it is run, every byte that is used has a
checksum, and no more is read than the file is long.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import sqlite3
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NoReturn

from recollect.memory.erasure import Erasure
from recollect.memory.segments import PAGE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    Watch = Callable[[int], object]  # is told how many bytes were read

# The format: 2 where a memory keeps targets that are no classes, 3 where its codes are entropy-coded, 4 where its ids
# are as short as the examples of the stream allow, whatever else it is.
CLASSES, TARGETS, ENTROPY, EXAMPLES = FORMATS = 1, 2, 3, 4
APPLICATION = 0x7265636F  # "reco", which `file` and SQLite can tell the kind of database by
WAIT = 10.0  # seconds for another process to end its transaction
SCHEMA = (
    "CREATE TABLE part (name TEXT NOT NULL, checksum BLOB NOT NULL, data BLOB NOT NULL)",
    "CREATE TABLE segment (number INTEGER PRIMARY KEY, checksum BLOB NOT NULL, data BLOB NOT NULL)",
    "CREATE TABLE patch (number INTEGER PRIMARY KEY, checksum BLOB NOT NULL, data BLOB NOT NULL)",
    "CREATE TABLE audit (time TEXT NOT NULL, items INTEGER NOT NULL, rule TEXT NOT NULL)",
)
SUM = 16  # bytes of a checksum
LONGEST = 2**31 - 1  # bytes that SQLite can be told to allow for a value
MOST_OF_A_PART = 999_000_000  # bytes: by default SQLite takes a row of 10^9
# A message may quote a damaged file, in bytes that are no text; and some damage is taken for a lack of memory.
SQLITE_ERRORS = (sqlite3.Error, UnicodeDecodeError, MemoryError)
HEAD = "head"  # the part whose checksum is that of the whole file


class MemoryFileError(Exception):
    """A file cannot be read or written; the message says why."""


class UnavailableFileError(MemoryFileError):
    """A file is in use, or the system does not let it be read or written; what it holds may be as it was."""


class DamagedFileError(MemoryFileError):
    """What a file holds is not what was committed to it."""


@dataclass(frozen=True, kw_only=True)
class Home:
    """A file as its writer knows it: the state it committed, by checksums. With no commits, one that is to be made."""

    path: Path
    identity: str
    commits: int = 0
    parts: Mapping[str, bytes] = field(default_factory=dict)
    segments: bytes = b""  # their checksums, one behind the other
    patches: bytes = b""
    patch_bytes: int = 0
    audit: Sequence[Erasure] = ()
    tried: list[Home] = field(default_factory=list)  # later states, of which it is not known if the file has them

    @property
    def head(self) -> bytes:
        """What is kept of the state as a whole."""
        return json.dumps({"identity": self.identity, "commits": self.commits}).encode()

    @property
    def checksum(self) -> bytes:
        """Of all checksums together, so that no part or segment can be that of another commit."""
        named = (name.encode() + checksum for name, checksum in sorted(self.parts.items()))
        lines = (json.dumps(vars(line)).encode() for line in self.audit)
        return checksum_of(HEAD, b"\n".join([self.head, *named, self.segments, self.patches, *lines]))


@dataclass(frozen=True, kw_only=True)
class Change:
    """What is to be written.

    Parts, of which those that are not given stay as they are, since someone else keeps them in the file. Of the records
    either a patch, empty if none changed, or all segments that changed since they were last written, which then take
    the place of all patches.
    """

    parts: Mapping[str, bytes]
    segments: Mapping[int, bytes] = field(default_factory=dict)
    patch: bytes | None = None
    audit: Sequence[Erasure] = ()
    format: int = CLASSES  # of a new file; a memory keeps its targets, and a file its format

    def after(self, before: Home) -> Home:
        """The state that it leads to."""
        segments, patches, patch_bytes = bytearray(before.segments), b"", 0
        for number, data in sorted(self.segments.items()):
            segments[SUM * number : SUM * (number + 1)] = checksum_of(f"segment {number}", data)
        if self.patch is not None:
            patches, patch_bytes = before.patches, before.patch_bytes + len(self.patch)
        if self.patch:
            patches += checksum_of(f"patch {len(before.patches) // SUM}", self.patch)
        return replace(
            before,
            commits=before.commits + 1,
            parts={**before.parts, **{name: checksum_of(name, data) for name, data in self.parts.items()}},
            segments=bytes(segments),
            patches=patches,
            patch_bytes=patch_bytes,
            audit=[*self.audit],
            tried=[],
        )


def possible(home: Home) -> Sequence[Home]:
    """The states that the file may have: a commit that failed or was interrupted may have come to its end."""
    if not home.tried:
        return [home]
    try:
        with closing(_connect(home.path, "ro")) as connection:
            return [_unchanged(connection, home)]
    except (*SQLITE_ERRORS, MemoryFileError):  # what hinders is said when it is written to
        return [home, *home.tried]


def home_at(path: Path, *known: Home | None) -> Home:
    """The one of the known homes that is at a path, or one for a new file there."""
    path = path.resolve()
    here = (home for home in known if home is not None and home.path == path)
    return next(here, Home(path=path, identity=secrets.token_hex(8)))


def commit(home: Home, change: Change) -> Home:
    """Make a state durable, and return what is to be given as ``home`` when the next one is committed.

    A first change has all segments, and the file must be new. Who keeps the home that it was given knows the file
    again if the commit was interrupted, and may have come to its end.
    """
    for name, data in change.parts.items():
        if len(data) > MOST_OF_A_PART:
            raise MemoryFileError(f"{home.path}: {name} has {len(data):,} bytes: accepted are up to {MOST_OF_A_PART:,}")
    try:
        with closing(_connect(home.path, "rw" if home.commits else "rwc")) as connection:
            return _write(connection, home, change)
    except SQLITE_ERRORS as error:
        _explain(error, home.path)


def _write(connection: sqlite3.Connection, home: Home, change: Change) -> Home:
    connection.execute(f"PRAGMA page_size = {PAGE}")
    connection.execute("PRAGMA journal_mode = DELETE")
    # More than FULL: the folder is synced too when the journal goes, without which a power cut could bring it back.
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("PRAGMA secure_delete = ON")  # zeros over all that is replaced, so that nothing lingers
    connection.execute("BEGIN IMMEDIATE")
    try:
        before = home
        if home.commits or connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
            before = _unchanged(connection, home)
        else:
            for statement in SCHEMA:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {change.format}")
        after = change.after(before)
        # An interrupt that comes while SQLite commits is raised when it has committed: the state is there after all.
        home.tried[:] = [before, after]
        _write_parts(connection, before, after, change)
        segments = ((n, after.segments[SUM * n : SUM * (n + 1)], data) for n, data in change.segments.items())
        connection.executemany("REPLACE INTO segment VALUES (?, ?, ?)", segments)
        if change.patch is None:
            connection.execute("DELETE FROM patch")
        elif change.patch:
            row = (len(before.patches) // SUM, after.patches[-SUM:], change.patch)
            connection.execute("INSERT INTO patch VALUES (?, ?, ?)", row)
        lines = [(line.time, line.items, line.rule) for line in after.audit[len(before.audit) :]]
        connection.executemany("INSERT INTO audit VALUES (?, ?, ?)", lines)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return after


def _write_parts(connection: sqlite3.Connection, before: Home, after: Home, change: Change) -> None:
    changed = [name for name, checksum in after.parts.items() if before.parts.get(name) != checksum]
    connection.executemany("DELETE FROM part WHERE name = ?", [(name,) for name in (HEAD, *changed)])
    rows = [(name, after.parts[name], change.parts[name]) for name in changed]
    connection.executemany("INSERT INTO part VALUES (?, ?, ?)", [*rows, (HEAD, after.checksum, after.head)])


def _unchanged(connection: sqlite3.Connection, home: Home) -> Home:
    """The state of the file, which must be one that this writer left: another writer's work must not be lost."""
    if home.commits or home.tried:
        row = connection.execute("SELECT checksum FROM part WHERE name = ?", (HEAD,)).fetchone()
        for left in (home, *home.tried):
            if row == (left.checksum,):
                return left
    if not home.commits:
        raise MemoryFileError(f"{home.path} exists: accepted is a new file, or the one this memory was opened from")
    raise MemoryFileError(
        f"{home.path} was changed by another writer after commit {home.commits}: a file has one writer; open it again "
        f"to go on from its state, or commit to another file"
    )


class Reader:
    """A file that is open for reading, in the state of one commit."""

    def __init__(self, path: Path, connection: sqlite3.Connection, length: int, watch: Watch) -> None:
        self.path, self._connection, self._watch = path, connection, watch
        self.length = self._left = length  # bytes, and how many of them may still be read
        self._check_schema()
        self.parts: dict[str, bytes] = {}
        self._sums: dict[str, bytes] = {}
        self._segments = bytearray()
        for name, checksum, data in self._rows("SELECT name, checksum, data FROM part", str, bytes, bytes):
            if name in self._sums:
                self.damaged(f"there are two parts {name!r}")
            self.parts[name], self._sums[name] = data, checksum
            if name != HEAD and checksum != checksum_of(name, data):
                self.damaged(f"the checksum of part {name!r} is wrong")
        audit = self._rows("SELECT time, items, rule FROM audit ORDER BY rowid", str, int, str)
        self.audit = [Erasure(*line) for line in audit]

    def segments(self) -> Iterator[tuple[int, bytes]]:
        """The segments in order."""
        for number, data, checksum in self._numbered("segment"):
            self._segments += checksum
            yield number, data

    def patches(self) -> Iterator[bytes]:
        """The patches in order, after the segments. Only when the last was given is it sure that the state is whole."""
        checksums, size = bytearray(), 0
        for _, data, checksum in self._numbered("patch"):
            checksums += checksum
            size += len(data)
            yield data
        self.home = self._home(bytes(checksums), size)

    def holds_memory(self) -> bool:
        """Whether there is a memory. Where there is none all is read now, and there may be no records either."""
        if "memory" in self.parts:
            return True
        if [*self.segments(), *self.patches()]:
            self.damaged("it holds records without a memory")
        return False

    def _numbered(self, table: str) -> Iterator[tuple[int, bytes, bytes]]:
        rows = self._rows(f"SELECT number, checksum, data FROM {table} ORDER BY number", int, bytes, bytes)
        for expected, (number, checksum, data) in enumerate(rows):
            if number != expected:
                self.damaged(f"there is no {table} {expected}")
            if checksum != checksum_of(f"{table} {number}", data):
                self.damaged(f"the checksum of {table} {number} is wrong")
            yield number, data, checksum

    def _home(self, patches: bytes, patch_bytes: int) -> Home:
        try:
            head = json.loads(self.parts.pop(HEAD))
            home = Home(
                path=self.path,
                identity=head["identity"],
                commits=head["commits"],
                parts={name: checksum for name, checksum in self._sums.items() if name != HEAD},
                segments=bytes(self._segments),
                patches=patches,
                patch_bytes=patch_bytes,
                audit=self.audit,
            )
        except (KeyError, RecursionError, TypeError, ValueError):
            self.damaged("its head cannot be read")
        if home.checksum != self._sums[HEAD]:
            self.damaged("its parts are not those of one commit")
        return home

    def _check_schema(self) -> None:
        found = [statement for (statement,) in self._rows("SELECT sql FROM sqlite_schema ORDER BY rowid", str)]
        if found != [*SCHEMA]:
            self.damaged("its tables are not those of a memory")

    def _rows(self, query: str, *kinds: type) -> Iterator[tuple[Any, ...]]:
        """Rows of values of these kinds, as long as there are no more of them than the file has bytes."""
        for row in self._connection.execute(query):
            if [*map(type, row)] != [*kinds]:
                self.damaged(f"a row has values of the types {[kind.__name__ for kind in map(type, row)]}")
            size = sum(8 if isinstance(value, int) else len(value) for value in row)
            self._left -= size
            if self._left < 0:
                self.damaged("it holds more than it is long")
            self._watch(size)
            yield row

    def damaged(self, what: str) -> NoReturn:
        """Report what is wrong with the file."""
        raise DamagedFileError(f"{self.path} is damaged: {what}")


@contextmanager
def reading(path: Path, watch: Watch = lambda size: None) -> Iterator[Reader]:
    """Read the last state that was committed to a file, while others may read it too."""
    with connected(path) as (connection, length):
        yield Reader(path.resolve(), connection, length, watch)


@contextmanager
def connected(path: Path) -> Iterator[tuple[sqlite3.Connection, int]]:
    """A connection that sees the file of a memory in the state of one commit and trusts nothing in it; its length."""
    path = path.resolve(strict=True)
    try:
        with closing(_connect(path, "rw" if os.access(path, os.W_OK) else "ro")) as connection:
            connection.execute("PRAGMA cell_size_check = ON")
            connection.execute("BEGIN")
            # The first look takes the lock and undoes what a killed writer left: now the length is that of a state.
            connection.execute("PRAGMA schema_version")
            length = path.stat().st_size
            if not length:
                raise MemoryFileError(f"{path} is empty: nothing was committed to it")
            # A length that damage made up must not be allocated.
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(max(length, PAGE), LONGEST))
            _check_kind(connection, path)
            yield connection, length
    except SQLITE_ERRORS as error:
        _explain(error, path)


def cut_short(path: Path) -> bool:
    """Whether a file that SQLite does not open is one with fewer pages than it should have.

    For want of pages alone SQLite opens it all the same, if its tables may be repaired. To look for ourselves how many
    there should be would let go of all locks that this process has on the file, as soon as it is closed.
    """
    try:
        with closing(_connect(path, "ro")) as connection:
            connection.execute("PRAGMA writable_schema = ON")
            connection.execute("PRAGMA schema_version")
    except SQLITE_ERRORS:
        return False
    return True


def _check_kind(connection: sqlite3.Connection, path: Path) -> None:
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
        raise MemoryFileError(f"{path} is a database of another kind: accepted is a file of a memory")
    if (version := connection.execute("PRAGMA user_version").fetchone()[0]) not in FORMATS:
        raise MemoryFileError(f"{path} has format {version}: accepted are {', '.join(map(str, FORMATS))}")


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.as_uri()}?mode={mode}", uri=True, timeout=WAIT, isolation_level=None)
    connection.execute("PRAGMA trusted_schema = OFF")  # a schema from elsewhere may not call functions
    return connection


def checksum_of(name: str, data: bytes) -> bytes:
    """Of the name too, so that two parts cannot change places."""
    digest = hashlib.blake2b(name.encode() + b"\0", digest_size=SUM)
    digest.update(data)
    return digest.digest()


def _explain(error: Exception, path: Path) -> NoReturn:
    """Say what SQLite's error means for a file."""
    if isinstance(error, MemoryError):
        raise MemoryFileError(f"{path} cannot be read: it is damaged, or there is too little memory") from error
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    match code:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            raise UnavailableFileError(f"{path} is in use by another process: a file has one writer") from error
        case sqlite3.SQLITE_FULL | sqlite3.SQLITE_IOERR | sqlite3.SQLITE_INTERRUPT:
            raise UnavailableFileError(f"{path}: {error}; the file holds the last commit that succeeded") from error
        case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
            raise UnavailableFileError(f"{path} cannot be opened or written ({_hindrance(path) or error})") from error
        case sqlite3.SQLITE_NOTADB:
            raise DamagedFileError(f"{path} is damaged, or never was a file of a memory: {error}") from error
        case _:
            raise DamagedFileError(f"{path} is damaged: {error}") from error


def _hindrance(path: Path) -> str:
    if path.is_dir():
        return "it is a folder"
    if not path.parent.is_dir():
        return f"there is no folder {path.parent}"
    return "" if path.exists() else "the file that was committed to is not there any more: commit to another one"
