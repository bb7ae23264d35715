"""The experiment on a user's own images, from a folder to the table."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import recollect as rc
from commands import call
from recollect.advice.fitting import fitted_pixels
from recollect.budget import raw_bits
from recollect.lab import own
from recollect.lab.runner import jobs_left

SHAPE = (1, 12, 12)


@pytest.fixture(autouse=True)
def _decoded_anew() -> None:
    own.decoded.cache_clear()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four classes of ten images, each class of a brightness of its own."""
    rng = np.random.default_rng(0)
    for label, name in enumerate(("ash", "elm", "fir", "oak")):
        place = tmp_path / "trees" / name
        place.mkdir(parents=True)
        for number in range(10):
            pixels = rng.integers(60 * label, 60 * label + 60, (20, 30, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(place / f"{number}.png")
    return tmp_path / "trees"


def arguments(folder: Path) -> list[str]:
    quick = ["--profile", "quick", "--json", "--out", str(folder.parent / "runs")]
    return ["run", "--stream", f"folder:{folder}", "--shape", "1x12x12", "--tasks", "2", "--storage", "4", *quick]


def test_a_folder_is_run_recorded_and_not_run_again(folder: Path):
    printed, _ = call(*arguments(folder))
    found = json.loads(printed)
    assert found["experiment"].startswith("own/trees-2-tasks-")
    assert found["profile"] == "quick"
    kinds = ["Real Storage", "Resized Pixels", "JPEG", "Recollections"]
    assert [row["name"] for row in found["rows"]] == ["Online", *(f"Replay {kind} 4" for kind in kinds)]
    for row in found["rows"][1:]:
        assert 3.5 < row["storage_examples"] <= 4
    again, said = call(*arguments(folder))
    assert json.loads(again) == found
    assert "5 of 5 runs are in" in said
    page = (folder.parent / "runs" / found["experiment"] / "report.html").read_text()
    assert all(row["name"] in page for row in found["rows"])
    assert f"recollect run --stream folder:{folder} --shape 1x12x12 --tasks 2 --storage 4 --profile quick" in page
    assert "ash, elm" in page  # a task, under what it holds
    assert "the paper" not in page.replace("as the paper counts", "")


def test_other_images_are_run_anew(folder: Path):
    def missing() -> int:
        own.decoded.cache_clear()
        made = own.experiment(folder, profile="quick", shape=SHAPE, tasks=2, storage=4)
        profile = made.profiles["quick"]
        return len(jobs_left(made, profile, [*made.chosen(profile)], None, folder.parent / "runs"))

    call(*arguments(folder), "--rows", "online")
    assert missing() == 4
    recorded = {path: path.read_bytes() for path in (folder.parent / "runs").rglob("*.json")}
    changed = folder / "oak" / "3.png"
    kept = changed.read_bytes()
    Image.new("RGB", (30, 20)).save(changed)  # in the place of another, which may be as large
    assert missing() == 5
    call(*arguments(folder), "--rows", "online")
    assert all(path.read_bytes() == content for path, content in recorded.items())
    changed.write_bytes(kept)
    assert missing() == 4


def test_every_row_takes_the_same_storage_and_is_the_best_of_its_kind():
    code = rc.plan(shape=(3, 16, 16), storage_examples=20, items=500)
    blocks = torch.rand(50, 3, 4, 4, generator=torch.Generator().manual_seed(0))
    x = blocks.repeat_interleave(4, 2).repeat_interleave(4, 3)
    for row in own.rows(20, code, x)[1:]:
        assert row.codec is not None
        codec = row.codec(code.shape, **row.code)
        bits = rc.bits_per_item(variables=codec.variables, categories=codec.categories)
        assert row.items * bits <= 20 * raw_bits(code.shape)
    # The images are 4 x 4 blocks: that many pixels lose only the rounding, in as many bits as there are for each.
    assert fitted_pixels(x, code.bits_per_item) == {"size": (4, 4), "bits": code.bits_per_item // 48}


def test_the_code_stays_small_however_large_the_images(folder: Path):
    for profile, most in (("quick", 250), ("standard", 1000)):
        made = own.experiment(folder, profile=profile, shape=(3, 64, 64), storage=10)
        pickle.dumps(made)  # as for runs side by side
        (learned,) = (row for row in made.rows if row.codec is rc.DiscreteAutoencoder)
        assert 0.98 * most <= rc.bits_per_item(**learned.code) <= most
        assert learned.items == 32  # as many as there are to learn from


def test_a_code_that_is_kept_small_leaves_room_for_more_items(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(own, "COMPRESSION", 4)
    made = own.experiment(folder, profile="quick", shape=(1, 16, 16), storage=2)
    (learned,) = (row for row in made.rows if row.codec is rc.DiscreteAutoencoder)
    assert rc.bits_per_item(**learned.code) <= 250
    assert learned.items == 16  # of 250 bits in 2 x 2,048, and not 8 of 512


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("run",), "no name: accepted is that of an experiment, or --stream folder:PATH"),
        (("run", "table1", "--storage", "5"), "--storage: accepted with --stream only"),
        (("run", "--stream", "nowhere"), "--stream nowhere: accepted is --stream folder:PATH"),
        (("run", "--stream", "folder:nowhere"), "nowhere is not a folder"),
        (
            ("run", "--stream", "folder:trees", "--profile", "paper"),
            "profile='paper': accepted are 'quick', 'standard'",
        ),
        (("run", "--stream", "folder:trees", "--shape", "3x1x4"), "height and width from 2 to 256"),
        (("run", "--stream", "folder:trees", "--tasks", "5"), "tasks=5: accepted are 1 to 4"),
        (("run", "--stream", "folder:trees", "--storage", "32"), "storage=32: accepted are 1 to 31"),
    ],
)
def test_mistakes_are_answered(options: tuple[str, ...], message: str, folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(folder.parent)
    _, said = call(*options, code=2)
    assert message in said
