"""What is shown while a large file is read or written."""

from __future__ import annotations

import time
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from recollect.memory.file import Watch

EVERY = 5.0  # seconds between two lines
BAR_EVERY = 0.1  # seconds between two changes of a bar


@contextmanager
def waiting(console: Console, what: str, total: int | None = None) -> Iterator[Watch]:
    """A bar on a terminal, gone when all is done, and elsewhere a line every five seconds.

    What is given back is to be told how many of the ``total`` bytes were read; without a total the bar only moves.
    """
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    bar = progress.add_task(what, total=total)
    started = shown = time.monotonic()
    done, over = 0, Event()

    def watch(size: int) -> None:
        nonlocal done, shown
        done += size
        if (now := time.monotonic()) - shown >= BAR_EVERY:
            shown = now
            progress.update(bar, completed=done)

    def say() -> None:
        while not over.wait(EVERY):
            share = f", {done / total:.0%}" if total else ""
            seconds = f"{time.monotonic() - started:.0f} s so far"
            console.print(f"{what}: {seconds}{share}", highlight=False, markup=False, soft_wrap=True)

    speaker = Thread(target=say, daemon=True)
    if not console.is_terminal:
        speaker.start()
    try:
        with progress:
            yield watch
    finally:
        over.set()
