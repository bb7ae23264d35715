"""How much a memory may hold: so many items, or as many as fit so many bits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from recollect.budget import BudgetError
from recollect.checks import check_at_least
from recollect.memory.coded_index import Budget, CodedIndex
from recollect.memory.index import PackedIndex

if TYPE_CHECKING:
    from recollect.memory.coder import Coder

Room = Mapping[str, int | None]  # capacity, capacity_bits or code_bits, of which one is given


def items(room: Room, widths: dict[str, int]) -> int:
    """How many items of fixed size there is room for, every array of them rounded up to whole bytes."""
    name, given = _given(room)
    if name == "capacity":
        return given
    counted = {"code_bits": widths["code_bits"]} if name == "code_bits" else widths
    count = given // sum(counted.values())
    while count and 8 * PackedIndex.bytes_of(count, counted) > given:
        count -= 1
    if count == 0:
        parts = ", ".join(f"{width} {kind.replace('_', ' ')}" for kind, width in counted.items())
        raise BudgetError(
            f"{name}={given}: accepted is room for at least one item, {sum(counted.values())} bits ({parts}), "
            f"each kind in whole bytes"
        )
    return count


def coded_index(room: Room, coder: Coder, widths: dict[str, int]) -> CodedIndex:
    """An index for items that differ in size."""
    name, given = _given(room)
    if name == "capacity":
        raise ValueError(
            f"capacity={given} and scheme='entropy', with which items differ in size: "
            f"accepted are code_bits and capacity_bits"
        )
    index = CodedIndex(Budget(given, codes_alone=name == "code_bits"), coder, **widths)
    if given < index.least_budget:
        raise BudgetError(f"{name}={given}: accepted is room for at least one item, {index.least_budget} bits")
    return index


def _given(room: Room) -> tuple[str, int]:
    given = {name: value for name, value in room.items() if value is not None}
    if len(given) != 1:
        said = ", ".join(f"{name}={value}" for name, value in room.items())
        raise ValueError(f"{said}: accepted is one of them")
    ((name, value),) = given.items()
    return name, check_at_least(name, value, 1)
