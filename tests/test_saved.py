"""What a file keeps beside a memory, and what cannot be opened though nothing in it is damaged."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
import torch

import recollect as rc
from battery import CODECS, SHAPE, batches, parameters, replay
from recollect.memory import file
from recollect.memory.file import MemoryFileError
from torture import raw, write


def trained() -> rc.Replay:
    learner = replay(CODECS["autoencoder"](), "reservoir")
    for batch in batches():
        learner.observe(*batch)
    return learner


def test_a_memory_that_forgets_leaves_the_learner_in_the_file(path: Path):
    learner = trained()
    learner.save(path, {"batches": 8})
    memory = rc.Memory.open(path)
    gone = memory.forget(task=3)
    memory.commit(path)
    loaded = rc.Replay.load(path)
    assert loaded.progress == {"batches": 8}
    assert torch.equal(parameters(loaded), parameters(learner))
    assert (len(loaded.memory), loaded.memory.audit) == (len(learner.memory) - gone, memory.audit)
    for batch in batches(2):
        loaded.observe(*batch)
    loaded.save(path)


def test_a_memory_that_saw_more_does_not_go_beside_an_older_learner(path: Path):
    learner = trained()
    learner.save(path)
    before = path.read_bytes()
    learner.observe(*batches()[0])
    with pytest.raises(MemoryFileError, match=r"learner, model, optimiser, state as of 24 examples.*has seen 27"):
        learner.memory.commit(path)
    assert path.read_bytes() == before
    learner.memory.commit(path.with_name("other.rec"))
    assert rc.Memory.open(path.with_name("other.rec")).seen == 27
    learner.memory.commit(path.with_name("other.rec"))


def test_what_is_opened_is_gone_on_with_by_patches(path: Path):
    raw(200).commit(path)
    for count in (1, 2):
        memory = rc.Memory.open(path)
        write(memory, 1, Random(count))
        memory.commit(path)
        with file.reading(path) as reader:
            assert (len([*reader.segments()]), len([*reader.patches()])) == (3, count)


class Mine(rc.RawPixels):
    """A codec of one's own."""


def test_a_codec_of_ones_own_is_not_damage(path: Path):
    memory = rc.Memory(Mine(SHAPE), capacity=12)
    memory.write(torch.rand(3, *SHAPE), 0)
    memory.commit(path)
    with pytest.raises(MemoryFileError, match=r"Mine, .* Memory.open\(path, codec=...\)") as caught:
        rc.Memory.open(path)
    assert "damaged" not in str(caught.value)
    assert len(rc.Memory.open(path, codec=Mine(SHAPE))) == 3


def test_a_learner_without_a_memory_is_not_damage(path: Path):
    rc.Online(rc.models.MLP(inputs=144, hidden=(4,))).save(path)
    with pytest.raises(MemoryFileError, match="holds no memory") as caught:
        rc.Memory.open(path)
    assert "damaged" not in str(caught.value)
