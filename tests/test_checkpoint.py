"""Runs that are stopped inside, in any way, end bit for bit as runs that never were."""

from __future__ import annotations

import copy
import itertools
import os
import random
import resource
import signal
import sqlite3
import time
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch

import recollect as rc
from battery import parameters
from processes import start, wait
from recollect.lab.checkpoint import EVERY, RARELY, Checkpoint, Saved
from recollect.lab.continual import ContinualRow
from recollect.lab.job import Job
from recollect.lab.run import ContinualRun, execute
from test_lab import EXPERIMENT, PROFILE, ROWS

REHEARSING = ContinualRow(
    name="Rehearsing GEM",
    learner=rc.GEM,
    settings={"memory_batch": 3, "batch_size": 4},
    codec=rc.DiscreteAutoencoder,
    code={"variables": 8, "categories": 2},
    training={"steps": 2},
    admission="ring",
    items=12,
)
STOPPABLE = [*ROWS[:-1], REHEARSING]


def checkpoint(folder: Path, run: str = "this") -> Checkpoint:
    return Checkpoint(folder / "run.rec", {"run": run}, every=0)


def make(row: ContinualRow, saved: Checkpoint | None) -> tuple[rc.Learner, ContinualRun]:
    job = Job(experiment=EXPERIMENT, profile=PROFILE, row=row, seed=0)
    return execute(EXPERIMENT.course, job, checkpoint=saved)


def without_times(run: ContinualRun) -> dict[str, Any]:
    timed = {"seconds", "evaluation_seconds", "examples_per_second"}
    return {name: value for name, value in asdict(run).items() if name not in timed}


class StoppedError(Exception):
    pass


class Stopping(Checkpoint):
    """Stops the run after so many batches, having saved it at some of them."""

    def __init__(self, folder: Path, after: int, saves: set[int]) -> None:
        super().__init__(folder / "run.rec", {"run": "this"}, every=0)
        self.after, self.saves, self.batches = after, saves, 0

    def save_if_due(self, learner: Saved, measured: dict[str, Any]) -> None:
        self.batches += 1
        self._took = 0.0
        if self.batches in self.saves:
            super().save_if_due(learner, measured)
        if self.batches == self.after:
            raise StoppedError


@pytest.mark.parametrize("row", STOPPABLE, ids=lambda row: row.name)
def test_a_run_stopped_twice_ends_as_one_never_stopped(row: ContinualRow, tmp_path: Path):
    rng = random.Random(row.name)
    whole, expected = make(row, None)
    left = 9  # batches
    for _ in range(2):
        after = rng.randint(1, left)
        saves = {rng.randint(1, after)}
        with pytest.raises(StoppedError):
            make(row, Stopping(tmp_path, after, saves))
        left -= max(saves)
        if left == 0:
            break
    learner, run = make(row, checkpoint(tmp_path))
    assert without_times(run) == without_times(expected)
    assert torch.equal(parameters(learner), parameters(whole))
    if learner.memory is not None and whole.memory is not None:
        ours, theirs = copy.deepcopy(learner.memory).sample(30), copy.deepcopy(whole.memory).sample(30)
        assert torch.equal(ours.x, theirs.x)
        assert torch.equal(learner.memory.ids, whole.memory.ids)


@pytest.mark.parametrize("row", [-1, 4], ids=lambda row: STOPPABLE[row].name)
def test_a_run_killed_at_any_moment_ends_as_one_never_killed(row: int, tmp_path: Path):
    wait(start(kill_often, row, tmp_path))  # torch's threads do not survive a fork: whoever forks has none


def kill_often(row: int, folder: Path) -> None:
    torch.set_num_threads(1)
    expected = without_times(make(STOPPABLE[row], None)[1])
    rng = random.Random(0)
    for _ in range(6):
        child = os.fork()
        if child == 0:
            make(STOPPABLE[row], checkpoint(folder))
            os._exit(0)
        time.sleep(rng.random() * 0.15)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert without_times(make(STOPPABLE[row], checkpoint(folder))[1]) == expected


@pytest.mark.parametrize("after", [0, 4], ids=["at the first checkpoint", "at a later one"])
def test_a_run_that_a_full_disk_stopped_ends_as_one_never_stopped(after: int, tmp_path: Path):
    wait(start(fill_the_disk, after, tmp_path))


def fill_the_disk(after: int, folder: Path) -> None:
    torch.set_num_threads(1)
    row = ROWS[1]
    expected = without_times(make(row, None)[1])
    if after:
        with pytest.raises(StoppedError):
            make(row, Stopping(folder, after, saves={after}))
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, unlimited[1]))
    with pytest.raises(rc.MemoryFileError):
        make(row, checkpoint(folder))
    resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    assert without_times(make(row, checkpoint(folder))[1]) == expected


def test_a_checkpoint_of_another_run_or_one_that_is_damaged_is_not_gone_on_from(tmp_path: Path):
    with pytest.raises(StoppedError):
        make(ROWS[1], Stopping(tmp_path, after=4, saves={2, 4}))
    assert checkpoint(tmp_path).resumed(rc.Learner.load) is not None
    assert checkpoint(tmp_path, run="another").resumed(rc.Learner.load) is None
    assert not (tmp_path / "run.rec").exists()
    (tmp_path / "run.rec").write_bytes(b"SQLite format 3\0" + bytes(5000))
    assert checkpoint(tmp_path).resumed(rc.Learner.load) is None


def test_a_checkpoint_that_is_in_use_is_not_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(StoppedError):
        make(ROWS[1], Stopping(tmp_path, after=4, saves={2, 4}))
    monkeypatch.setattr("recollect.memory.file.WAIT", 0.01)
    with closing(sqlite3.connect(tmp_path / "run.rec")) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(rc.MemoryFileError, match="in use by another process"):
            checkpoint(tmp_path).resumed(rc.Learner.load)
    assert checkpoint(tmp_path).resumed(rc.Learner.load) is not None


def test_checkpoints_are_as_rare_as_they_are_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    clock, saved = [0.0], []
    monkeypatch.setattr("recollect.lab.checkpoint.time.monotonic", lambda: clock[0])
    saver = Checkpoint(tmp_path / "run.rec", {})
    learner = rc.Online(rc.models.MLP())

    def slow(path: Path, progress: object) -> None:
        saved.append(clock[0])
        clock[0] += 2.0

    monkeypatch.setattr(learner, "save", slow)
    while clock[0] < 1000:
        saver.save_if_due(learner, {})
        clock[0] += 1
    gaps = [after - before for before, after in itertools.pairwise(saved)]
    assert saved[0] == EVERY
    assert min(gaps) >= 2.0 * RARELY
    assert 2.0 * len(saved) / 1000 < 0.03
