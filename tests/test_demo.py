"""The demonstration, on a stream small enough for a test."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from PIL import Image

import recollect as rc
from recollect.lab import demo, demo_tuning

RESULTS = Path(__file__).parents[1] / "results" / "demo"


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = rc.streams.mnist_rotations

    def few(seed: int, *, validation: bool = False) -> list[rc.streams.Task]:
        return whole(seed, tasks=3, train_examples=40, validation=validation)

    monkeypatch.setattr(rc.streams, "mnist_rotations", few)


@pytest.mark.usefixtures("small")
def test_it_writes_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(sys, "argv", ["demo", "--seed", "4", "--out", str(tmp_path)])
    demo.main()
    printed = capsys.readouterr().out
    run = json.loads((tmp_path / "seed4.json").read_text())
    online, real, small_pixels, recollections = run["rows"]
    assert run["seed"] == 4
    assert {"torch", "recollect", "cpu"} <= set(run["environment"])
    assert (online["items"], online["storage_examples"]) == (0, 0)
    assert (real["items"], real["bits_per_item"], real["storage_examples"]) == (100, 6272, 100)
    assert (small_pixels["items"], small_pixels["bits_per_item"]) == (120, 196)
    assert (recollections["items"], recollections["bits_per_item"]) == (120, 208)
    for row in run["rows"]:
        assert 0 < row["retention"] < 100
        assert f"{row['retention']:.1f} %" in printed
    with Image.open(tmp_path / "recollections.png") as picture:
        assert picture.format == "PNG"


@pytest.mark.usefixtures("small")
def test_tuning_goes_on_where_it_was_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    out = tmp_path / "tuning.json"
    monkeypatch.setattr(sys, "argv", ["tuning", "--out", str(out)])
    monkeypatch.setattr(demo_tuning, "ROWS", demo.ROWS[:1])
    demo_tuning.main()
    recorded = json.loads(out.read_text())
    assert len(recorded["trials"]) == len(demo_tuning.grid())
    recorded["trials"][0]["retention"] = 99.0  # would be overwritten if it were run again
    last = recorded["trials"].pop()
    out.write_text(json.dumps(recorded))
    demo_tuning.main()
    again = json.loads(out.read_text())["trials"]
    assert again[:-1] == recorded["trials"]
    assert again[-1]["retention"] == last["retention"]


def test_recollections_are_ahead_of_real_images_by_ten_points_on_every_recorded_seed():
    runs = [json.loads(path.read_text()) for path in sorted(RESULTS.glob("seed*.json"))]
    assert len(runs) >= 3
    for run in runs:
        kept = {row["name"]: row["retention"] for row in run["rows"]}
        assert kept["Replay, recollections"] - kept["Replay, real images"] >= 10


def test_the_demo_s_settings_are_those_that_were_best_on_held_out_images():
    recorded = json.loads((RESULTS / "tuning.json").read_text())
    best = demo_tuning.best([demo_tuning.Trial(**trial) for trial in recorded["trials"]])
    assert {row.name: (row.learning_rate, row.batch_size) for row in demo.ROWS} == best
