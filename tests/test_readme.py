"""The README: its table is that of the recorded runs, and its code runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from PIL import Image

import recollect as rc
from recollect.lab.experiments import EXPERIMENTS
from recollect.lab.tables import DOCUMENTS, FIGURES, blocks, digest, recorded, rendered

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


@pytest.mark.parametrize("name", DOCUMENTS)
def test_tables_are_those_of_the_recorded_runs(name: str):
    document = (ROOT / name).read_text()
    assert rendered(document, blocks(ROOT / "results")) == document, "run `make tables`"


def test_every_table_has_a_place():
    documents = "".join((ROOT / name).read_text() for name in DOCUMENTS)
    for name in blocks(ROOT / "results"):
        assert f"<!-- {name} -->" in documents
        assert f"<!-- /{name} -->" in documents


def test_figures_are_those_of_the_recorded_runs():
    for name, experiment in EXPERIMENTS.items():
        found, _ = recorded(experiment, ROOT / "results")
        if found and experiment.figure(found) is not None:
            with Image.open(FIGURES / f"{name}.png") as picture:
                assert picture.info["Description"] == digest(found), f"{name}: run `make tables`"


def test_the_code_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    small = rc.streams.mnist_rotations(tasks=2, train_examples=30)
    monkeypatch.setattr(rc.streams, "mnist_rotations", lambda seed: small)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    for block in blocks:
        exec(block, names)
        memory = names["memory"]
        assert isinstance(memory, rc.Memory)
        if "print(memory.footprint())" in block:
            assert len(memory) == 60
            assert str(memory.footprint()) in capsys.readouterr().out
    assert "620 3 983" in capsys.readouterr().out
    digits = torch.cat([task.train.y for task in small])
    memory = names["memory"]
    assert isinstance(memory, rc.Memory)
    assert len(memory) == int((digits != 7).sum())


def test_links_lead_somewhere():
    for link in re.findall(r"\]\((?!https?:)([^)]+)\)", README):
        assert (ROOT / link).exists(), link
