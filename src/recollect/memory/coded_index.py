"""Records whose codes differ in size, within a budget of bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from recollect.memory.blocks import BLOCK, CodedBlocks
from recollect.memory.entropy import WORD, Frequencies
from recollect.memory.index import BitArray
from recollect.memory.segments import segment_slots

if TYPE_CHECKING:
    from collections.abc import Iterable

    from recollect.checks import Integers
    from recollect.memory.entropy import Codes
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
    """Codes, fields of targets, tasks and ids of some examples."""

    codes: Codes
    labels: Rows
    tasks: Integers
    ids: Integers

    def some(self, rows: Integers) -> Records:
        """Those of some rows."""
        return Records(*(values[rows] for values in self))


class CodedIndex:
    """The index buffer for codes that are entropy-coded: as many records as fit the budget, in the slots from 0 on.

    A change that would take more than the budget is not made. Nothing is reserved: what is held is what there is. For
    its file it knows which segments ``changed`` since the last commit; there is no patch.
    """

    def __init__(
        self,
        budget: Budget,
        variables: int,
        categories: int,
        *,
        code_bits: int,
        label_bits: int,
        task_bits: int,
        id_bits: int,
    ) -> None:
        self.budget = budget
        self.codes = CodedBlocks.none(variables, categories)
        self.labels, self.tasks, self.ids = BitArray(0, label_bits), BitArray(0, task_bits), BitArray(0, id_bits)
        self.code_bits = code_bits  # of a code before anything is learned, about
        whole = segment_slots(code_bits + label_bits + task_bits + id_bits)
        self.segment_slots = -(-whole // BLOCK) * BLOCK
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
        return self.codes.bits // 8 + sum(array.nbytes for array in self.arrays.values())

    @property
    def bits_per_item(self) -> int:
        """The mean of what a code takes with its share of the tables, rounded up; before there is one, that of radix."""
        return -(-self.codes.bits // self.count) if self.count else self.code_bits

    def bits(self, held: int) -> dict[str, int]:
        """Bits of the items by kind."""
        fields = {kind: held * array.width for kind, array in self.arrays.items()}
        return {"codes": WORD * len(self.codes.words), "tables": self.codes.table_bits, **fields}

    @property
    def least_budget(self) -> int:
        """What a record can take while there are no frequencies: with less not even one is sure to fit."""
        words = -(-self.code_bits // WORD) + 1
        fields = 0 if self.budget.codes_alone else sum(-(-array.width // 8) for array in self.arrays.values())
        return WORD * words + 8 * self.codes.lengths.itemsize + 8 * fields

    def _fits(self, codes: CodedBlocks) -> bool:
        fields = 0 if self.budget.codes_alone else sum(-(-codes.count * a.width // 8) for a in self.arrays.values())
        return codes.bits + 8 * fields <= self.budget.bits

    def add(self, records: Records) -> bool:
        """Put records in the next slots, if they fit."""
        codes = self.codes.with_more(records.codes)
        if not self._fits(codes):
            return False
        slots = np.arange(self.count, codes.count)
        self._hold(codes)
        self.labels.write(slots, records.labels)
        self.tasks.write_integers(slots, records.tasks)
        self.ids.write_integers(slots, records.ids)
        self._touch(slots)
        return True

    def drop(self, slots: Slots) -> bool:
        """Drop records, each once; the last ones move up. Since blocks are whole words it may be that that takes more."""
        left = self.count - len(slots)
        stay = np.ones(self.count, np.bool_)
        stay[slots] = False
        sources, targets = left + np.flatnonzero(stay[left:]), np.flatnonzero(~stay[:left])
        codes = self.codes.with_fewer(left, sources, targets)
        if not self._fits(codes):
            return False
        for array in self.arrays.values():
            array.write(targets, array.read(sources))
        self._touch(np.concatenate([targets, np.arange(left, self.count)]))
        self._hold(codes)
        return True

    def learn(self) -> None:
        """Code all by the frequencies that they have now, if that takes less."""
        codes = self.codes.with_learned()
        if codes.bits < self.codes.bits:
            self.codes = codes
            self.changed[:] = True

    def _hold(self, codes: CodedBlocks) -> None:
        self.codes = codes
        for array in self.arrays.values():
            array.resize(codes.count)

    def _touch(self, slots: Slots) -> None:
        more = -(-self.count // self.segment_slots) - len(self.changed)
        self.changed = np.concatenate([self.changed, np.ones(max(more, 0), np.bool_)])
        self.changed[slots // self.segment_slots] = True

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
        fields = [a.buffer[start * a.width // 8 : -(-stop * a.width // 8)] for a in self.arrays.values()]
        blocks = slice(start // BLOCK, -(-stop // BLOCK))
        ends = np.append(0, self.codes.lengths.cumsum(dtype=np.int64))
        words = self.codes.words[ends[blocks.start] : ends[blocks.stop]]
        parts = [np.array(stop - start, COUNT), *fields, _little(self.codes.lengths[blocks]), _little(words)]
        return b"".join(part.tobytes() for part in parts)

    def restore(self, segments: Iterable[tuple[int, bytes]], frequencies: bytes) -> None:
        """Put back what `segment` gave for each of them, and the frequencies of all."""
        codes, number, count = self.codes, -1, 0
        kinds = [*(np.dtype(np.uint8) for _ in self.arrays), _little(codes.lengths).dtype, _little(codes.words).dtype]
        found: list[list[bytes]] = [[] for _ in kinds]
        for number, data in segments:
            here = int(np.frombuffer(data, COUNT, 1)[0])
            if here > self.segment_slots or (here and count != number * self.segment_slots):
                raise ValueError(f"{here} records in segment {number}: accepted are {self.segment_slots}, up to the last")
            sizes = [-(-here * array.width // 8) for array in self.arrays.values()]
            sizes.append(-(-here // BLOCK) * codes.lengths.itemsize)
            place = COUNT.itemsize
            for parts, size in zip(found, [*sizes, len(data)], strict=True):
                parts.append(data[place : place + size])
                place += size
            count += here
        *fields, lengths, words = (np.frombuffer(b"".join(p), kind) for p, kind in zip(found, kinds, strict=True))
        table = Frequencies(codes.frequencies.variables, codes.frequencies.categories, frequencies)
        self.codes = CodedBlocks(table, count, words.astype(np.uint32), lengths.astype(codes.lengths.dtype))
        for array, buffer in zip(self.arrays.values(), fields, strict=True):
            if buffer.nbytes != -(-count * array.width // 8):
                raise ValueError(f"segments that are too short for {count} records")
            array.buffer = buffer.copy()
        if len(lengths) != -(-count // BLOCK) or lengths.sum(dtype=np.int64) != len(words):
            raise ValueError(f"a directory that is not that of {count} records in {len(words)} words")
        if not self._fits(self.codes):
            raise ValueError(f"more records than {self.budget} allows")
        self.changed = np.ones(number + 1, np.bool_)


def _little(numbers: npt.NDArray[np.integer]) -> npt.NDArray[np.integer]:
    """The lowest byte first, as in files."""
    return numbers.astype(numbers.dtype.newbyteorder("<"))
