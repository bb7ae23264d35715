"""What is shown while an experiment runs: all runs in one bar, and a bar for each that is under way."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from types import TracebackType

    from rich.console import Console

    from recollect.lab.job import AnyJob


QUIET = 60  # seconds without a line of a run, in a log


class Board:
    """Bars on a terminal, lines elsewhere."""

    def __init__(self, console: Console, jobs: list[AnyJob]) -> None:
        self.console = console
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[state]}"))
        self._progress = Progress(
            *columns, TimeRemainingColumn(elapsed_when_finished=True), console=console, disable=not console.is_terminal
        )
        # The whole is counted in expected seconds, since some rows take a hundred times as long as others.
        self._whole = self._progress.add_task("All runs", total=sum(job.cost for job in jobs), state="")
        self._bars: dict[int, TaskID] = {}
        self._done: dict[int, int] = {}
        self._said: dict[int, float] = {}  # when there was a line of a run last
        self._count, self._finished = len(jobs), 0

    def __enter__(self) -> Board:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def started(self, job: AnyJob) -> None:
        """A run begins."""
        self._bars[job.number] = self._progress.add_task(f"  {job.title}", total=job.steps, state="")
        self._done[job.number] = 0
        self._said[job.number] = time.monotonic()
        self._say_whole()

    def advanced(self, job: AnyJob, step: int, state: str) -> None:
        """A run has done so many of its steps. One that went on from a checkpoint has done some before."""
        bar = self._bars[job.number]
        done = self._done[job.number]
        self._done[job.number] = step
        self._progress.update(bar, completed=step, state=state)
        self._progress.update(self._whole, advance=(step - done) * job.cost / job.steps)
        quarters = [4 * number // job.steps for number in (done, step)]
        waited = time.monotonic() - self._said[job.number] > QUIET
        if not self.console.is_terminal and (waited or quarters[0] < quarters[1]) and step < job.steps:
            self.console.print(f"{job.title}: {state}", highlight=False, soft_wrap=True)
            self._said[job.number] = time.monotonic()

    def finished(self, job: AnyJob, headline: str, seconds: float) -> None:
        """A run is over and recorded."""
        self._finished += 1
        self._progress.remove_task(self._bars.pop(job.number))
        self._say_whole()
        self.console.print(
            f"{self._finished} of {self._count}: {job.title}: {headline} in {seconds:.0f} s",
            highlight=False,
            soft_wrap=True,  # a line of a log is one line
        )

    def _say_whole(self) -> None:
        self._progress.update(self._whole, state=f"{self._finished} of {self._count} runs")
