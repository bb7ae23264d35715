"""Codes that differ in size: entropy-coded in blocks, so that some are read without decoding all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from recollect.memory.entropy import MOST_BITS, WORD, Frequencies, counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recollect.memory.entropy import Codes, Words
    from recollect.memory.index import Slots

Lengths = npt.NDArray[np.unsignedinteger[Any]]

BLOCK = 64  # codes: a block wastes half a word and has a length in the directory, but to read one code all are decoded


@dataclass(frozen=True, eq=False)
class CodedBlocks:
    """Codes of items 0, 1, 2 and so on, ``BLOCK`` to a block, one block behind the other in words of the coder.

    ``lengths`` is the directory, the words of each block. Nothing changes in place: what would be comes as new blocks,
    so that one can see what these take before there is no way back.

    >>> codes = np.random.default_rng(0).binomial(7, 0.1, (200, 36)).astype(np.uint8)
    >>> blocks = CodedBlocks.none(variables=36, categories=8).with_more(codes)
    >>> learned = blocks.with_learned()
    >>> np.array_equal(learned.read(np.array([150, 3])), codes[[150, 3]])
    True
    >>> len(blocks.lengths), blocks.nbytes, learned.nbytes
    (4, 2724, 1530)
    """

    frequencies: Frequencies
    count: int
    words: Words
    lengths: Lengths

    @classmethod
    def none(cls, variables: int, categories: int) -> CodedBlocks:
        """No codes yet."""
        return cls(Frequencies(variables, categories), 0, np.empty(0, np.uint32), np.empty(0, length_type(variables)))

    @property
    def table_bits(self) -> int:
        """Bits of directory and frequencies."""
        return 8 * (self.lengths.nbytes + len(self.frequencies.data))

    @property
    def nbytes(self) -> int:
        """Bytes of all."""
        return self.words.nbytes + self.table_bits // 8

    def read(self, slots: Slots) -> Codes:
        """The codes of these items; a block that has several of them is decoded once."""
        blocks, places = np.divmod(slots, BLOCK)
        codes = np.empty((len(slots), self.frequencies.variables), np.uint8)
        ends = self._ends
        for block in np.unique(blocks).tolist():
            here = blocks == block
            codes[here] = self._decoded(block, ends)[places[here]]
        return codes

    @property
    def _ends(self) -> list[int]:
        """Where blocks end; where the first starts comes last, for the block before it to be -1."""
        return [*self.lengths.cumsum(dtype=np.int64).tolist(), 0]

    def _decoded(self, block: int, ends: list[int]) -> Codes:
        words = self.words[ends[block - 1] : ends[block]]
        return self.frequencies.decode(words, min(BLOCK, self.count - BLOCK * block))

    def with_more(self, codes: Codes) -> CodedBlocks:
        """With other codes behind these."""
        first = self.count // BLOCK  # the block that has room
        codes = np.concatenate([self.read(np.arange(BLOCK * first, self.count)), codes])
        parts = (codes[start : start + BLOCK] for start in range(0, len(codes), BLOCK))
        return self._changed(dict(enumerate(parts, first)), BLOCK * first + len(codes))

    def with_others(self, slots: Slots, codes: Codes, count: int) -> CodedBlocks:
        """The first ``count`` of these, with other codes in some slots."""
        blocks, places = np.divmod(slots, BLOCK)
        ends, parts = self._ends, {}
        cut = {count // BLOCK} if count < self.count and count % BLOCK else set()
        for block in {*blocks.tolist()} | cut:
            parts[block] = self._decoded(block, ends)[: count - BLOCK * block]
            parts[block][places[blocks == block]] = codes[blocks == block]
        return self._changed(parts, count)

    def with_learned(self) -> CodedBlocks:
        """The same codes by the frequencies that they have now."""
        counts = np.zeros((self.frequencies.variables, self.frequencies.categories), np.int64)
        for codes in self._all():
            counts += counted(codes, self.frequencies.categories)
        learned = Frequencies.learned(counts)
        return self._of(learned, self.count, [learned.encode(codes) for codes in self._all()])

    def _all(self) -> Iterator[Codes]:
        ends = self._ends
        return (self._decoded(block, ends) for block in range(len(self.lengths)))

    def _changed(self, parts: dict[int, Codes], count: int) -> CodedBlocks:
        """With other codes in some blocks. Where nothing is left, the frequencies go as well."""
        if not count:
            return self.none(self.frequencies.variables, self.frequencies.categories)
        ends, words = self._ends, []
        for block in range(-(-count // BLOCK)):
            new = parts.get(block)
            words.append(self.words[ends[block - 1] : ends[block]] if new is None else self.frequencies.encode(new))
        return self._of(self.frequencies, count, words)

    def _of(self, frequencies: Frequencies, count: int, blocks: list[Words]) -> CodedBlocks:
        lengths = np.array([len(words) for words in blocks], self.lengths.dtype)
        return CodedBlocks(frequencies, count, np.concatenate([self.words[:0], *blocks]), lengths)


def length_type(variables: int) -> np.dtype[np.unsignedinteger[Any]]:
    """The numbers of a directory: 16 bits where no block can have more words than these can tell, otherwise 32."""
    longest = BLOCK * variables * MOST_BITS // WORD + 2
    return np.dtype(np.uint16 if longest < 2**16 else np.uint32)
