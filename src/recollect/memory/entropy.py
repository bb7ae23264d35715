"""Codes in about as many bits as they tell: the more often a variable has a value, the fewer bits the value takes.

How often that is stands in a table, which is learned from codes and is itself kept in few bits.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from recollect.memory.coder import stream
from recollect.packing import bits_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from recollect.checks import Integers
    from recollect.memory.coder import Codes, Words

WIDTHS = range(1, 7)  # bits of a level
STEPS = (1, 2, 4, 8, 16)  # between two levels, in quarters of an octave
QUARTERS = np.array([65536, 55109, 46341, 38968])  # 2^16, and a quarter, two and three quarters of an octave below it
OCTAVES = 16  # from there down to 1


class Frequencies:
    """How often each variable has each of its values, and the range coder that goes by it.

    For each variable the table has the most frequent value, and for each of the others a level: by how many steps it is
    less frequent. The bits of a level and the size of a step are those with which codes and table take fewest.
    Frequencies are whole numbers and follow from the levels without rounding: what one machine writes another reads.
    Without ``data`` there is no table, and all values are as frequent.

    >>> codes = np.array([[0, 1], [0, 2], [0, 3], [0, 0]] * 50, np.uint8)
    >>> table = Frequencies(2, 4).learned([codes])
    >>> words = table.encode(codes)
    >>> 8 * words.nbytes, 8 * len(table.data)  # 800 bits without a table, of which half tell nothing
    (416, 24)
    >>> np.array_equal(table.decode([words], [len(codes)]), codes)
    True
    """

    block = 64

    def __init__(self, variables: int, categories: int, data: bytes = b"") -> None:
        self.variables, self.categories, self.data = variables, categories, data
        if data:
            width, step = divmod(data[0], 16)
            known = width in WIDTHS and step < len(STEPS)
            if not known or len(data) != _table_bytes(variables, categories, width):
                raise ValueError(f"{len(data)} bytes that are no frequencies of {variables} x {categories} values")

    def holding(self, data: bytes) -> Self:
        """Those of another table."""
        return type(self)(self.variables, self.categories, data)

    def learned(self, parts: Iterable[Codes], *, anew: bool = True) -> Self:
        """The table with which these codes take fewest bits with its own."""
        variables, categories = self.variables, self.categories
        counts = sum((counted(codes, categories) for codes in parts), np.zeros((variables, categories), np.int64))
        items = counts.sum(1, keepdims=True)
        best, fewest = b"", int(counts.sum()) * math.log2(categories)
        least = (counts * np.log2(np.maximum(items, 1) / np.maximum(counts, 1))).sum()  # with any table
        smoothed = counts + 0.5  # a value that never came may come yet
        rarer = 4 * np.log2(smoothed.max(1, keepdims=True) / smoothed)  # quarters of an octave
        for width in WIDTHS:
            own = 8 * _table_bytes(variables, categories, width)
            if least + own >= fewest:
                break
            for number, step in enumerate(STEPS):
                levels = np.minimum((rarer / step).round(), 2**width - 1).astype(np.uint8)
                frequencies = _frequencies(levels, step)
                bits = own + (counts * np.log2(frequencies.sum(1, keepdims=True) / frequencies)).sum()
                if bits < fewest:
                    best, fewest = _packed(levels, counts.argmax(1), width, number), bits
        return self.holding(best)

    # Made when it is first used: it takes many times the bits of the table, which opening a file must not.

    @functools.cached_property
    def _models(self) -> list[Any]:
        """What the coder knows of each variable."""
        if not self.data:
            return [stream.model.Uniform(self.categories)] * self.variables
        levels, step = _unpacked(self.data, self.variables, self.categories)
        # Not "perfect", which searches in floating point; this way sums and products are exact, or rounded by IEEE 754.
        rows = _frequencies(levels, step).astype(np.float64)
        return [stream.model.Categorical(row, perfect=False) for row in rows]

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """Itself, since it never changes: the models of the coder cannot be copied."""
        return self

    def encode(self, codes: Codes) -> Words:
        """Codes, n x variables, one variable after the other."""
        encoder = stream.queue.RangeEncoder()
        for values, model in zip(codes.T.astype(np.int32, order="C"), self._models, strict=True):
            encoder.encode(values, model)
        return encoder.get_compressed()

    def decode(self, blocks: Sequence[Words], counts: Sequence[int]) -> Codes:
        """Blocks of so many codes back, one behind the other."""
        return np.concatenate([self._decoded(*block) for block in zip(blocks, counts, strict=True)])

    def _decoded(self, words: Words, count: int) -> Codes:
        decoder = stream.queue.RangeDecoder(words)
        try:
            values = [decoder.decode(model, count) for model in self._models]
        except AssertionError as error:
            raise ValueError(f"{len(words)} words that no {count} codes are coded in") from error
        return np.concatenate(values).astype(np.uint8).reshape(self.variables, count).T


def counted(codes: Codes, categories: int) -> Integers:
    """How often each variable has each value, variables x categories."""
    variables = codes.shape[1]
    places = codes + categories * np.arange(variables)
    return np.bincount(places.ravel(), minlength=variables * categories).reshape(variables, categories)


def _frequencies(levels: Codes, step: int) -> Integers:
    octaves, quarters = np.divmod(levels.astype(np.int64) * step, 4)
    return QUARTERS[quarters] >> np.minimum(octaves, OCTAVES) | 1


def _table_bytes(variables: int, categories: int, width: int) -> int:
    """Width and step in one byte, then for each variable its most frequent value and the levels of the others."""
    return 1 + -(-variables * (bits_for(categories) + (categories - 1) * width) // 8)


def _packed(levels: Codes, most: Integers, width: int, step: int) -> bytes:
    variables, categories = levels.shape
    others = levels[np.arange(categories) != most[:, None]].reshape(variables, -1)
    fields = (_bits(most[:, None], bits_for(categories)), _bits(others, width))
    return bytes([16 * width + step]) + np.packbits(np.concatenate(fields, 1)).tobytes()


def _unpacked(data: bytes, variables: int, categories: int) -> tuple[Codes, int]:
    """Levels and step."""
    width, step = divmod(data[0], 16)
    first = bits_for(categories)
    size = first + (categories - 1) * width
    bits = np.unpackbits(np.frombuffer(data, np.uint8, offset=1), count=variables * size).reshape(variables, size)
    most = _integers(bits[:, None, :first])
    if most.max() >= categories:
        raise ValueError(f"frequencies of a value {most.max()}: accepted are 0 to {categories - 1}")
    levels = np.zeros((variables, categories), np.uint8)
    levels[np.arange(categories) != most] = _integers(bits[:, first:].reshape(variables, -1, width)).ravel()
    return levels, STEPS[step]


def _bits(values: npt.NDArray[np.integer], width: int) -> npt.NDArray[np.bool_]:
    """The bits of numbers, n x k to n x (k width), highest first."""
    return (values[:, :, None] >> np.arange(width - 1, -1, -1) & 1).astype(np.bool_).reshape(len(values), -1)


def _integers(bits: npt.NDArray[np.uint8]) -> Integers:
    """Back, n x k x width to n x k."""
    return bits @ (1 << np.arange(bits.shape[2] - 1, -1, -1))
