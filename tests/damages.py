"""Ways in which a file of a memory can be damaged, by its bytes or by its rows; an earlier state of it is at hand."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from typing import Any

PAGE = 1024
COLUMNS = {
    "part": ("name", "checksum", "data"),
    "segment": ("number", "checksum", "data"),
    "patch": ("number", "checksum", "data"),
    "audit": ("time", "items", "rule"),
}


class Pages:
    """The file as bytes, to be damaged in place."""

    def __init__(self, path: Path, earlier: Path, random: Random) -> None:
        self.data, self.before, self.random = bytearray(path.read_bytes()), earlier.read_bytes(), random

    def flipped_bits(self) -> None:
        for _ in range(self.random.choice([1, 1, 2, 30])):
            self.data[self.random.randrange(len(self.data))] ^= 1 << self.random.randrange(8)

    def flipped_bits_of_a_header(self) -> None:
        """Where the file starts, or a page, more depends on a bit."""
        page = self.random.choice([0, self.random.randrange(len(self.data) // PAGE)])
        place = PAGE * page + self.random.randrange(24 if page else 120)
        self.data[place] ^= 1 << self.random.randrange(8)

    def overwritten(self) -> None:
        start, length = self.random.randrange(len(self.data) - PAGE), self.random.choice([4, 100, PAGE])
        new = self.random.choice([bytes(length), b"\xff" * length, self.random.randbytes(length)])
        self.data[start : start + length] = new

    def cut_off(self) -> None:
        place = self.random.randrange(len(self.data))
        del self.data[self.random.choice([place, place // PAGE * PAGE]) :]

    def longer(self) -> None:
        self.data += self.random.choice([b"\0", bytes(PAGE), self.random.randbytes(3000)])

    def swapped_pages(self) -> None:
        one, other = (slice(PAGE * n, PAGE * (n + 1)) for n in self.random.sample(range(len(self.data) // PAGE), 2))
        self.data[one], self.data[other] = self.data[other], self.data[one]

    def page_of_an_earlier_commit(self) -> None:
        """As if the disk had lost a write."""
        start = PAGE * self.random.randrange(min(len(self.data), len(self.before)) // PAGE)
        self.data[start : start + PAGE] = self.before[start : start + PAGE]


class Rows:
    """The file as a database, to be damaged by statements."""

    def __init__(self, path: Path, earlier: Path, random: Random) -> None:
        self.path, self.earlier, self.random = path, earlier, random

    def run(self, statement: str, *values: object, earlier: bool = False) -> list[Any]:
        with closing(sqlite3.connect(self.earlier if earlier else self.path)) as connection:
            connection.execute("PRAGMA synchronous = OFF")
            rows = connection.execute(statement, values).fetchall()
            connection.commit()
        return rows

    def some(self, *tables: str, earlier: bool = False) -> tuple[str, Any]:
        """A table, and the row id of one of its rows."""
        filled = {name: self.run(f"SELECT rowid FROM {name}", earlier=earlier) for name in tables}
        table = self.random.choice([name for name, rows in filled.items() if rows])
        return table, self.random.choice(filled[table])[0]

    def swapped(self) -> None:
        """Two rows have each other's data, checksum or both."""
        several = [table for table in COLUMNS if self.run(f"SELECT count(*) FROM {table}")[0][0] > 1]
        table = self.random.choice([table for table in several if table != "audit"])
        columns = self.random.choice([("data",), ("checksum",), ("checksum", "data")])
        one, other = self.random.sample(self.run(f"SELECT rowid, {', '.join(columns)} FROM {table}"), 2)
        for (row, *_), (_, *values) in ((one, other), (other, one)):
            self.run(f"UPDATE {table} SET {', '.join(f'{c} = ?' for c in columns)} WHERE rowid = ?", *values, row)

    def of_an_earlier_commit(self) -> None:
        """With the checksum that it had."""
        table, row = self.some("part", "segment", "patch", earlier=True)
        key = COLUMNS[table][0]
        found = self.run(f"SELECT checksum, data, {key} FROM {table} WHERE rowid = ?", row, earlier=True)
        self.run(f"UPDATE {table} SET checksum = ?, data = ? WHERE {key} = ?", *found[0])

    def deleted(self) -> None:
        table, row = self.some(*COLUMNS)
        self.run(f"DELETE FROM {table} WHERE rowid = ?", row)

    def doubled(self) -> None:
        table, row = self.some(*COLUMNS)
        first, *others = COLUMNS[table]
        first = self.random.choice(["-1", "number + 1", "number + 99"]) if first == "number" else first
        columns = ", ".join([first, *others])
        self.run(f"INSERT OR IGNORE INTO {table} SELECT {columns} FROM {table} WHERE rowid = ?", row)

    def another_value(self) -> None:
        """Of another type, or close to what it was."""
        table, row = self.some(*COLUMNS)
        column = self.random.choice(COLUMNS[table])
        close = [f"{column} || 'x'", f"substr({column}, 2)", f"cast({column} AS TEXT)", f"-{column}"]
        value = self.random.choice(["'x'", "1", "1.5", "x'00'", "2 << 60", "''", "zeroblob(3000000)", *close])
        with suppress(sqlite3.IntegrityError):  # a number that is none
            self.run(f"UPDATE OR IGNORE {table} SET {column} = {value} WHERE rowid = ?", row)


DAMAGES: list[Callable[[Any], None]] = [
    *(method for name, method in vars(Pages).items() if not name.startswith("_")),
    *(getattr(Rows, name) for name in ("swapped", "of_an_earlier_commit", "deleted", "doubled", "another_value")),
]


def damage(how: Callable[[Any], None], path: Path, earlier: Path, random: Random) -> None:
    if hasattr(Rows, how.__name__):
        how(Rows(path, earlier, random))
    else:
        how(pages := Pages(path, earlier, random))
        path.write_bytes(pages.data)
