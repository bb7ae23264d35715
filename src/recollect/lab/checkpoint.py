"""A run that is stopped goes on from its last checkpoint, and ends as if it had never been stopped."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import recollect as rc

if TYPE_CHECKING:
    from pathlib import Path

    import torch

EVERY = 30.0  # seconds between checkpoints at least
RARELY = 50  # and so many times as long as the last one took: they cost less than 2 % of a run


class Checkpoint:
    """A file that a learner is saved to every now and then, with what was measured so far.

    Args:
        path: the file, which `done` removes.
        run: what tells this run from all others; a file of another run is not gone on from.
        every: seconds between checkpoints at least.
    """

    def __init__(self, path: Path, run: dict[str, Any], *, every: float = EVERY) -> None:
        self.path, self.run, self.every = path, run, every
        self._last, self._took = time.monotonic(), 0.0

    def resumed(self, device: torch.device) -> tuple[rc.Learner, dict[str, Any]] | None:
        """The learner and what was measured, if there is a checkpoint of this run that can be read."""
        if not self.path.exists():
            return None
        try:
            learner = rc.Learner.load(self.path, device=device)
        except rc.MemoryFileError:  # such as a first checkpoint that a full disk cut short
            learner = None
        if learner is None or learner.progress["run"] != self.run:
            self.done()
            return None
        return learner, learner.progress["measured"]

    def save_if_due(self, learner: rc.Learner, measured: dict[str, Any]) -> None:
        """Save the learner if it is time."""
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
