"""The admission rules by the names that a memory is given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from recollect.memory.admission import Balanced, Reservoir, Ring
from recollect.memory.chosen import Chosen
from recollect.memory.keyed import Keyed

if TYPE_CHECKING:
    from recollect.memory.admission import Admission
    from recollect.memory.coded_index import CodedIndex
    from recollect.memory.index import PackedIndex

Rule = Literal["reservoir", "ring", "balanced", "chosen"]
BY_CLASS = {"balanced", "chosen"}  # rules that keep a count for each class


def rule_of(name: str, capacity: int, classes: int, index: PackedIndex) -> Admission:
    """The rule for items of one size."""
    match name:
        case "reservoir":
            return Reservoir(capacity, index)
        case "ring":
            return Ring(capacity, index)
        case "balanced":
            return Balanced(capacity, classes, index)
        case "chosen":
            return Chosen(capacity, classes, index)
        case _:
            raise ValueError(f"admission={name!r}: accepted are {', '.join(map(repr, get_args(Rule)))}")


def keyed_of(name: str, index: CodedIndex, rng: np.random.Generator) -> Keyed:
    """The rule for items that differ in size."""
    if name not in {"reservoir", "balanced"}:
        raise ValueError(f"admission={name!r} with scheme='entropy': accepted are 'reservoir' and 'balanced'")
    return Keyed(index, int(rng.integers(2**64, dtype=np.uint64)), by_class=name == "balanced")
