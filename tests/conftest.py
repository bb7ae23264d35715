"""Settings for all tests: the same examples every time, and no time limit a busy machine could break."""

from pathlib import Path
from typing import NamedTuple

import pooch
import pytest
from hypothesis import settings

settings.register_profile("recollect", deadline=None, derandomize=True)
settings.load_profile("recollect")


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
