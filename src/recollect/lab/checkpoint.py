"""A run that is stopped goes on from its last checkpoint, and ends as if it had never been stopped."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from recollect.memory.file import MemoryFileError, UnavailableFileError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

EVERY = 30.0  # seconds between checkpoints at least
RARELY = 50  # and so many times as long as the last one took: they cost less than 2 % of a run


class Saved(Protocol):
    """What can be saved to a file, with how far it has come: a learner, or a codec that learns."""

    progress: dict[str, Any]

    def save(self, path: Path, progress: dict[str, Any]) -> None:
        """All of it, or nothing."""
        ...


S = TypeVar("S", bound=Saved)


class Checkpoint:
    """A file that what learns is saved to every now and then, with what was measured so far.

    Args:
        path: the file, which `done` removes.
        run: what tells this run from all others; a file of another run is not gone on from.
        every: seconds between checkpoints at least.
    """

    def __init__(self, path: Path, run: dict[str, Any], *, every: float = EVERY) -> None:
        self.path, self.run, self.every = path, run, every
        self._last, self._took = time.monotonic(), 0.0

    def resumed(self, load: Callable[[Path], S]) -> tuple[S, dict[str, Any]] | None:
        """What ``load`` finds and what was measured, if there is a checkpoint of this run that can be read."""
        if not self.path.exists():
            return None
        try:
            learner = load(self.path)
        except UnavailableFileError:  # it may be as good as ever
            raise
        except MemoryFileError:  # such as a first checkpoint that a full disk cut short
            learner = None
        if learner is None or learner.progress["run"] != self.run:
            self.done()
            return None
        return learner, learner.progress["measured"]

    def save_if_due(self, learner: Saved, measured: dict[str, Any]) -> None:
        """Save what learns if it is time."""
        now = time.monotonic()
        if now - self._last < max(self.every, RARELY * self._took):
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        learner.save(self.path, {"run": self.run, "measured": measured})
        self._last = time.monotonic()
        self._took = self._last - now

    def done(self) -> None:
        """The run is recorded, or cannot be gone on with."""
        self.path.unlink(missing_ok=True)
