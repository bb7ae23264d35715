"""How wide a record is, and how much a memory may hold: so many items, or as many as fit so many bits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from recollect.budget import BudgetError
from recollect.checks import check_at_least
from recollect.memory.coded_index import Budget, CodedIndex
from recollect.memory.index import PackedIndex
from recollect.packing import bits_for, bits_per_item

if TYPE_CHECKING:
    from recollect.codecs.interface import Codec
    from recollect.memory.coder import Coder
    from recollect.memory.coding import Coding
    from recollect.memory.targets import Targets
    from recollect.packing import Scheme

Room = Mapping[str, int | None]  # capacity, capacity_bits or code_bits, of which one is given


ENDLESS = 64  # bits of an id in a stream that may have no end


def widths_of(codec: Codec, targets: Targets, tasks: int, examples: int | None, scheme: Coding) -> dict[str, int]:
    """Bits of a record, by kind; by entropy those of a code while nothing is learned."""
    fixed: Scheme = "radix" if scheme == "entropy" else scheme
    return {
        "code_bits": bits_per_item(variables=codec.variables, categories=codec.categories, scheme=fixed),
        "label_bits": targets.bits,
        "task_bits": bits_for(tasks),
        "id_bits": ENDLESS if examples is None else bits_for(examples),
    }


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
