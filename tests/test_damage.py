"""Damage at random is harmless or reported; it is never taken for what was committed."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

import recollect as rc
from battery import LEARNERS, RULES, batches, parameters
from damages import DAMAGES, damage
from recollect.memory.examination import Examination
from recollect.memory.file import MemoryFileError
from torture import REALS, change, codec, coded, fingerprint, learned, memory_limit, raw, rounds, write

ROOM = 64 << 20  # bytes that may be allocated on the way; the files have less than 50 KB


@dataclass(frozen=True)
class Original:
    """A file with some history, how it is opened, and what it then gives."""

    path: Path
    earlier: Path
    load: Callable[[Path], Any]
    look: Callable[[Any], str]
    state: str


def memory_file(folder: Path, name: str, memory: rc.Memory, given: Callable[[], rc.Codec | None]) -> Original:
    path, earlier, random = folder / f"{name}.rec", folder / f"{name}-earlier.rec", Random(0)
    write(memory, 500, random)
    for number in range(6):
        change(memory, random)
        if memory.admission == "chosen":
            memory.keep(random.sample(memory.ids.tolist(), len(memory) // 2))
        memory.forget(label=number) if memory.classes else memory.forget(ids=[number], task=2)
        memory.commit(path)
    shutil.copy(path, earlier)
    for count in (40, 1):  # segments, then a patch
        write(memory, count, random)
        memory.commit(path)
    return Original(path, earlier, lambda path: rc.Memory.open(path, codec=given()), fingerprint, fingerprint(memory))


def learner_file(folder: Path) -> Original:
    path, earlier, learner = folder / "learner.rec", folder / "learner-earlier.rec", LEARNERS["replay-raw-ring"]()
    for x, y, task in batches():
        if path.exists():
            shutil.copy(path, earlier)
        learner.observe(x, y, task)
        learner.save(path)

    def look(learner: rc.Learner) -> str:
        assert learner.memory is not None
        return f"{fingerprint(learner.memory)} {parameters(learner).tolist()}"

    return Original(path, earlier, rc.Replay.load, look, look(learner))


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> list[Original]:
    folder = tmp_path_factory.mktemp("originals")
    raws = [memory_file(folder, rule, raw(200, rule), lambda: None) for rule in RULES]
    others = {"reals": raw(200, targets=REALS), "none": raw(200, "ring", targets=rc.NoTargets())}
    raws += [memory_file(folder, name, memory, lambda: None) for name, memory in others.items()]
    raws += [memory_file(folder, f"coded-{rule}", coded(rule=rule), lambda: None) for rule in ("reservoir", "balanced")]
    with_weights = memory_file(folder, "learned", learned(), codec)
    rc.Memory.open(with_weights.path)  # before memory is limited: PyTorch imports a lot for the first network
    return [*raws, with_weights, learner_file(folder)]


@pytest.mark.parametrize("how", DAMAGES, ids=[how.__name__ for how in DAMAGES])
def test_damage_is_harmless_or_reported(how: Callable[[Any], None], originals: list[Original], tmp_path: Path):
    random, outcomes, path = Random(how.__name__), Counter[str](), tmp_path / "memory.rec"
    for number in range(rounds(2_000, 100_000) // len(DAMAGES)):
        original = originals[number % len(originals)]
        shutil.copy(original.path, path)
        damage(how, path, original.earlier, random)
        try:
            with memory_limit(ROOM):
                opened = original.load(path)
        except MemoryFileError:
            outcomes["reported"] += 1
            if outcomes["reported"] % 5 == 0:
                check_that_it_is_found(path)
            continue
        assert original.look(opened) == original.state
        outcomes["harmless"] += 1
        if outcomes["harmless"] % 10 == 0 and isinstance(opened, rc.Memory):
            check_that_it_goes_on(opened, original, path, random)
    assert outcomes["harmless"] == 0 or how.__name__ not in {"swapped", "deleted"}
    assert outcomes["reported"] > 0 or how.__name__ == "longer"


def check_that_it_is_found(path: Path) -> None:
    """What opening stops at, a look at the whole file finds too; that it is no file of a memory is an error to both."""
    with suppress(MemoryFileError), memory_limit(ROOM):
        assert Examination(path).damage


def check_that_it_goes_on(memory: rc.Memory, original: Original, path: Path, random: Random) -> None:
    """Where nothing was noticed the next commit works too, or what is wrong is noticed then."""
    change(memory, random)
    with suppress(MemoryFileError):
        Examination(path)
        memory.commit(path)
        assert original.look(original.load(path)) == fingerprint(memory)
