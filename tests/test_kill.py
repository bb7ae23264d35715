"""Killed at any moment, a writer leaves the state it committed last, or the one it was committing, and nothing else."""

from __future__ import annotations

import itertools
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

import recollect as rc
from recollect.memory.file import MemoryFileError
from torture import change, codec, fingerprint, learned, rounds

NOTHING = "nothing was committed"


class Writers:
    """Processes that commit until they are killed; see writer.py."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.orders, self.ends = process.stdin, process.stdout
        self.path, self.log = folder / "memory.rec", folder / "log"
        self.log.touch()

    def start(self, seed: int, seconds: float) -> None:
        """Have a writer started, and killed so long after its first commit began."""
        order = {"path": str(self.path), "log": str(self.log), "seed": seed, "seconds": seconds}
        self.orders.write(f"{json.dumps(order)}\n")
        self.orders.flush()

    @property
    def killed(self) -> bool:
        """Whether it was."""
        return bool(select.select([self.ends], [], [], 0)[0])

    def wait(self) -> None:
        """Until it is dead; it must not have died of itself."""
        assert self.ends.readline().strip() == str(-signal.SIGKILL)

    def states(self) -> tuple[list[str], str | None]:
        """The states that were committed, and the one that was about to be."""
        lines = self.log.read_text().split()
        flying = lines.pop() if lines and lines[-1] != "done" else None
        return [state for state, after in itertools.pairwise(lines) if after == "done"], flying


@pytest.fixture(scope="module")
def process() -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, str(Path(__file__).with_name("writer.py"))]
    pipe, environment = subprocess.PIPE, {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment) as started:
        yield started


@pytest.fixture
def writers(process: subprocess.Popen[str], tmp_path: Path) -> Writers:
    return Writers(process, tmp_path)


def opened(path: Path) -> rc.Memory | None:
    """The memory that a file has; None if it says that nothing was committed to it, or is not there."""
    try:
        return rc.Memory.open(path, codec=codec())
    except FileNotFoundError:
        return None
    except MemoryFileError as error:
        if NOTHING not in str(error):
            raise
        return None


def state(memory: rc.Memory | None) -> str:
    return NOTHING if memory is None else fingerprint(memory)


def journal_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-journal")


def check_damaged_journal(path: Path, folder: Path, states: set[str | None], random: Random) -> None:
    """A kill and a disk that errs: what is left to undo is itself damaged, in a copy of the files."""
    copy = folder / path.name
    copy.write_bytes(path.read_bytes())
    journal = bytearray(journal_of(path).read_bytes())
    if journal and random.random() < 0.3:
        del journal[random.randrange(len(journal)) :]
    for _ in range(random.choice([0, 1, 20]) if journal else 0):
        journal[random.randrange(len(journal))] ^= 1 << random.randrange(8)
    journal_of(copy).write_bytes(journal)
    with suppress(MemoryFileError):
        assert state(opened(copy)) in states
    journal_of(copy).unlink(missing_ok=True)


def test_after_a_kill_the_file_has_the_last_commit_and_takes_the_next(writers: Writers, tmp_path: Path):
    path, copies = writers.path, tmp_path / "copies"
    copies.mkdir()
    random, count, last, seconds, kills = Random(0), Counter[str](), NOTHING, 0.05, rounds(80, 10_000)
    for number in range(kills):
        if number % 5 == 0:  # a first commit is killed too
            path.unlink(missing_ok=True)
            last = NOTHING
        writers.log.write_bytes(b"")
        writers.start(seed=number, seconds=random.uniform(0, 2 * seconds))
        writers.wait()

        finished, flying = writers.states()
        last = finished[-1] if finished else last
        count["in a commit"] += flying is not None
        if journal_of(path).exists():
            count["with a journal"] += 1
            check_damaged_journal(path, copies, {last, flying}, random)
        memory = opened(path)
        assert state(memory) in {last, flying}
        count["before it counted"] += flying is not None and state(memory) == last

        memory = learned() if memory is None else memory
        change(memory, random)
        began = time.perf_counter()
        memory.commit(path)
        seconds = time.perf_counter() - began
        last = fingerprint(memory)
    # The moments were as random as they should be.
    assert min(count[kind] for kind in ("in a commit", "with a journal", "before it counted")) > 0


def test_readers_see_whole_commits_while_another_process_writes(writers: Writers):
    learned().commit(writers.path)
    seen: list[str] = []
    for seed in itertools.count():
        writers.start(seed, seconds=1)
        while not writers.killed:
            finished, _ = writers.states()
            seen.append(state(opened(writers.path)))
            begun = [line for line in writers.log.read_text().split() if line != "done"]
            # By the last time that it began: what a kill undid may begin again, where no example is admitted.
            order = {state: number for number, state in enumerate(begun)}
            if finished:  # nothing older than what was finished when the reader came, or than what was read before
                assert order[seen[-1]] >= order[finished[-1]]
                assert order[seen[-1]] >= order.get(seen[-2], -1)
        writers.wait()
        if len(set(seen)) > rounds(10, 1000):
            break
