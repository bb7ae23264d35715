"""Records whose codes differ in size, within a budget of bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from recollect.memory.blocks import CodedBlocks
from recollect.memory.coder import WORD
from recollect.memory.index import BitArray, integer_rows
from recollect.memory.segments import segment_slots

if TYPE_CHECKING:
    from collections.abc import Iterable

    from recollect.checks import Integers
    from recollect.memory.coder import Coder, Codes
    from recollect.memory.index import Rows, Slots

COUNT = np.dtype("<u4")  # of items, at the start of a segment


@dataclass(frozen=True)
class Budget:
    """Bits that may be held: by codes with their tables, or by these and labels, tasks and ids together."""

    bits: int
    codes_alone: bool

    @property
    def settings(self) -> dict[str, int]:
        """As it was given to the memory."""
        return {"code_bits" if self.codes_alone else "capacity_bits": self.bits}


class Records(NamedTuple):
    """Codes of some examples, and their labels or other targets, tasks and ids as fields."""

    codes: Codes
    labels: Rows
    tasks: Rows
    ids: Rows

    def some(self, rows: Integers) -> Records:
        """Those of some rows."""
        return Records(*(values[rows] for values in self))


class Snapshot(NamedTuple):
    """What an index held at a moment: codes, fields, and which segments had changed."""

    codes: CodedBlocks
    fields: list[npt.NDArray[np.uint8]]
    changed: npt.NDArray[np.bool_]


class CodedIndex:
    """The index buffer for codes that are entropy-coded: as many records as fit the budget, in the slots from 0 on.

    A change that would take more than the budget is not made. Nothing is reserved: what is held is what there is. For
    its file it knows which segments ``changed`` since the last commit; there is no patch.
    """

    def __init__(
        self,
        budget: Budget,
        coder: Coder,
        *,
        code_bits: int,
        label_bits: int,
        task_bits: int,
        id_bits: int,
    ) -> None:
        self.budget = budget
        self.codes = CodedBlocks.none(coder)
        self.labels, self.tasks, self.ids = BitArray(0, label_bits), BitArray(0, task_bits), BitArray(0, id_bits)
        self.code_bits = code_bits  # of a code before anything is learned, about
        whole = segment_slots(code_bits + label_bits + task_bits + id_bits)
        self.segment_slots = -(-whole // coder.block) * coder.block
        self.changed = np.empty(0, np.bool_)  # a segment that lost all its records stays, without any

    @property
    def count(self) -> int:
        """Records held."""
        return self.codes.count

    @property
    def arrays(self) -> dict[str, BitArray]:
        """The arrays of fields by kind."""
        return {"labels": self.labels, "tasks": self.tasks, "ids": self.ids}

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.codes.nbytes + sum(array.nbytes for array in self.arrays.values())

    @property
    def bits_per_item(self) -> int:
        """The mean of what codes take with their tables, rounded up; before there are any, what they will at first."""
        return -(-8 * self.codes.nbytes // self.count) if self.count else self.code_bits

    def bits(self, held: int) -> dict[str, int]:
        """Bits of the items by kind."""
        fields = {kind: held * array.width for kind, array in self.arrays.items()}
        return {"codes": WORD * len(self.codes.words), "tables": self.codes.table_bits, **fields}

    @property
    def least_budget(self) -> int:
        """What a record can take while nothing is known of codes: with less not even one is sure to fit."""
        words = -(-self.code_bits // WORD) + 1
        return WORD * words + 8 * self.codes.lengths.itemsize + self._field_bits(1)

    def _room(self, codes: CodedBlocks) -> int:
        """Bits that the budget has left beside these codes, less than 0 where it is exceeded."""
        return self.budget.bits - 8 * codes.nbytes - self._field_bits(codes.count)

    def _field_bits(self, count: int) -> int:
        """What so many records have on the budget beside their codes."""
        return 0 if self.budget.codes_alone else 8 * sum(_bytes(count, array) for array in self.arrays.values())

    def records(self, codes: Codes, labels: Rows, tasks: Integers, ids: Integers) -> Records:
        """Whole records, as they are kept."""
        return Records(codes, labels, integer_rows(tasks, self.tasks.width), integer_rows(ids, self.ids.width))

    def add(self, records: Records) -> bool:
        """Put records in the next slots, if they fit. With less room than they take on average it is not tried."""
        if self._room(self.codes) * self.count < WORD * len(self.codes.words) * len(records.codes):
            return False
        codes = self.codes.with_more(records.codes)
        return self._hold(codes, np.arange(self.count, codes.count), records)

    def replace(self, slots: Slots, records: Records) -> bool:
        """Put records in slots that hold others, if they fit."""
        return self._hold(self.codes.with_others(slots, records.codes, self.count), slots, records)

    def drop(self, slots: Slots) -> bool:
        """Drop records, each once, and let the last ones move up; unless, with whole words a block, that takes more."""
        left = self.count - len(slots)
        stay = np.ones(self.count, np.bool_)
        stay[slots] = False
        sources, targets = left + np.flatnonzero(stay[left:]), np.flatnonzero(~stay[:left])
        fields = (array.read(sources) for array in self.arrays.values())
        moved = Records(self.codes.read(sources), *fields)
        return self._hold(self.codes.with_others(targets, moved.codes, left), targets, moved)

    def _hold(self, codes: CodedBlocks, slots: Slots, records: Records) -> bool:
        """Take over codes, with the rest of the records that are new in these slots; if that is within the budget."""
        if self._room(codes) < 0:
            return False
        changed = np.append(slots, np.arange(codes.count, self.count))  # also where records were
        self.codes = codes
        for array, rows in zip(self.arrays.values(), records[1:], strict=True):
            array.resize(codes.count)
            array.write(slots, rows)
        segments = -(-codes.count // self.segment_slots)
        self.changed = np.append(self.changed, np.ones(max(segments - len(self.changed), 0), np.bool_))
        self.changed[changed // self.segment_slots] = True
        return True

    def snapshot(self) -> Snapshot:
        """All that is held now. Codes are never changed in place."""
        return Snapshot(self.codes, [array.buffer.copy() for array in self.arrays.values()], self.changed.copy())

    def undo(self, snapshot: Snapshot) -> None:
        """Hold what was held then."""
        self.codes, buffers, self.changed = snapshot
        for array, buffer in zip(self.arrays.values(), buffers, strict=True):
            array.buffer = buffer

    def learn(self, *, anyway: bool = False) -> bool:
        """Code all by what they are like now: if that takes less, or anyway, by that alone, if it fits."""
        codes = self.codes.with_learned(anew=anyway)
        better = self._room(codes) >= 0 if anyway else codes.nbytes < self.codes.nbytes
        if better:
            self.codes = codes
            self.changed[:] = True
        return better

    def patch(self) -> bytes | None:
        """There is none: a change of a record moves those behind it."""
        return None

    def apply(self, patch: bytes) -> None:
        """There is none."""
        raise ValueError(f"a patch of {len(patch)} bytes, where segments hold all")

    def committed(self, *, folded: bool) -> None:
        """All is in the file."""
        self.changed[:] = not folded

    def segment(self, number: int) -> bytes:
        """How many records it has; their labels, tasks and ids; the directory of their blocks, and the blocks."""
        start, stop = number * self.segment_slots, min((number + 1) * self.segment_slots, self.count)
        if stop <= start:
            return np.array(0, COUNT).tobytes()
        fields = [a.buffer[start * a.width // 8 : _bytes(stop, a)] for a in self.arrays.values()]
        blocks = slice(start // self.codes.block, -(-stop // self.codes.block))
        ends = np.append(0, self.codes.lengths.cumsum(dtype=np.int64))
        words = self.codes.words[ends[blocks.start] : ends[blocks.stop]]
        parts = [np.array(stop - start, COUNT), *fields, _little(self.codes.lengths[blocks]), _little(words)]
        return b"".join(part.tobytes() for part in parts)

    def restore(self, segments: Iterable[tuple[int, bytes]], known: bytes) -> None:
        """Put back what `segment` gave for each of them, and what the coder knew of all."""
        codes, arrays = self.codes, [*self.arrays.values()]
        found = [bytearray() for _ in range(len(arrays) + 2)]  # fields, directory, words
        number, count = -1, 0
        for number, data in segments:
            here = int(np.frombuffer(data, COUNT, 1)[0])
            if here > self.segment_slots or (here and count != number * self.segment_slots):
                raise ValueError(f"{here} records in segment {number}, behind {count}")
            directory = -(-here // codes.block) * codes.lengths.itemsize
            sizes = [*(_bytes(here, array) for array in arrays), directory, len(data)]
            place = COUNT.itemsize
            for part, size in zip(found, sizes, strict=True):
                part.extend(data[place : place + size])
                place += size
            count += here
        lengths = np.frombuffer(found[-2], _little(codes.lengths).dtype).astype(codes.lengths.dtype)
        words = np.frombuffer(found[-1], _little(codes.words).dtype).astype(np.uint32)
        whole = all(len(part) == _bytes(count, array) for part, array in zip(found[:-2], arrays, strict=True))
        if not whole or len(lengths) != -(-count // codes.block) or lengths.sum(dtype=np.int64) != len(words):
            raise ValueError(f"segments that are not those of {count} records")
        self.codes = CodedBlocks(codes.coder.holding(known), count, words, lengths)
        if self._room(self.codes) < 0:
            raise ValueError(f"more records than {self.budget} allows")
        for part, array in zip(found[:-2], arrays, strict=True):
            array.buffer = np.frombuffer(part, np.uint8)
        self.changed = np.ones(number + 1, np.bool_)


def _bytes(count: int, array: BitArray) -> int:
    return -(-count * array.width // 8)


def _little(numbers: npt.NDArray[np.integer]) -> npt.NDArray[np.integer]:
    """The lowest byte first, as in files."""
    return numbers.astype(numbers.dtype.newbyteorder("<"))
