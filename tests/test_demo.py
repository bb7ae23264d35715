"""The demonstration, on a stream small enough for a test."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from recollect.lab import demo


def test_it_writes_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    small = replace(demo.PROFILE, tasks=3, train_examples=40, test_examples=50)
    monkeypatch.setattr(demo, "PROFILE", small)
    monkeypatch.setattr(sys, "argv", ["demo", "--seed", "4", "--out", str(tmp_path)])
    monkeypatch.setenv("COLUMNS", "160")
    demo.main()
    printed = capsys.readouterr().out
    runs = [json.loads(path.read_text()) for path in tmp_path.rglob("seed4.json")]
    assert {run["row"]: (run["items"], run["bits_per_item"]) for run in runs} == {
        "Online": (0, 0),
        "Replay Real Storage 100": (100, 6272),
        "Replay Resized Pixels 100": (120, 196),
        "Replay Recollections 100": (120, 208),
    }
    for run in runs:
        assert f"{run['retention']:.1f}" in printed
    with Image.open(tmp_path / "recollections.png") as picture:
        assert picture.format == "PNG"
