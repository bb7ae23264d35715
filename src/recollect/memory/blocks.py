"""Codes that differ in size: entropy-coded in blocks, so that some are read without decoding all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from recollect.memory.coder import MOST_BITS, WORD

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from recollect.memory.coder import Coder, Codes, Words
    from recollect.memory.index import Slots

Lengths = npt.NDArray[np.unsignedinteger[Any]]

MOST_BLOCKS, MOST_VALUES = 32, 2**21  # that are decoded together


@dataclass(frozen=True, eq=False)
class CodedBlocks:
    """Codes of items 0, 1, 2 and so on, so many to a block, one block behind the other in words of the coder.

    ``lengths`` is the directory, the words of each block. Nothing changes in place: what would be comes as new blocks,
    so that one can see what these take before there is no way back.

    >>> from recollect.memory.entropy import Frequencies
    >>> codes = np.random.default_rng(0).binomial(7, 0.1, (200, 36)).astype(np.uint8)
    >>> blocks = CodedBlocks.none(Frequencies(variables=36, categories=8)).with_more(codes)
    >>> learned = blocks.with_learned()
    >>> np.array_equal(learned.read(np.array([150, 3])), codes[[150, 3]])
    True
    >>> len(blocks.lengths), blocks.nbytes, learned.nbytes
    (4, 2724, 1530)
    """

    coder: Coder
    count: int
    words: Words
    lengths: Lengths

    @classmethod
    def none(cls, coder: Coder) -> CodedBlocks:
        """No codes yet, and nothing known of them."""
        lengths = np.empty(0, length_type(coder))
        return cls(coder.holding(b""), 0, np.empty(0, np.uint32), lengths)

    @property
    def block(self) -> int:
        """Codes in a block."""
        return self.coder.block

    @property
    def table_bits(self) -> int:
        """Bits of the directory and of what the coder knows."""
        return 8 * (self.lengths.nbytes + len(self.coder.data))

    @property
    def nbytes(self) -> int:
        """Bytes of all."""
        return self.words.nbytes + self.table_bits // 8

    def read(self, slots: Slots) -> Codes:
        """The codes of these items; a block that has several of them is decoded once."""
        found, places = np.unique(slots // self.block, return_inverse=True)
        codes, starts = self._decoded(found.tolist())
        return codes[starts[places] + slots % self.block]

    @property
    def _ends(self) -> list[int]:
        """Where blocks end; where the first starts comes last, for the block before it to be -1."""
        return [*self.lengths.cumsum(dtype=np.int64).tolist(), 0]

    @property
    def _at_once(self) -> int:
        """Blocks that are decoded together."""
        return max(1, min(MOST_BLOCKS, MOST_VALUES // (self.block * self.coder.variables)))

    def _decoded(self, blocks: Sequence[int]) -> tuple[Codes, Slots]:
        """The codes of some blocks, and where each starts and the last ends."""
        ends = self._ends
        words = [self.words[ends[block - 1] : ends[block]] for block in blocks]
        counts = [min(self.block, self.count - self.block * block) for block in blocks]
        step = self._at_once
        parts = [
            self.coder.decode(words[start : start + step], counts[start : start + step])
            for start in range(0, len(blocks), step)
        ]
        codes = np.concatenate([np.empty((0, self.coder.variables), np.uint8), *parts])
        return codes, np.cumsum([0, *counts])

    def with_more(self, codes: Codes) -> CodedBlocks:
        """With other codes behind these."""
        first = self.count // self.block  # the block that has room
        codes = np.concatenate([self.read(np.arange(self.block * first, self.count)), codes])
        parts = (codes[start : start + self.block] for start in range(0, len(codes), self.block))
        return self._changed(dict(enumerate(parts, first)), self.block * first + len(codes))

    def with_others(self, slots: Slots, codes: Codes, count: int) -> CodedBlocks:
        """The first ``count`` of these, with other codes in some slots."""
        blocks, places = np.divmod(slots, self.block)
        cut = {count // self.block} if count < self.count and count % self.block else set()
        changed = sorted({*blocks.tolist()} | cut)
        old, starts = self._decoded(changed)
        parts = {}
        for block, start in zip(changed, starts.tolist(), strict=False):
            parts[block] = old[start : start + min(self.block, count - self.block * block)]
            parts[block][places[blocks == block]] = codes[blocks == block]
        return self._changed(parts, count)

    def with_learned(self, *, anew: bool = False) -> CodedBlocks:
        """The same codes by a coder that knows what they are like; ``anew`` by nothing but these codes."""
        learned = self.coder.learned(self._all(), anew=anew)
        return self._of(learned, self.count, [learned.encode(codes) for codes in self._all()])

    def _all(self) -> Iterator[Codes]:
        for first in range(0, len(self.lengths), self._at_once):
            codes = self._decoded(range(first, min(first + self._at_once, len(self.lengths))))[0]
            yield from (codes[start : start + self.block] for start in range(0, len(codes), self.block))

    def _changed(self, parts: dict[int, Codes], count: int) -> CodedBlocks:
        """With other codes in some blocks. Where nothing is left, nothing is known any more."""
        if not count:
            return self.none(self.coder)
        ends, words = self._ends, []
        for block in range(-(-count // self.block)):
            new = parts.get(block)
            words.append(self.words[ends[block - 1] : ends[block]] if new is None else self.coder.encode(new))
        return self._of(self.coder, count, words)

    def _of(self, coder: Coder, count: int, blocks: list[Words]) -> CodedBlocks:
        lengths = np.array([len(words) for words in blocks], self.lengths.dtype)
        return CodedBlocks(coder, count, np.concatenate([self.words[:0], *blocks]), lengths)


def length_type(coder: Coder) -> np.dtype[np.unsignedinteger[Any]]:
    """The numbers of a directory: 16 bits where no block can have more words than these can tell, otherwise 32."""
    longest = coder.block * coder.variables * MOST_BITS // WORD + 2
    return np.dtype(np.uint16 if longest < 2**16 else np.uint32)
