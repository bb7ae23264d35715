"""What writes codes in about as many bits as they tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, Self

import constriction
import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Codes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint32]

stream: Any = constriction.stream  # pyright: ignore[reportAttributeAccessIssue] # it has no types

WORD = 32  # bits that the coder writes at once
MOST_BITS = 24  # of one value, however rare the coder thinks it: its precision


class Coder(Protocol):
    """A range coder that knows what codes are like. It never changes: what learns more is another one."""

    variables: int
    categories: int
    block: int  # codes in a block: it wastes half a word and has a length kept, but to read one code all are decoded
    data: bytes  # all that it knows, as it is kept; none for a coder to which all codes are the same

    def holding(self, data: bytes) -> Self:
        """The coder for codes of the same kind that knows this."""
        ...

    def learned(self, parts: Iterable[Codes], *, anew: bool) -> Self:
        """The coder that knows what these codes are like; ``anew`` without a trace of what this one knows."""
        ...

    def encode(self, codes: Codes) -> Words:
        """A block of codes, n x variables."""
        ...

    def decode(self, blocks: Sequence[Words], counts: Sequence[int]) -> Codes:
        """Blocks of so many codes back, one behind the other."""
        ...
