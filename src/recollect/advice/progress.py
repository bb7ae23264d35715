"""How far the trials have come, for whoever waits longer than five seconds."""

from __future__ import annotations

import sys
import time

EVERY = 5.0  # seconds between two lines


class Progress:
    """Every five seconds a line on the standard error stream."""

    def __init__(self, trials: int) -> None:
        self.trials = trials
        self._number, self._name, self._examples, self._done = 0, "", 0, 0
        self._started = self._spoke = time.monotonic()

    def begin(self, name: str, examples: int) -> None:
        """The next trial begins, with so many examples to be observed."""
        self._number += 1
        self._name, self._examples, self._done = name, examples, 0

    def observed(self, count: int) -> None:
        """So many more."""
        self._done += count
        if (now := time.monotonic()) - self._spoke >= EVERY:
            self._spoke = now
            text = f"Trial {self._number} of {self.trials}, {self._name}: {self._done / self._examples:.0%}"
            print(f"{text}, {now - self._started:.0f} s so far", file=sys.stderr, flush=True)
