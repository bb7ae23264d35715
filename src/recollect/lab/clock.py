"""Time that is spent on one thing or another, added up over a run."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def timed(measured: object, name: str) -> Iterator[None]:
    """Add the seconds that pass inside to an attribute."""
    started = time.perf_counter()
    yield
    setattr(measured, name, getattr(measured, name) + time.perf_counter() - started)
