"""Ctrl-C that waits until a change is whole."""

from __future__ import annotations

import inspect
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType


# Every write asks: without the enumerations that Python wraps these in, which take twenty times as long.
handler_of, handle_by = inspect.unwrap(signal.getsignal), inspect.unwrap(signal.signal)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """What is done within is done to its end: an interrupt that comes meanwhile is raised after it.

    Only the main thread is interrupted, and only where Python handles the signal.
    """
    handler = handler_of(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    came: list[FrameType | None] = []
    handle_by(signal.SIGINT, lambda _, frame: came.append(frame))
    try:
        yield
    finally:
        handle_by(signal.SIGINT, handler)
        if came:
            handler(signal.SIGINT, came[0])
