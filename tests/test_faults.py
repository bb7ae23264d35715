"""A commit that fails, for whatever reason and at whatever step, changes neither the file nor the memory."""

from __future__ import annotations

import copy
import functools
import gc
import resource
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

import recollect as rc
from recollect.memory import file
from recollect.memory.file import DamagedFileError, MemoryFileError
from test_kill import NOTHING, opened, state
from torture import fingerprint, learned, rounds, small_cache, write


def few(memory: rc.Memory) -> None:
    write(memory, 2, Random(1))


def many(memory: rc.Memory) -> None:
    write(memory, 200, Random(1))


def forget(memory: rc.Memory) -> None:
    few(memory)
    memory.forget(label=3)


CHANGES: dict[str, Callable[[rc.Memory], None] | None] = {"first": None, "few": few, "many": many, "forget": forget}


class Case:
    """A memory with something to commit, and what its file has before."""

    def __init__(self, path: Path, change: Callable[[rc.Memory], None] | None) -> None:
        self.path, self.memory = path, learned()
        write(self.memory, 500, Random(0))
        self.before = NOTHING
        if change is not None:
            self.memory.commit(path)
            self.before = self.found()
            change(self.memory)
        self.live = fingerprint(self.memory)

    def found(self) -> str:
        """The state in the file, or that there is none."""
        return state(opened(self.path))

    def check_unchanged(self) -> None:
        assert self.found() == self.before
        assert fingerprint(self.memory) == self.live
        assert {entry.name for entry in self.path.parent.iterdir()} <= {self.path.name}

    def check_next_commit(self) -> None:
        self.memory.commit(self.path)
        assert self.found() == fingerprint(self.memory) == self.live


@pytest.fixture(params=CHANGES)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Case:
    return Case(tmp_path / "memory.rec", CHANGES[request.param])


@contextmanager
def no_file_beyond(size: int) -> Iterator[None]:
    """As on a full disk: what lies behind so many bytes of any file cannot be written. Python ignores the signal."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def failure(case: Case) -> str | None:
    """With which message a commit fails, if it does."""
    try:
        case.memory.commit(case.path)
    except DamagedFileError:
        raise  # which the file is not
    except MemoryFileError as error:
        return str(error)
    return None


@pytest.mark.parametrize("early", [False, True], ids=["at its end", "in between"])
def test_a_full_disk(case: Case, early: bool, monkeypatch: pytest.MonkeyPatch):
    if early:
        monkeypatch.setattr(file, "_connect", small_cache)
    failures, step = 0, 1024 // rounds(1, 32)
    for size in range(0, 1 << 20, step):
        with no_file_beyond(size):
            message = failure(case)
        if message is None:
            break
        assert "full" in message or "disk I/O error" in message
        case.check_unchanged()
        failures += 1
    assert failures * step > 5000
    case.check_next_commit()


def test_an_error_at_every_step_of_sqlite(case: Case, monkeypatch: pytest.MonkeyPatch):
    """SQLite asks after each instruction of its machine whether to go on, and is told to stop after so many."""
    steps, connect = 0, file._connect

    def stopping(path: Path, mode: str) -> sqlite3.Connection:
        connection = connect(path, mode)
        left = iter(range(steps, -1, -1))
        connection.set_progress_handler(lambda: next(left, 1) == 0, 1)
        return connection

    with monkeypatch.context() as patched:
        patched.setattr(file, "_connect", stopping)
        while (message := failure(case)) is not None:
            assert "interrupted" in message
            with monkeypatch.context() as usual:
                usual.setattr(file, "_connect", connect)
                if case.found() == case.live:
                    break  # it was told so when it had just committed
                case.check_unchanged()
            steps += 1 if rounds(0, 1) else 13
    assert steps > 100
    case.check_next_commit()


class Interrupted(sqlite3.Connection):
    """Raises an interrupt before or after one of its calls."""

    calls, at, after = 0, 0, False

    def _call(self, method: Callable[..., Any], *arguments: object) -> Any:
        number = Interrupted.calls
        Interrupted.calls += 1
        if number == Interrupted.at and not Interrupted.after:
            raise KeyboardInterrupt
        result = method(*arguments)
        if number == Interrupted.at:
            raise KeyboardInterrupt
        return result

    def execute(self, *arguments: object) -> Any:
        return self._call(super().execute, *arguments)

    def executemany(self, *arguments: object) -> Any:
        return self._call(super().executemany, *arguments)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_an_interrupt_at_every_call(case: Case, after: bool, monkeypatch: pytest.MonkeyPatch):
    original, content = copy.deepcopy(case.memory), case.path.read_bytes() if case.path.exists() else None
    Interrupted.after, stopped = after, 0
    for at in range(100):
        Interrupted.calls, Interrupted.at = 0, at
        with monkeypatch.context() as patched:
            patched.setattr(sqlite3, "connect", functools.partial(sqlite3.connect, factory=Interrupted))
            try:
                case.memory.commit(case.path)
            except KeyboardInterrupt:
                stopped += 1
        if stopped == at:
            break
        assert case.found() in {case.before, case.live}
        assert fingerprint(case.memory) == case.live
        if case.found() == case.live:
            assert after
            case.check_next_commit()
            # From the start again, since this one was committed in spite of the interrupt.
            case.path.unlink() if content is None else case.path.write_bytes(content)
            case.memory = copy.deepcopy(original)
    assert stopped > 10


class LateConnection(sqlite3.Connection):
    """Raises an interrupt when it has just committed."""

    def execute(self, *arguments: Any) -> Any:
        result = super().execute(*arguments)
        if arguments[0] == "COMMIT":
            raise KeyboardInterrupt
        return result


Late = Callable[[Callable[[], object]], None]


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> Late:
    """Interrupts what it is given to call, too late to keep it from being committed."""

    def interrupted(call: Callable[[], object]) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(sqlite3, "connect", functools.partial(sqlite3.connect, factory=LateConnection))
            with pytest.raises(KeyboardInterrupt):
                call()

    return interrupted


def test_what_an_interrupt_left_of_a_first_commit_is_its_writers_alone(tmp_path: Path, late: Late):
    case, other = Case(tmp_path / "memory.rec", None), learned()
    late(lambda: case.memory.commit(case.path))
    assert case.found() == case.live
    with pytest.raises(MemoryFileError, match="exists"):
        other.commit(case.path)
    forget(case.memory)
    case.live = fingerprint(case.memory)
    case.check_next_commit()


def test_a_file_of_another_that_came_after_an_interrupt_is_not_written_over(tmp_path: Path, late: Late):
    case, other = Case(tmp_path / "memory.rec", None), learned()
    late(lambda: case.memory.commit(case.path))
    case.path.unlink()
    other.commit(case.path)
    with pytest.raises(MemoryFileError, match="exists"):
        case.memory.commit(case.path)
    assert case.found() == fingerprint(other)


def test_an_interrupt_of_a_first_commit_elsewhere_leaves_the_memory_at_home(tmp_path: Path, late: Late):
    case = Case(tmp_path / "memory.rec", few)
    late(lambda: case.memory.commit(tmp_path / "another.rec"))
    case.check_next_commit()


def test_a_learner_without_a_memory_goes_on_after_an_interrupt(tmp_path: Path, late: Late):
    learner = rc.Online(rc.models.MLP(inputs=4, hidden=(3,)))
    for number in range(2):
        late(lambda: learner.save(tmp_path / "learner.rec"))
        learner.save(tmp_path / "learner.rec", {"batches": number + 1})
        assert rc.Online.load(tmp_path / "learner.rec").progress == {"batches": number + 1}


def test_a_learner_that_an_interrupt_left_is_not_kept_beside_a_later_memory(tmp_path: Path, late: Late):
    memory = learned()
    learner = rc.Replay(
        rc.models.MLP(inputs=memory.codec.shape[1] * memory.codec.shape[2]), rc.RecollectionModule(memory)
    )
    late(lambda: learner.save(tmp_path / "learner.rec"))
    write(memory, 20, Random(0))
    with pytest.raises(MemoryFileError, match="holds average, learner"):
        memory.commit(tmp_path / "learner.rec")
    learner.save(tmp_path / "learner.rec", {"batches": 1})
    assert rc.Replay.load(tmp_path / "learner.rec").progress == {"batches": 1}


def test_an_interrupt_at_any_moment(tmp_path: Path):
    case = Case(tmp_path / "memory.rec", few)
    random, interrupts, tries = Random(0), 0, rounds(60, 5000)
    shortest = 0.03  # seconds that a commit takes on this machine at its quickest: it may be done before an interrupt

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    usual = signal.signal(signal.SIGALRM, interrupt)
    gc.disable()  # an interrupt would be lost in a callback of the collector, such as that of Hypothesis
    try:
        for number in range(tries):
            write(case.memory, random.choice([1, 50]), random)
            if number % 3 == 0:
                case.path, case.before = tmp_path / f"{number}.rec", NOTHING
            case.live = fingerprint(case.memory)
            try:
                started = time.perf_counter()
                signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-4, shortest))
                case.memory.commit(case.path)
                signal.setitimer(signal.ITIMER_REAL, 0)
                shortest = min(shortest, time.perf_counter() - started)
            except KeyboardInterrupt:
                interrupts += 1
                assert case.found() in {case.before, case.live}
                assert fingerprint(case.memory) == case.live
                case.check_next_commit()
            case.before = case.live
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, usual)
        gc.enable()
    assert interrupts > tries / 5


def test_places_that_cannot_be_written(tmp_path: Path):
    memory = learned()
    write(memory, 50, Random(0))
    live = fingerprint(memory)
    (tmp_path / "folder").mkdir()
    for place in (tmp_path / "folder", tmp_path / "none" / "memory.rec", Path("/proc/memory.rec")):
        with pytest.raises(MemoryFileError, match=str(place)):
            memory.commit(place)
    assert fingerprint(memory) == live
    memory.commit(tmp_path / "memory.rec")
    (tmp_path / "memory.rec").unlink()
    with pytest.raises(MemoryFileError, match="cannot be opened or written") as caught:
        memory.commit(tmp_path / "memory.rec")
    assert not isinstance(caught.value, DamagedFileError)
    assert not (tmp_path / "memory.rec").exists()
    memory.commit(tmp_path / "another.rec")
    assert fingerprint(rc.Memory.open(tmp_path / "another.rec")) == live


def test_what_is_there_before_the_first_commit(tmp_path: Path):
    path = tmp_path / "memory.rec"
    with pytest.raises(FileNotFoundError):
        rc.Memory.open(path)
    path.touch()
    with pytest.raises(MemoryFileError, match=r"memory.rec is empty: nothing was committed to it"):
        rc.Memory.open(path)
    memory = learned()
    memory.commit(path)
    assert fingerprint(rc.Memory.open(path)) == fingerprint(memory)
