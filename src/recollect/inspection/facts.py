"""What a file holds and what it costs, for the terminal and for programs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from recollect.memory.file import reading
from recollect.memory.memory import Memory
from recollect.memory.records import items_by_class, items_by_task
from recollect.memory.saved import BROKEN, restored
from recollect.rebuild import Plain, described

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from recollect.memory.erasure import Erasure
    from recollect.memory.file import Reader, Watch

OF_MEMORY = {"memory", "codec", "frequencies"}  # parts that are on the memory's bill


@dataclass(frozen=True, kw_only=True)
class Facts:
    """A file that was read. The memory is None for a learner that has none, the learner for a memory alone."""

    path: Path
    size: int  # bytes
    commits: int
    memory: Memory | None
    learner: Plain | None
    learner_bits: int  # of its parts: model, optimiser and states
    audit: Sequence[Erasure]

    @property
    def overhead(self) -> int:
        """Bits of the file that are neither on the memory's bill nor the learner's."""
        billed = self.memory.footprint().total if self.memory is not None else 0
        return 8 * self.size - billed - self.learner_bits


def facts(path: Path, watch: Watch = lambda size: None) -> Facts:
    """Read a file."""
    with reading(path, watch) as reader:
        learner = _learner(reader)
        memory = restored(Memory, reader, None) if learner is None or reader.holds_memory() else None
        return Facts(
            path=path,
            size=path.stat().st_size,
            commits=reader.home.commits,
            memory=memory,
            learner=learner,
            learner_bits=sum(8 * len(data) for name, data in reader.parts.items() if name not in OF_MEMORY),
            audit=reader.audit,
        )


def _learner(reader: Reader) -> Plain | None:
    """What a learner was made of, and how far it had come."""
    if "learner" not in reader.parts:
        return None
    try:
        description: Plain = json.loads(reader.parts["learner"])
        return {name: description[name] for name in ("learner", "learning_rate", "module", "model", "progress")}
    except BROKEN as error:
        reader.damaged(f"its learner cannot be read ({error})")


def as_json(found: Facts) -> dict[str, Any]:
    """One object with everything."""
    memory = found.memory
    bill = memory.footprint() if memory is not None else None
    return {
        "file": str(found.path),
        "bytes": found.size,
        "overhead_bits": found.overhead,
        "learner_bits": found.learner_bits,
        "commits": found.commits,
        "memory": None
        if memory is None
        else {
            "admission": memory.admission,
            "capacity": memory.capacity,
            "held": len(memory),
            "seen": memory.seen,
            "classes": memory.classes,
            "targets": None if memory.classes else described(memory.targets),
            "tasks": memory.tasks,
            "examples": memory.examples,
            "scheme": memory.scheme,
            "bits_per_item": memory.bits_per_item,
            "radix_bits": memory.radix_bits,
            "codec": described(memory.codec),
            "items_by_task": items_by_task(memory),
            "items_by_class": items_by_class(memory),
        },
        "bill": bill and {"bits": bill.bits, "examples": bill.examples},
        "learner": found.learner,
        "audit": [vars(line) for line in found.audit],
    }


def text(found: Facts) -> str:
    """The same to be read."""
    memory, learner = found.memory, found.learner
    lines = [f"{found.path}: {found.size:,} bytes, {many(found.commits, 'commit')}"]
    if memory is not None:
        most = f" of at most {memory.capacity:,}" if memory.capacity else ""
        seen = many(memory.seen, "example") + (
            f" of at most {memory.examples:,}" if memory.examples is not None else ""
        )
        radix = f", by radix {memory.radix_bits:,}" if memory.scheme == "entropy" else ""
        lines += [
            f"memory    {memory.admission}: {len(memory):,}{most} items held, "
            f"{seen} seen, codes of {memory.bits_per_item:,} bits ({memory.scheme}{radix})",
            f"codec     {_call(described(memory.codec))}",
        ]
        lines += [] if memory.classes else [f"targets   {_call(described(memory.targets))}"]
    if learner is not None:
        module = f" with {_call(learner['module'])}" if learner["module"] is not None else ""
        lines += [f"learner   {_call(learner['learner'])}{module}", f"model     {_call(learner['model'])}"]
    lines += ["", *_bill(found)]
    if memory is not None:
        lines += ["", _counts("task", items_by_task(memory))]
        lines += [_counts("class", items_by_class(memory))] if memory.classes else []
    audit = [f"  {line.time}  {many(line.items, 'item')} by {line.rule}" for line in found.audit]
    return "\n".join([*lines, "", "erased:" if audit else "erased: nothing so far", *audit])


def _bill(found: Facts) -> list[str]:
    """The bill, with what the file has beside it."""
    if found.memory is None:
        return [f"{kind:10}{bits:14,} bits" for kind, bits in _beside(found).items()]
    bill = found.memory.footprint()
    rows = [f"{kind:10}{bits:14,} bits{bits / bill.example:10.1f} examples" for kind, bits in _beside(found).items()]
    if bill.total:
        rows[-2] += f", {found.overhead / bill.total:.1%} of the bill"
    return [str(bill), *rows]


def _beside(found: Facts) -> dict[str, int]:
    learner = {"learner": found.learner_bits} if found.learner is not None else {}
    return {**learner, "overhead": found.overhead, "file": 8 * found.size}


def _counts(kind: str, counts: dict[int, int]) -> str:
    each = "  ".join(f"{number}: {count:,}" for number, count in counts.items())
    return f"items by {kind}:  {each or 'none'}"


def _call(description: Plain) -> str:
    """A description as one would write it.

    >>> _call({"class": "RawPixels", "arguments": {"shape": [1, 28, 28]}})
    'RawPixels(shape=[1, 28, 28])'
    """
    if description["arguments"] is None:
        return f"{description['class']}, a class of your own"
    arguments = ", ".join(f"{name}={value!r}" for name, value in description["arguments"].items())
    return f"{description['class']}({arguments})"


def many(count: int, thing: str) -> str:
    """A count of things.

    >>> many(1, "item"), many(2000, "item")
    ('1 item', '2,000 items')
    """
    return f"{count:,} {thing}{'s' * (count != 1)}"
