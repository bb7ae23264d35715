"""Experiments of distillation: rows against the paper's tables, small runs against the library's own parts."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from typer.testing import CliRunner

import recollect as rc
from recollect.cli import app, common
from recollect.data import mnist, omniglot
from recollect.distillation import BufferSampling, CodeSampling, nearest_neighbour_distortion
from recollect.lab import (
    classroom,
    distillation,
    distillation_active,
    distillation_mlp,
    distillation_omniglot,
    experiments,
    lesson,
    progress,
    results,
    runner,
    sampling,
    student,
)
from recollect.lab.distilling import Distillation, DistillationProfile, DistillationRow
from recollect.lab.job import Job
from recollect.lab.representing import SamplingProfile
from recollect.lab.shelf import Shelf
from recollect.seeding import derived
from recollect.streams import Examples, Task

TINY = DistillationProfile(
    name="quick",
    seeds=1,
    train_examples=200,
    test_examples=300,
    teacher_epochs=1,
    codec_epochs=1,
    episodes=100,
    batch_size=10,
)
ROWS = {row.name: row for row in distillation.ROWS}

# The paper's tables, as they are printed: episodes, then a column for each row.
CNN = """
10 & 10.43 & 9.94 & 11.07 & 10.70 & 10.07 & 10.65 & 10.99 & 13.89
100 & 19.63 & 18.16 & 22.82 & 22.35 & 25.32 & 19.34 & 16.20 & 21.06
1000 & 90.45 & 88.88 & 90.71 & 89.93 & 91.01 & 90.66 & 90.52 & 90.03
10000 & 97.11 & 96.83 & 95.98 & 94.97 & 97.42 & 96.77 & 96.37 & 95.65
100000 & 98.51 & 97.99 & 96.14 & 94.92 & 98.63 & 98.59 & 98.17 & 97.75
"""
MLP = """
10 & 13.64 & 17.04 & 14.57 & 15.13 & 15.87 & 16.70 & 11.80 & 14.66
100 & 36.37 & 37.04 & 38.35 & 34.04 & 38.56 & 37.16 & 40.09 & 42.31
1000 & 80.54 & 79.08 & 78.18 & 77.76 & 80.00 & 80.72 & 80.00 & 77.75
10000 & 91.04 & 90.84 & 88.38 & 86.83 & 90.86 & 91.37 & 90.60 & 90.46
100000 & 96.66 & 95.02 & 91.61 & 88.97 & 96.60 & 96.71 & 96.24 & 95.22
"""
CHOSEN = """
10 & 10.43 & 10.07 & 9.95 & 10.19 & 10.67 & 11.51
100 & 19.63 & 25.32 & 14.80 & 22.57 & 27.05 & 29.93
1000 & 90.45 & 91.01 & 93.45 & 92.97 & 94.81 & 92.54
10000 & 97.11 & 97.42 & 98.61 & 97.53 & 98.59 & 97.66
100000 & 98.51 & 98.63 & 99.18 & 98.25 & 99.20 & 98.32
"""
COLUMNS = "Real data, 10 % sample, 2 % sample, 1 % sample, Real x, teacher y, 10x compress, 50x compress, 100x compress"
NAMES = COLUMNS.replace("x, t", "x; t").split(", ")
CHOSEN_NAMES = "Real data, Real x; teacher y, Active 10x, Active 100x, Active & diverse 10x, Active & diverse 100x"


def columns(table: str, names: list[str]) -> dict[str, dict[int, float]]:
    lines = [[float(cell) for cell in line.split("&")] for line in table.strip().splitlines()]
    named = (name.replace(";", ",") for name in names)
    return {name: {int(line[0]): line[number] for line in lines} for number, name in enumerate(named, 1)}


@pytest.mark.parametrize(
    ("rows", "table", "names"),
    [
        (distillation.ROWS, CNN, NAMES),
        (distillation_mlp.ROWS, MLP, NAMES),
        (distillation_active.ROWS, CHOSEN, CHOSEN_NAMES.split(", ")),
    ],
    ids=["CNN", "MLP", "active"],
)
def test_the_rows_are_the_papers(rows: tuple[DistillationRow, ...], table: str, names: list[str]):
    expected = columns(table, names)
    assert {row.name: row.paper for row in rows if row.name in expected} == expected
    shared = {row.name: row.paper for row in distillation.ROWS}
    assert all(row.paper == shared[row.name] for row in rows if row.paper and row.name not in expected)


def total(row: DistillationRow, images: int) -> float:
    """Bits of everything that a row keeps of so many images."""
    codec = row.codec((1, 28, 28), **row.code)
    each = rc.bits_per_item(variables=codec.variables, categories=codec.categories, scheme="binary")
    return round(row.share * images) * each + codec.storage_bits


@pytest.mark.parametrize(("rows", "images"), [(distillation.ROWS, 50_000), (distillation_omniglot.ROWS, 29_214)])
def test_storage_is_what_the_names_say_and_controls_take_no_more(rows: tuple[DistillationRow, ...], images: int):
    named = {row.name: row for row in rows}
    for times, percent in ((10, 10), (50, 2), (100, 1)):
        learned, small = named[f"{times}x compress"], named[f"Pixels {times}x"]
        assert images * 6272 / total(learned, images) == pytest.approx(times, rel=0.05)
        assert total(small, images) <= total(learned, images)
        assert total(named[f"{percent} % sample"], images) == pytest.approx(images * 6272 / times, rel=1e-3)


@pytest.mark.parametrize("name", ["Pixels 100x, coded", "Sketches 100x"])
def test_what_is_coded_is_all_kept_and_billed_with_what_it_is_coded_by(name: str):
    room = classroom.Classroom(lesson.MNIST, of(ROWS[name]))
    prepared = room.prepared()
    run, memory = room.recorded(prepared, lambda step, state: None), prepared.memory
    assert memory is not None
    held, (codes, y) = memory.recollections(), (mnist("train").images[:200].float() / 255, mnist("train").y[:200])
    assert held is not None
    order = held.ids.argsort()
    written = torch.Generator().manual_seed(derived(0, "sample that is kept"))
    kept = torch.randperm(200, generator=written)
    assert torch.equal(held.x[order], prepared.codec.decode(prepared.codec.encode(codes[kept])))
    assert torch.equal(held.y[order], y[kept])
    bill = memory.footprint()
    assert run.bits == {"codes": bill.codes, "codec": 0, "tables": bill.tables}
    assert run.compression == pytest.approx(200 * 6272 / (bill.codes + bill.tables))


def test_omniglot_has_the_papers_numbers():
    found = {row.name: row.paper[1_000_000] for row in distillation_omniglot.ROWS if row.paper}
    samples = {"10 % sample": 28.87, "2 % sample": 8.88, "1 % sample": 5.99}
    assert found == samples | {"10x compress": 87.86, "50x compress": 74.03, "100x compress": 51.45}
    shapes = {row.name: row.code["variables"] for row in distillation_omniglot.ROWS if row.learns}
    assert shapes == {"10x compress": 134, "50x compress": 50, "100x compress": 32}


def test_sampling_has_the_papers_numbers():
    found = {row.name: (row.paper_reconstruction, row.paper_neighbour) for row in sampling.ROWS}
    small = {"Code sampling 38x2": (0.058, 0.074), "Buffer sampling 38x2": (0.058, 0.054)}
    assert found == small | {"Code sampling 168x2": (0.021, 0.081), "Buffer sampling 168x2": (0.021, 0.021)}


def of(row: DistillationRow) -> Job[DistillationRow, DistillationProfile]:
    return Job(experiment=distillation.EXPERIMENT, profile=TINY, row=row, seed=0)


def test_a_sample_is_kept_once_and_drawn_at_random_with_its_labels():
    job = of(replace(ROWS["10 % sample"], share=0.1))
    memory = classroom.Classroom(lesson.MNIST, job).prepared().memory
    assert memory is not None
    held = memory.recollections()
    assert held is not None
    images, y = mnist("train").images[:200].float() / 255, mnist("train").y[:200]
    where = [int((images == x).flatten(1).all(1).nonzero()) for x in held.x]
    assert len(set(where)) == 20
    assert where != sorted(where)
    assert held.y.tolist() == y[where].tolist()
    other = classroom.Classroom(lesson.MNIST, replace(job, seed=1)).prepared().memory
    assert other is not None
    assert not torch.equal(other.sample(5).x, memory.sample(5).x)


def test_learning_rates_are_chosen_on_images_that_nothing_else_sees():
    material = lesson.MNIST.load(None, None, None)
    assert len(material.train) == 50_000
    assert material.held_out is not None
    assert torch.equal(material.held_out.images, mnist("train").images[50_000:])
    assert torch.equal(material.train.images, mnist("train").images[:50_000])
    run = distillation.EXPERIMENT.execute(of(ROWS["1 % sample"]))
    assert run.episodes == [10, 30, 100]
    for number, rate in enumerate(run.learning_rates):
        held_out = {rate: accuracies["held-out"][number] for rate, accuracies in run.curves.items()}
        assert held_out[f"{rate:g}"] == max(held_out.values())
        assert run.accuracy[number] == run.curves[f"{rate:g}"]["test"][number]


def test_accuracy_is_that_of_a_student_trained_by_hand():
    row = replace(ROWS["Real data"], student=rc.models.MLP)
    run = distillation.EXPERIMENT.execute(of(row))
    memory = classroom.Classroom(lesson.MNIST, of(row)).prepared().memory
    assert memory is not None
    model = rc.models.MLP(seed=derived(0, "student"))
    drawn = rc.distillation.DecodedSampling(memory, seed=0)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(10):
        batch = drawn.sample(10)
        assert batch.y is not None
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(model(batch.x), batch.y).backward()
        optimiser.step()
    images, y = mnist("test").images[:300].float() / 255, mnist("test").y[:300]
    right = float((model(images).argmax(1) == y).double().mean())
    assert run.curves["0.001"]["test"][-1] == pytest.approx(100 * right, abs=0.4)  # one of them


def run_all(experiment: Any, profile: Any, folder: Path, workers: int = 1) -> None:
    jobs = runner.jobs_left(experiment, profile, experiment.chosen(profile), None, folder)
    console = Console(file=io.StringIO(), width=200)
    runner.run(jobs, partial(results.write, folder), workers=workers, console=console)


SMALL_CODE = {"codec": rc.DiscreteAutoencoder, "code": {"variables": 8, "categories": 2}}
SMALL = Distillation(
    name="small",
    title="?",
    answers="?",
    profiles={"quick": TINY},
    rows=(
        replace(ROWS["100x compress"], **SMALL_CODE),
        replace(ROWS["100x compress"], name="Active", sampling=("diverse", "active"), **SMALL_CODE),
        replace(ROWS["100x compress"], name="DPP", sampling=("diverse (DPP)",), **SMALL_CODE),
        ROWS["1 % sample"],
    ),
)


def test_teacher_and_codec_are_made_once_and_a_stopped_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    stop_at = 3
    curve, made = student.curve, []

    def counted(*arguments: Any, **more: Any) -> dict[str, Any]:
        made.append(more["learning_rate"])
        if len(made) == stop_at + 1:
            raise KeyboardInterrupt
        return curve(*arguments, **more)

    monkeypatch.setattr(classroom, "curve", counted)
    with pytest.raises(KeyboardInterrupt):
        run_all(SMALL, TINY, tmp_path)
    assert len([*(tmp_path / "small").rglob("seed0.json")]) == 1
    run_all(SMALL, TINY, tmp_path)
    assert len(made) == 2 * len(SMALL.rows) + 1  # the student that was stopped began again, no other
    kinds = [path.name.split("-")[0] for path in (tmp_path / "shared").glob("*.safetensors")]
    assert sorted(kinds) == ["codec"] * 4 + ["student"] * 8 + ["teacher"]
    unbroken = tmp_path / "unbroken"
    run_all(SMALL, TINY, unbroken)
    for path in (tmp_path / "small").rglob("seed0.json"):
        one, two = (json.loads(file.read_text()) for file in (path, unbroken / path.relative_to(tmp_path)))
        assert one["accuracy"] == two["accuracy"]
        assert one["curves"] == two["curves"]
    figure = SMALL.figure(results.summaries(tmp_path, SMALL, TINY, SMALL.chosen(TINY)))
    assert figure is not None
    (axes,) = figure.axes
    labels = [line.get_label() for line in axes.lines if not str(line.get_label()).startswith("_")]
    assert labels == [row.name for row in SMALL.rows]


def test_whoever_waits_is_told_what_is_being_made(monkeypatch: pytest.MonkeyPatch):
    told: list[tuple[int, str]] = []
    distillation.EXPERIMENT.execute(of(ROWS["100x compress"]), lambda step, state: told.append((step, state)))
    before = [state for step, state in told if step == 0]
    assert before[0] == "codec"
    assert "codec, learning rate 0.001, epoch 1 of 1" in before
    assert before[-2:] == ["teacher", "teacher, epoch 1 of 1"]
    # In a log a run that is quiet for long has a line, too.
    monkeypatch.setattr(progress, "QUIET", -1)
    log, job = io.StringIO(), of(ROWS["100x compress"])
    with progress.Board(Console(file=log), [job]) as board:
        board.started(job)
        for step, state in told:
            board.advanced(job, step, state)
    assert "100x compress, seed 0: teacher, epoch 1 of 1\n" in log.getvalue()


def test_runs_side_by_side_share_what_they_need(tmp_path: Path):
    few = replace(SMALL, rows=SMALL.rows[:2])
    run_all(few, TINY, tmp_path, workers=2)
    kinds = [path.name.split("-")[0] for path in (tmp_path / "shared").glob("*.safetensors")]
    assert sorted(kinds) == ["codec"] * 4 + ["student"] * 4 + ["teacher"]
    one, two = (json.loads(path.read_text()) for path in sorted(tmp_path.rglob("seed0.json")))
    assert one["teacher"] == two["teacher"]
    assert one["codec"] == two["codec"]


def test_sampling_measures_what_its_samplers_draw(tmp_path: Path):
    profile = SamplingProfile(**vars(TINY), samples=30)
    code, buffer = (replace(row, code=SMALL_CODE["code"]) for row in sampling.ROWS[:2])
    chosen = replace(sampling.EXPERIMENT, rows=(code, buffer), profiles={"quick": profile})
    run_all(chosen, profile, tmp_path)
    by_code, by_buffer = (summary.runs[0] for summary in results.summaries(tmp_path, chosen, profile, [code, buffer]))
    of_code, of_buffer = (
        classroom.Classroom(
            lesson.MNIST, Job(experiment=chosen, profile=profile, row=row, seed=0, shelf=Shelf(tmp_path / "shared"))
        )
        for row in (code, buffer)
    )
    train, test = (mnist(part).images[:count].float() / 255 for part, count in (("train", 200), ("test", 300)))
    prepared = of_buffer.prepared()
    assert prepared.memory is not None
    drawn = BufferSampling(prepared.memory).sample(30).x
    assert by_buffer.neighbour == pytest.approx(nearest_neighbour_distortion(drawn, train), abs=1e-6)
    codec = of_code.prepared().codec
    assert by_code.neighbour == pytest.approx(
        nearest_neighbour_distortion(CodeSampling(codec, seed=0).sample(30).x, train), abs=1e-6
    )
    lost = float((codec.decode(codec.encode(test)) - test).abs().mean())
    assert by_code.reconstruction == pytest.approx(lost, rel=0.02)  # other draws
    assert by_code.bits == {"codes": 0, "codec": codec.storage_bits}
    assert by_buffer.bits["codes"] == 200 * 8


def two_tasks(tasks: int = 2, **_: object) -> list[Task]:
    """A small stream in the manner of Omniglot: digits, five classes a task."""
    digits = mnist("train")
    of_task = [((digits.y[:400] // 5) == task).nonzero()[:, 0] for task in range(tasks)]
    return [
        Task(
            name=f"task {task}",
            train=Examples(digits.images[rows[:40]], digits.y[rows[:40]]),
            test=Examples(digits.images[rows[40:60]], digits.y[rows[40:60]]),
            classes=tuple(range(5 * task, 5 * task + 5)),
        )
        for task, rows in enumerate(of_task)
    ]


@pytest.fixture
def small_omniglot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rc.streams, "omniglot", two_tasks)
    lesson._omniglot.cache_clear()


Call = Callable[..., dict[str, Any]]


@pytest.fixture
def call(tmp_path: Path) -> Call:
    def called(*arguments: str) -> dict[str, Any]:
        result = CliRunner().invoke(app, [*arguments, "--json"])
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    return called


@pytest.mark.usefixtures("small_omniglot")
def test_the_command_runs_omniglot_with_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call):
    profile = replace(
        distillation_omniglot.QUICK,
        tasks=2,
        teacher_epochs=1,
        codec_epochs=1,
        episodes=30,
        rows=("1 %", "100x compress"),
    )
    experiment = replace(distillation_omniglot.EXPERIMENT, profiles={"quick": profile})
    monkeypatch.setitem(experiments.EXPERIMENTS, "distillation_omniglot", experiment)
    found = call("run", "distillation_omniglot", "--profile", "quick", "--out", str(tmp_path))
    sample, compressed = found["rows"]
    assert (sample["items"], compressed["items"]) == (1, 80)
    assert sample["teacher"] == [None]
    assert compressed["teacher"][0]["accuracy"] >= 0
    assert compressed["paper"] == {"1000000": 51.45}
    assert compressed["episodes"] == [10, 30]
    assert compressed["learning_rates"] == [[1e-3, 1e-3]]
    assert call("table", "distillation_omniglot", "--profile", "quick", "--results", str(tmp_path)) == found


@pytest.mark.usefixtures("folders")
def test_missing_drawings_are_said_before_anything_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    nowhere = {name: part._replace(url="http://127.0.0.1:9/nothing.zip") for name, part in omniglot.ARCHIVES.items()}
    monkeypatch.setattr(omniglot, "ARCHIVES", nowhere)
    monkeypatch.setattr(runner, "run", lambda *arguments, **more: pytest.fail("it was run"))
    lesson._omniglot.cache_clear()
    arguments = ["run", "distillation_omniglot", "--profile", "quick", "--out", str(tmp_path / "out"), "--jobs", "2"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert "RECOLLECT_DATA" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("name", ["distillation", "distillation_mlp"])
def test_the_command_runs_mnist(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call):
    experiment = experiments.EXPERIMENTS[name]
    monkeypatch.setitem(experiments.EXPERIMENTS, name, replace(experiment, profiles={"quick": TINY}))
    arguments = ("--profile", "quick", "--rows", "pixels 100x", "--rows", "1 %")
    found = call("run", name, *arguments, "--out", str(tmp_path))
    sample, pixels = found["rows"]
    assert (sample["items"], pixels["items"]) == (2, 200)
    assert pixels["bits"] == {"codes": 200 * 56, "codec": 0}
    assert pixels["compression"] == pytest.approx(112)
    assert len(pixels["accuracy"]) == 3
    monkeypatch.setattr(common.out, "width", 200)
    result = CliRunner().invoke(app, ["run", name, *arguments, "--out", str(tmp_path)])
    shown = sample["accuracy"][0]["mean"]
    assert f"{shown:.1f} ({sample['paper']['10']:.1f})" in result.stdout


def test_the_code_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[1] / "docs" / "distillation.md").read_text()
    (block,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    names: dict[str, Any] = {}
    exec(block, names)
    untaught = rc.models.MLP()
    pairs = zip(names["student"].parameters(), untaught.parameters(), strict=True)
    assert not any(torch.equal(ours, theirs) for ours, theirs in pairs)
