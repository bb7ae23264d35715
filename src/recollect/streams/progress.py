"""How far the reading of many images has come, for whoever waits longer than five seconds."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

T = TypeVar("T")
EVERY = 5.0  # seconds between two lines


def counted(items: Sequence[T], what: str) -> Iterator[T]:
    """The items, and every five seconds a line on the standard error stream that says how many were taken."""
    started = spoke = time.monotonic()
    for number, item in enumerate(items):
        if (now := time.monotonic()) - spoke >= EVERY and number:
            spoke = now
            left = (now - started) / number * (len(items) - number)
            print(f"{what}: {number:,} of {len(items):,} images, about {left:.0f} s left", file=sys.stderr, flush=True)
        yield item
