"""All that is wrong with a file, the learner in it included, and what can be done about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from recollect.inspection.facts import many
from recollect.learners.learner import Learner
from recollect.memory.examination import Examination
from recollect.memory.file import DamagedFileError, MemoryFileError

if TYPE_CHECKING:
    from pathlib import Path

    from recollect.memory.file import Watch

MAGIC = b"SQLite format 3\0"
OF_LEARNER = {"learner", "model", "state", "optimiser"}  # parts that come together
ADVICE = (
    "No record can be told from a changed one any more, so that the file is not opened and cannot be repaired. "
    "Go on from a copy that `recollect verify` finds whole, and keep this one until you have it. "
    "If nothing but disk and memory touched the file, check those."
)


def is_database(path: Path) -> bool:
    """Whether a file begins as SQLite's do, or not at all: what does not was never one of a memory.

    >>> from pathlib import Path
    >>> is_database(Path(__file__))
    False
    """
    with path.open("rb") as file:
        return file.read(len(MAGIC)) in {MAGIC, b""}


def examined(path: Path, watch: Watch = lambda size: None) -> Examination:
    """Examine a file, with the learner that it may hold."""
    found = Examination(path, watch)
    if not {"memory", "learner"} & found.parts.keys():
        found.damage.append("it holds neither a memory nor a learner")
    if here := OF_LEARNER & found.parts.keys():
        found.damage += [f"there is no part {name!r}" for name in sorted(OF_LEARNER - here)]
    if "learner" in found.parts and not found.damage:
        _check_learner(found)
    return found


def _check_learner(found: Examination) -> None:
    try:
        # Loading sets the random state of PyTorch, which is not ours to change.
        with torch.random.fork_rng(devices=[]):
            Learner.load(found.path)
    except DamagedFileError as error:
        found.damage.append(str(error).partition("is damaged: ")[2])
    except MemoryFileError as error:
        found.unchecked.append(f"its learner ({error})")


def as_json(found: Examination) -> dict[str, Any]:
    """One object with everything."""
    return {
        "file": str(found.path),
        "ok": not found.damage,
        "damage": found.damage,
        "unchecked": found.unchecked,
        "bytes": found.size,
        "commits": found.commits,
        "parts": sorted(found.parts),
        "segments": found.rows["segment"],
        "patches": found.rows["patch"],
        "items": len(found.memory) if found.memory is not None else None,
    }


def text(found: Examination) -> str:
    """The same to be read."""
    if found.damage:
        return "\n  ".join([f"{found.path} is damaged:", *found.damage]) + f"\n{ADVICE}"
    amounts = [f"{found.size:,} bytes", f"commit {found.commits:,}", f"the parts {', '.join(sorted(found.parts))}"]
    if found.memory is not None:
        patches = found.rows["patch"]
        rows = f"{many(found.rows['segment'], 'segment')} and {patches:,} patch{'es' * (patches != 1)}"
        amounts.append(f"{many(len(found.memory), 'item')} in {rows}")
    return "\n".join([f"ok: {'; '.join(amounts)}", *(f"Not checked: {what}" for what in found.unchecked)])
