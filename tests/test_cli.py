"""The command line, as a user types it."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import recollect as rc
from recollect.cli import app, common
from recollect.lab import experiments, table1
from recollect.lab.continual import Continual, ContinualProfile

TINY = ContinualProfile(name="quick", seeds=1, tasks=2, train_examples=20, test_examples=30, matrix_examples=10)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = Continual(
        name="table1", title="Table 1", answers="?", rows=table1.ROWS, profiles={"quick": TINY}, notes=("A note.",)
    )
    monkeypatch.setitem(experiments.EXPERIMENTS, "table1", experiment)


def call(*arguments: str, code: int = 0) -> tuple[str, str]:
    result = CliRunner().invoke(app, [*arguments])
    assert result.exit_code == code, result.output
    return " ".join(result.stdout.split()), " ".join(result.stderr.replace("│", "").split())


RUN = ("run", "table1", "--profile", "quick", "--rows", "online", "--rows", "replay real")


def test_run_prints_one_json_object_and_table_the_same_again(tmp_path: Path):
    printed, said = call(*RUN, "--json", "--out", str(tmp_path), "--seeds", "2")
    found = json.loads(printed)
    assert (found["experiment"], found["profile"]) == ("table1", "quick")
    assert "2 of 6: " in said
    real, _, online = found["rows"]
    assert (real["name"], online["name"]) == ("Replay Real Storage 100", "Online")
    assert real["paper"] == 63.4
    assert (real["items"], real["bits_per_item"]) == (40, 6272)
    assert real["storage_examples"] == 40
    assert set(real["retention"]) == {"mean", "std", "each"}
    assert real["retention"]["mean"] == pytest.approx(sum(real["retention"]["each"]) / 2)
    assert real["seeds"] == [0, 1]
    assert real["seconds"] > 0
    again, said = call(*RUN, "--json", "--out", str(tmp_path), "--seeds", "2")
    assert json.loads(again) == found
    assert "6 of 6 runs are in" in said
    shown, _ = call("table", "table1", "--profile", "quick", "--results", str(tmp_path), "--json")
    assert json.loads(shown) == found


def test_every_experiment_prints_the_same_fields_whatever_it_measures():
    for name in ("compression", "sampling", "distillation", "self_stabilisation"):
        for row in json.loads(call("table", name, "--json")[0])["rows"]:
            assert {"name", "storage_examples", "items", "bits_per_item", "retention", "paper", "seeds", "seconds"} <= {
                *row
            }


@pytest.mark.parametrize("profile", ["quick", "standard"])
def test_the_table_has_the_papers_column_and_the_difference_where_the_stream_is_the_papers(
    profile: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(common.out, "width", 160)
    monkeypatch.setitem(experiments.EXPERIMENTS["table1"].profiles, profile, replace(TINY, name=profile))
    run = ("run", "table1", "--profile", profile, "--rows", "online", "--out", str(tmp_path))
    printed, _ = call(*run)
    found = json.loads(call(*run, "--json")[0])["rows"][0]
    kept = found["retention"]["mean"]
    for cell in ("Online", f"{kept:.1f}", "A note."):
        assert cell in printed
    for cell in ("paper", "difference", "51.9", f"{kept - 51.9:+.1f}"):
        assert (cell in printed) == (profile == "standard")


def test_list_says_what_there_is():
    printed, _ = call("list", "table2")
    assert "Replay Recollections 50" in printed
    assert "Same: Recollections 50" not in printed  # its runs are those of the other
    assert "3 x " in printed
    printed, _ = call("list")
    assert "table1" in printed


def test_plan():
    printed, _ = call("plan", "--shape", "3x32x32", "--storage", "200", "--items", "5000", "--json")
    assert json.loads(printed)["variables"] == 620
    printed, _ = call(
        "plan", "--shape", "3x32x32", "--storage", "200", "--variables", "76", "--categories", "2", "--count-codec"
    )
    assert printed.startswith("1,392 items of 76 variables with 2 values, 76 bits each")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "tabel1"), "'tabel1': accepted are table1"),
        (("run", "table1", "--profile", "slow"), "profile='slow': accepted are quick"),
        ((*RUN[:4], "--rows", "Gen"), "rows='Gen': accepted are parts of"),
        ((*RUN, "--device", "abacus"), "device='abacus': accepted are auto, cpu, cuda, mps, and one such as cuda:1"),
        ((*RUN, "--device", "meta"), "device='meta': accepted are auto, cpu"),
        ((*RUN, "--out", "/proc/runs"), "--out /proc/runs cannot be written"),
        (("table", "table1", "--profile", "quick", "--results", "."), ". has no runs of table1"),
        (
            ("table", "table1", "--profile", "quick", "--results", "nowhere"),
            "there is no folder nowhere: accepted is --results",
        ),
        (("plan", "--shape", "3by32", "--storage", "1", "--items", "1"), "shape='3by32': accepted is"),
        (("plan", "--shape", "3x32x32", "--storage", "1"), "plan() needs two of the three"),
        (("plan", "--shape", "3x32x32", "--storage", "1", "--items", "999999"), "no code shape fits"),
    ],
)
def test_mistakes_are_answered_with_what_is_accepted(arguments: tuple[str, ...], message: str):
    _, said = call(*arguments, code=2)
    assert message in said


def test_the_package_is_the_command_too():
    said = subprocess.run([sys.executable, "-m", "recollect", "--version"], capture_output=True, text=True, check=True)
    assert said.stdout == f"{rc.__version__}\n"
