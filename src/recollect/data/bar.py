"""How far a download is, on a terminal. Apart from the download, since rich is slow to load and seldom needed."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

if TYPE_CHECKING:
    from collections.abc import Iterator


class Bar:
    """A bar of rich as pooch moves it."""

    def __init__(self, progress: Progress, description: str) -> None:
        self._progress = progress
        self._task = progress.add_task(description, total=None)

    @property
    def total(self) -> float | None:
        """The bytes to come."""
        return self._progress.tasks[self._task].total

    @total.setter
    def total(self, size: int) -> None:
        self._progress.update(self._task, total=size)

    def update(self, size: int) -> None:
        """So many bytes more have come."""
        self._progress.advance(self._task, size)

    def reset(self) -> None:
        """Back to no bytes at all; pooch then says how many there were."""
        self._progress.reset(self._task)

    def close(self) -> None:
        """Nothing: the bar is closed where it was opened."""


@contextmanager
def shown(description: str) -> Iterator[Bar]:
    """A bar on a terminal, and nothing elsewhere."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal) as progress:
        yield Bar(progress, description)
