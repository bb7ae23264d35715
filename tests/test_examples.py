"""The examples run, show what they say, and write nowhere but into the folder that they are given."""

from __future__ import annotations

import re
import runpy
from functools import partial
from pathlib import Path

import pytest

import recollect as rc

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "working").mkdir()
    monkeypatch.chdir(tmp_path / "working")
    return tmp_path / "working"


def said(name: str, capsys: pytest.CaptureFixture[str], *folder: Path) -> str:
    runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"](*folder)
    assert not list(Path.cwd().iterdir())
    return capsys.readouterr().out


def percents(line: str) -> list[int]:
    return [int(number) for number in re.findall(r"(\d+)%", line)]


def test_what_came_first_is_kept_with_a_memory_only(capsys: pytest.CaptureFixture[str]):
    without, with_memory, _ = said("camera", capsys).splitlines()
    assert percents(with_memory)[0] > percents(without)[0] + 20


def test_the_loop_has_a_memory_of_what_it_saw(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    """On two short tasks: a codec that learns takes a minute for all of them."""
    few = partial(rc.streams.mnist_rotations, tasks=2, train_examples=50, test_examples=50)
    monkeypatch.setattr(rc.streams, "mnist_rotations", few)
    without, with_memory, kept = said("own_loop", capsys).splitlines()
    assert len(percents(without)) == len(percents(with_memory)) == 3
    assert percents(without) != percents(with_memory)
    assert kept.startswith("100 of 100 images are kept, their codes in the room of 3")


def test_what_was_stopped_ends_the_same(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    printed = said("stop_and_resume", capsys, tmp_path)
    assert "The same weights: True" in printed
    assert "The same memory: True" in printed


def test_a_new_model_is_taught_from_the_file(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    teacher, _, *students = said("teach_from_file", capsys, tmp_path).splitlines()
    assert len(students) == 2
    for student in students:
        assert percents(student)[0] > 0.8 * percents(teacher)[0]


def test_an_erased_person_is_gone_and_nobody_else(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    before, after = said("erase_a_person", capsys, tmp_path).split("Erased 40 images.")
    counts = [re.findall(r"(\w+) +(\d+) in memory, +(\d+) in the file", part) for part in (before, after)]
    assert counts[0] == [("Ada", "40", "40"), ("Blaise", "40", "40"), ("Carl", "40", "40")]
    assert counts[1] == [("Ada", "40", "40"), ("Blaise", "0", "0"), ("Carl", "40", "40")]


def test_every_example_is_run_here():
    tested = Path(__file__).read_text()
    assert all(f'"{path.stem}"' in tested for path in EXAMPLES.glob("*.py"))
