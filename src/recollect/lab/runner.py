"""Runs rows x seeds, each written as soon as it is finished; what is there already is not run again."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import traceback
from functools import partial
from queue import Empty
from typing import TYPE_CHECKING, Any

import torch

from recollect.lab import results
from recollect.lab.checkpoint import Checkpoint
from recollect.lab.job import CPU, Job
from recollect.lab.progress import Board
from recollect.lab.shelf import Shelf
from recollect.memory.file import MemoryFileError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from rich.console import Console

    from recollect.lab.experiment import AnyExperiment, Profile, Report, Row
    from recollect.lab.job import AnyJob

    Record = Callable[[Any], object]


class RunError(RuntimeError):
    """A run that could not be made. Those that were finished are recorded."""


# A worker has one thread, in numpy, too, whose products would wait for each other's threads many times as long as they
# take. And it keeps the memory that a step gives back for the next one: of a ResNet-18 on 20 images thousands of
# pages, and to get them from the system anew takes its time. Read when a process starts; MALLOC_* are glibc's.
ENVIRONMENT = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1") | {
    "MALLOC_MMAP_THRESHOLD_": str(2**25),
    "MALLOC_TRIM_THRESHOLD_": str(2**30),
    "MALLOC_TOP_PAD_": str(2**26),
}


def jobs_left(
    experiment: AnyExperiment,
    profile: Profile,
    rows: Sequence[Row],
    seeds: int | None,
    folder: Path,
    *,
    device: torch.device = CPU,
) -> list[AnyJob]:
    """What is not recorded yet, seed after seed, the longest runs of a seed first so that cores end together."""
    longest_first = sorted(experiment.distinct(profile, rows), key=lambda row: -experiment.cost(profile, row))
    missing = [
        (seed, row)
        for seed in range(profile.seeds if seeds is None else seeds)
        for row in longest_first
        if seed in profile.seeds_of(row, seeds) and results.read(folder, experiment, profile, row, seed) is None
    ]
    jobs = []
    for number, (seed, row) in enumerate(missing):
        path = results.kept_at(folder, experiment, profile, row, seed)
        jobs.append(
            Job(
                number=number,
                experiment=experiment,
                profile=profile,
                row=row,
                seed=seed,
                device=device,
                saved=path.with_suffix(".rec"),
                sheet=results.sheet_of(path) if seed == 0 else None,
                shelf=Shelf(folder / "shared"),
            )
        )
    return jobs


def run(jobs: list[AnyJob], record: Record, *, workers: int, console: Console) -> None:
    """Make the runs, in this process or on ``workers`` processes with a thread each; ``record`` writes each of them."""
    with Board(console, jobs) as board:
        if workers == 1:
            for job in jobs:
                board.started(job)
                board.finished(job, *_make(job, record, partial(board.advanced, job)))
        elif jobs:
            _side_by_side(jobs, record, min(workers, len(jobs)), board)


def _make(job: AnyJob, record: Record, report: Report) -> tuple[str, float]:
    checkpoint = None if job.saved is None else Checkpoint(job.saved, job.described)
    made = job.experiment.execute(job, report, checkpoint)
    record(made)
    if checkpoint is not None:
        checkpoint.done()
    return made.headline, made.seconds


def _side_by_side(jobs: list[AnyJob], record: Record, workers: int, board: Board) -> None:
    context = multiprocessing.get_context("spawn")
    waiting, messages = context.Queue(), context.Queue()
    # Not as an argument: many jobs fill a pipe, and a worker would be waited for until it has started to read.
    for job in (*enumerate(jobs), *[None] * workers):
        waiting.put(job)
    processes = [context.Process(target=_work, args=(waiting, messages, record), daemon=True) for _ in range(workers)]
    try:
        _start(processes)
        left = len(jobs)
        while left:
            if died := [process.exitcode for process in processes if process.exitcode]:
                raise RunError(f"a worker ended with exit code {died[0]}")
            try:
                number, event, *details = messages.get(timeout=1)
            except Empty:
                continue
            if event == "failed":
                raise RunError(f"{jobs[number].title} failed: {details[0]}")
            getattr(board, event)(jobs[number], *details)
            left -= event == "finished"
    finally:
        waiting.cancel_join_thread()  # nobody takes the rest
        for process in processes:
            if process.pid is not None:
                process.terminate()
                process.join()


def _start(processes: list[Any]) -> None:
    """Start the workers in their environment, deaf to Ctrl-C, which is for the parent: it ends them."""
    heard, before = signal.signal(signal.SIGINT, signal.SIG_IGN), dict(os.environ)
    os.environ |= ENVIRONMENT
    try:
        for process in processes:
            process.start()
    finally:
        signal.signal(signal.SIGINT, heard)
        for name in ENVIRONMENT:
            os.environ.pop(name)
        os.environ |= {name: before[name] for name in ENVIRONMENT if name in before}


def _work(waiting: Any, messages: Any, record: Record) -> None:
    """A worker: one run after the other, until there are none."""
    torch.set_num_threads(1)
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    for number, job in iter(waiting.get, None):
        messages.put((number, "started"))
        try:
            kept = _make(job, record, partial(_tell, messages, number))
        except (MemoryFileError, OSError) as error:  # such as a full disk
            messages.put((number, "failed", str(error)))
            return
        except Exception:
            messages.put((number, "failed", f"\n{traceback.format_exc()}"))
            return
        messages.put((number, "finished", *kept))


def _end_with_the_parent() -> None:
    """A command that was killed may be given again at once: nobody else may then be writing the same checkpoints."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _tell(messages: Any, number: int, step: int, state: str) -> None:
    messages.put((number, "advanced", step, state))
