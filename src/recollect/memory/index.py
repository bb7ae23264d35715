"""Records laid end to end in bits, so that what is held is what is billed."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from recollect.memory.segments import segment_slots
from recollect.packing import blocks

if TYPE_CHECKING:
    from collections.abc import Iterable

    from recollect.checks import Integers

FEW = 64  # of the slots may be touched for a patch: one in so many

Slots = npt.NDArray[np.int64]
Rows = npt.NDArray[np.uint8]


class BitArray:
    """``length`` fields of ``width`` bits, one behind the other without a gap, read and written many at a time.

    A field travels as a row of ceil(width / 8) bytes, its first bit the highest bit of the first byte and zeros behind
    its last. Slots given to one call of `write` must differ.

    >>> bits = BitArray(length=5000, width=983)
    >>> bits.nbytes * 8 <= 200 * 24_576  # with 984 bits a field it would be more than 200 CIFAR images
    True
    """

    def __init__(self, length: int, width: int) -> None:
        self.width = width
        self.row_bytes = -(-width // 8)
        self.buffer = np.zeros(-(-length * width // 8), np.uint8)

    # Made when they are first used: for a wide field they take many times its size, which opening a file must not.

    @functools.cached_property
    def _masks(self) -> Rows:
        """A field may start at any of eight bits of a byte: its mask for each, over one byte more than a row."""
        field = np.full(self.row_bytes, 0xFF, np.uint8)
        field[-1:] = 0xFF << (8 * self.row_bytes - self.width) & 0xFF
        return np.concatenate([_moved(field[None], np.array([shift])) for shift in range(8)])

    @functools.cached_property
    def _reach(self) -> npt.NDArray[np.int64]:
        return np.arange(self.row_bytes + 1)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.buffer.nbytes

    def resize(self, length: int) -> None:
        """Make room for so many fields: behind those that there are come zeros, and behind the last that stays too."""
        buffer = np.zeros(-(-length * self.width // 8), np.uint8)
        buffer[: self.nbytes] = self.buffer[: buffer.nbytes]
        if unused := 8 * buffer.nbytes - length * self.width:
            buffer[-1] &= 0xFF << unused & 0xFF
        self.buffer = buffer

    def read(self, slots: Slots) -> Rows:
        """The fields at ``slots``, a row each."""
        if self.width % 8 == 0:
            return self.buffer.reshape(-1, self.row_bytes)[slots] if self.width else np.zeros((len(slots), 0), np.uint8)
        rows = np.empty((len(slots), self.row_bytes), np.uint8)
        for block in blocks(len(slots), self.row_bytes):
            first, shift = np.divmod(slots[block] * self.width, 8)
            # The byte behind the last field does not exist; what is read in its place is shifted out.
            taken = self.buffer.take(first[:, None] + self._reach, mode="clip").astype(np.uint16)
            rows[block] = (taken[:, :-1] << 8 | taken[:, 1:]) >> (8 - shift)[:, None].astype(np.uint16)
        rows[:, -1] &= self._masks[0, -2]
        return rows

    def write(self, slots: Slots, rows: Rows) -> None:
        """Put ``rows`` at ``slots``."""
        if self.width % 8 == 0:
            if self.width:
                self.buffer.reshape(-1, self.row_bytes)[slots] = rows
            return
        for block in blocks(len(slots), self.row_bytes):
            first, shift = np.divmod(slots[block] * self.width, 8)
            masks = self._masks[shift]
            touched = masks != 0
            places = (first[:, None] + self._reach)[touched]
            # Neighbours share a byte, so bytes are changed one after the other: an assignment would lose bits.
            np.bitwise_and.at(self.buffer, places, ~masks[touched])
            np.bitwise_or.at(self.buffer, places, _moved(rows[block], shift)[touched])

    def read_integers(self, slots: Slots) -> npt.NDArray[np.int64]:
        """The fields at ``slots`` as integers, for a width up to 64 bits."""
        if self.width == 0:
            return np.zeros(len(slots), np.int64)
        if self.width == 64:
            return self.buffer.view(">i8")[slots].astype(np.int64)
        if self.width <= 8:  # in two bytes at most, however it lies in them
            first = slots * self.width
            byte = first >> 3
            pair = self.buffer[byte].astype(np.int64) << 8
            pair |= self.buffer.take(byte + 1, mode="clip")  # there is none behind the last; it is shifted out
            return (pair >> (16 - self.width - (first & 7))) & ((1 << self.width) - 1)
        words = np.zeros((len(slots), 8), np.uint8)
        words[:, : self.row_bytes] = self.read(slots)
        return (words.view(">u8")[:, 0].astype(np.uint64) >> np.uint64(64 - self.width)).astype(np.int64)

    def write_integers(self, slots: Slots, values: npt.NDArray[np.int64]) -> None:
        """Put integers at ``slots``."""
        self.write(slots, integer_rows(values, self.width))


def integer_rows(values: npt.NDArray[np.int64], width: int) -> Rows:
    """Integers as fields of ``width`` bits, up to 64, a row each."""
    words = (values.astype(np.uint64) << np.uint64(64 - width) if width else values).astype(">u8")
    return words[:, None].view(np.uint8)[:, : -(-width // 8)]


def _moved(rows: Rows, shift: npt.NDArray[np.int64]) -> Rows:
    """Rows moved back by ``shift`` bits each, over one byte more."""
    wide = rows.astype(np.uint16) << (8 - shift)[:, None].astype(np.uint16)
    moved = np.zeros((len(rows), rows.shape[1] + 1), np.uint8)
    moved[:, :-1] = wide >> 8
    moved[:, 1:] |= (wide & 0xFF).astype(np.uint8)
    return moved


class PackedIndex:
    """The index buffer: for each slot a packed code, a label or other target, a task and an id, each in a `BitArray`.

    For its file it knows which slots were ``touched`` since the last commit, as long as they are few, and which
    segments, of a few thousand bytes each, ``changed`` since they were last written.
    """

    def __init__(self, length: int, *, code_bits: int, label_bits: int, task_bits: int, id_bits: int = 64) -> None:
        self.length = length
        self.codes = BitArray(length, code_bits)
        self.labels = BitArray(length, label_bits)
        self.tasks = BitArray(length, task_bits)
        self.ids = BitArray(length, id_bits)
        self.segment_slots = segment_slots(code_bits + label_bits + task_bits + id_bits)
        self.changed = np.ones(-(-length // self.segment_slots), np.bool_)
        self.touched: list[Slots] | None = None  # a first commit writes everything, whatever was touched before it
        self._touches = 0  # slots in ``touched``, so that no write has to go through the earlier ones

    @property
    def arrays(self) -> dict[str, BitArray]:
        """The four arrays by kind."""
        return {"codes": self.codes, "labels": self.labels, "tasks": self.tasks, "ids": self.ids}

    @staticmethod
    def bytes_of(length: int, widths: dict[str, int]) -> int:
        """Bytes that an index takes, each kind in whole bytes."""
        return sum(-(-length * width // 8) for width in widths.values())

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(array.nbytes for array in self.arrays.values())

    @property
    def bits_per_item(self) -> int:
        """Bits of one code."""
        return self.codes.width

    def bits(self, held: int) -> dict[str, int]:
        """Bits of so many items by kind."""
        return {kind: held * array.width for kind, array in self.arrays.items()}

    def write(self, slots: Slots, codes: Rows, labels: Rows, tasks: Integers, ids: Integers) -> None:
        """Put whole records at ``slots``."""
        self._touch(slots)
        self.codes.write(slots, codes)
        self.labels.write(slots, labels)
        self.tasks.write_integers(slots, tasks)
        self.ids.write_integers(slots, ids)

    def move(self, sources: Slots, targets: Slots) -> None:
        """Copy whole records from slots to other slots; all are read before one is written."""
        self._touch(targets)
        for array in self.arrays.values():
            array.write(targets, array.read(sources))

    def clear(self, slots: Slots) -> None:
        """Write zeros over whole records."""
        self._touch(slots)
        for array in self.arrays.values():
            array.write(slots, np.zeros((len(slots), array.row_bytes), np.uint8))

    def _touch(self, slots: Slots) -> None:
        self.changed[slots // self.segment_slots] = True
        if self.touched is not None:
            self.touched.append(slots)
            self._touches += len(slots)
            if self._touches > self.length // FEW:
                self.touched = None

    def patch(self) -> bytes | None:
        """The records that were touched, with their slots before them; None if they were many or there is no commit."""
        if self.touched is None:
            return None
        slots = np.unique(np.concatenate([np.empty(0, np.int64), *self.touched]))
        return slots.astype("<i8").tobytes() + b"".join(array.read(slots).tobytes() for array in self.arrays.values())

    def apply(self, patch: bytes) -> None:
        """Put the records of a patch in their slots."""
        count, rest = divmod(len(patch), 8 + sum(array.row_bytes for array in self.arrays.values()))
        slots = np.frombuffer(patch, "<i8", count).astype(np.int64)
        if (
            rest
            or not np.array_equal(slots, np.unique(slots))
            or (count and not 0 <= slots[0] <= slots[-1] < self.length)
        ):
            raise ValueError("a patch with records that do not fit")
        place = 8 * count
        for array in self.arrays.values():
            rows = np.frombuffer(patch, np.uint8, count * array.row_bytes, place)
            array.write(slots, rows.reshape(count, array.row_bytes))
            place += rows.size
        self.changed[slots // self.segment_slots] = True

    def committed(self, *, folded: bool) -> None:
        """All is in the file: by segments that were ``folded`` into it, or by patches on top of them."""
        self.touched, self._touches = [], 0
        if folded:
            self.changed[:] = False

    def segment(self, number: int) -> bytes:
        """The bytes of a segment, kind after kind."""
        return b"".join(part.tobytes() for part in self._parts(number))

    def restore(self, segments: Iterable[tuple[int, bytes]]) -> None:
        """Put back what `segment` gave for each of them."""
        found = 0
        for number, data in segments:
            parts = self._parts(number)
            if len(data) != sum(map(len, parts)):
                raise ValueError(f"{len(data)} bytes for segment {number}: accepted are {sum(map(len, parts))}")
            place = 0
            for part in parts:
                part[:] = np.frombuffer(data, np.uint8, len(part), place)
                place += len(part)
            found += 1
        if found != len(self.changed):
            raise ValueError(f"it holds {found} segments, and not {len(self.changed)}")

    def _parts(self, number: int) -> list[Rows]:
        """Where a segment lies in each array. Eight fields of any width are whole bytes, so that it starts with one."""
        start = number * self.segment_slots
        stop = min(start + self.segment_slots, self.length)
        arrays = self.arrays.values()
        return [array.buffer[start * array.width // 8 : -(-stop * array.width // 8)] for array in arrays]
