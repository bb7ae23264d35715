"""What a run tells TensorBoard: read back, it is what the run records."""

from __future__ import annotations

import importlib.util
import io
import json
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from PIL import Image

from commands import call
from recollect.lab import experiments, results
from test_lab import EXPERIMENT

needed = pytest.mark.skipif(importlib.util.find_spec("tensorboard") is None, reason="TensorBoard is not installed")
RUN = ("run", "tiny", "--profile", "tiny", "--seeds", "1")


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(experiments.EXPERIMENTS, "tiny", EXPERIMENT)


def told(folder: Path) -> Any:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # noqa: PLC0415

    return EventAccumulator(str(folder)).Reload()


@needed
def test_it_is_told_what_is_recorded(tmp_path: Path):
    runs, board = tmp_path / "runs", tmp_path / "board"
    call(*RUN, "--rows", "Recollections", "--out", runs, "--tensorboard", board)
    run = json.loads(results.path_of(runs, "tiny", "tiny", "Recollections", 0).read_text())
    found = told(board / "tiny" / "tiny" / "recollections" / "seed0")
    curves = {
        "accuracy/tasks so far": [fmean(line[:number]) for number, line in enumerate(run["accuracy"], 1)],
        "accuracy/all tasks": [fmean(line) for line in run["accuracy"]],
        "distortion/new": run["distortion"]["new"],
        "distortion/held": run["distortion"]["held"],
    }
    for name, curve in curves.items():
        assert [event.step for event in found.Scalars(name)] == [1, 2, 3]
        assert [event.value for event in found.Scalars(name)] == pytest.approx(curve, abs=1e-4)
    assert [event.value for event in found.Scalars("retention")] == pytest.approx([run["retention"]])
    matrix, sheet = (found.Images(name)[-1] for name in found.Tags()["images"])
    assert (matrix.height, matrix.width) == (36, 36)  # 12 pixels for each of three tasks
    with Image.open(io.BytesIO(sheet.encoded_image_string)) as image:
        left = np.asarray(image.convert("L"))
    with Image.open(results.sheet_of(results.path_of(runs, "tiny", "tiny", "Recollections", 0))) as image:
        assert np.array_equal(left, np.asarray(image))  # of the last task it is what the run leaves


@needed
def test_runs_side_by_side_have_folders_of_their_own(tmp_path: Path):
    call(
        *RUN, "--rows", "Online", "--rows", "EWC", "--out", tmp_path / "runs", "--tensorboard", tmp_path, "--jobs", "2"
    )
    for row in ("online", "ewc"):
        assert len(told(tmp_path / "tiny" / "tiny" / row / "seed0").Scalars("accuracy/all tasks")) == 3


def test_what_is_missing_is_said_before_anything_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("recollect.cli.experiments.find_spec", lambda name: None)
    asked = ("--out", tmp_path / "runs", "--tensorboard", tmp_path / "board")
    assert "pip install tensorboard" in call(*RUN, *asked, code=2)[1]
    said = call("run", "compression", "--profile", "quick", *asked, code=2)[1]
    assert "--tensorboard with compression: accepted are experiments on a stream" in said
    assert [*tmp_path.iterdir()] == []
