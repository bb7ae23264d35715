"""What all tests share: one thread, the same examples every time, no time limit a busy machine could break."""

import os
from pathlib import Path
from typing import NamedTuple

import pooch
import pytest
import torch
from hypothesis import settings

import recollect as rc
from battery import CODECS, SHAPE, batches, replay

settings.register_profile("recollect", deadline=None, derandomize=True)
settings.load_profile("recollect")

# Tests are small, and may run on every core side by side; processes that they start are told the same.
torch.set_num_threads(1)
os.environ["OMP_NUM_THREADS"] = "1"

GRAYS = torch.arange(40) * 6  # of the images in the memory below, each one of its own


class Folders(NamedTuple):
    own: Path
    cache: Path


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folders:
    """Where data is looked for, with nothing in it."""
    own, cache = tmp_path / "own", tmp_path / "cache"
    own.mkdir()
    monkeypatch.setenv("RECOLLECT_DATA", str(own))
    monkeypatch.setattr(pooch, "os_cache", lambda project: cache)
    return Folders(own, cache)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where there is no file yet."""
    return tmp_path / "memory.rec"


@pytest.fixture
def memory(path: Path) -> rc.Memory:
    """40 gray images, labels 0 to 9, tasks 0 to 3, committed twice: the last image is in a patch."""
    memory = rc.Memory(rc.RawPixels(SHAPE), capacity=100, classes=10, tasks=4)
    images = (GRAYS / 255).view(-1, 1, 1, 1).expand(-1, *SHAPE)
    memory.write(images[:39], torch.arange(39) % 10, torch.arange(39) // 10)
    memory.commit(path)
    memory.write(images[39:], 9, 3)
    memory.commit(path)
    return memory


@pytest.fixture
def learner(path: Path) -> rc.Replay:
    """Trained on all batches, and saved."""
    learner = replay(CODECS["autoencoder"](), "balanced")
    for batch in batches():
        learner.observe(*batch)
    learner.save(path, {"batches": 8})
    return learner
