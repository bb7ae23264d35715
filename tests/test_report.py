"""The report: its numbers are those of the records, its figures hold what was recorded, and it needs nothing else."""

from __future__ import annotations

import base64
import io
import json
import re
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from PIL import Image
from rich.console import Console

import recollect as rc
from commands import call
from recollect.lab import ageing, experiments, panels, results, runner, sheet, stream_pictures, svg, table2
from recollect.lab.codec_experiment import CodecExperiment, CodecProfile, CodecRow
from recollect.lab.codec_run import CodecRun
from recollect.lab.experiment import AnyExperiment
from recollect.lab.results import Summary
from test_lab import EXPERIMENT, PROFILE, ROWS

ROOT = Path(__file__).parents[1]
VOID = {"meta", "link", "img", "br"}


class Page(HTMLParser):
    """What a page holds, after making sure that its elements are closed in order and its names are used once."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)
        assert self.open == []
        assert len(self.names) == len(set(self.names))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def names(self) -> list[str | None]:
        return [attributes["id"] for _, attributes in self.found if "id" in attributes]

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for kind, attributes in self.found if kind == tag]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of every learner on three small tasks."""
    folder = tmp_path_factory.mktemp("runs")
    jobs = runner.jobs_left(EXPERIMENT, PROFILE, list(ROWS), 2, folder)
    runner.run(jobs, partial(results.write, folder), workers=1, console=Console(file=io.StringIO()))
    return folder


@pytest.fixture(scope="module")
def page(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Page:
    path = tmp_path_factory.mktemp("page") / "report.html"
    with pytest.MonkeyPatch.context() as patch:
        only(EXPERIMENT, patch)
        said = call("report", folder, "--out", path)[0]
    assert said.startswith(str(path))
    return Page(path.read_text(encoding="utf-8"))


def only(experiment: AnyExperiment, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*experiments.EXPERIMENTS]:
        monkeypatch.delitem(experiments.EXPERIMENTS, name)
    monkeypatch.setitem(experiments.EXPERIMENTS, experiment.name, experiment)


def test_it_has_the_cells_of_the_table_and_every_row(page: Page, folder: Path):
    for summary in results.summaries(folder, EXPERIMENT, PROFILE, list(ROWS)):
        assert summary.row.name in page.texts
        assert {*EXPERIMENT.cells(summary.row, summary.runs)} <= {*page.texts}
    assert "Block" in page.texts
    assert sum(tag == "table" for tag, _ in page.found) == 1


def test_it_needs_nothing_else_and_its_links_lead_somewhere(page: Page):
    links = [value or "" for _, attributes in page.found for name, value in attributes.items() if "href" in name]
    sources = [image["src"] or "" for image in page.all("img")]
    assert all(link.startswith(("#", "data:")) for link in [*links, *sources])
    assert {link[1:] for link in links if link.startswith("#")} <= {*page.names}
    assert page.all("script") == []
    assert not any("http" in text for text in page.texts)


def test_every_figure_is_said_in_words(page: Page, folder: Path):
    said = [figure["aria-label"] or "" for figure in page.all("svg")]
    assert all(len(words) > 20 for words in said)
    runs = [json.loads(path.read_text()) for path in sorted(folder.glob("tiny/tiny/gem/seed*.json"))]
    last = sum(sum(run["accuracy"][-1]) / 3 for run in runs) / 2
    assert any(re.search(rf"GEM [\d.]+ to {last:.3g}\b", words) for words in said)
    assert all(image["alt"] for image in page.all("img"))


def test_what_was_run_is_told(page: Page, folder: Path):
    text = " ".join(page.texts)
    runs = [json.loads(path.read_text()) for path in folder.rglob("seed*.json")]
    for run in runs:
        assert run["environment"]["cpu"] in text
        assert run["environment"]["date"] in text
    assert f"{len(runs)} runs" in text
    assert "recollect run tiny --profile tiny" in text
    assert "Still to be run" not in text


def test_what_is_missing_or_of_another_version_is_told(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    more = replace(
        EXPERIMENT, profiles={"tiny": replace(PROFILE, seeds=3)}, rows=(*ROWS[:2], replace(ROWS[2], items=9))
    )
    only(more, monkeypatch)
    call("report", folder, "--out", tmp_path / "report.html")
    text = " ".join(Page((tmp_path / "report.html").read_text()).texts)
    assert "Online (1 of 3), Replay (1 of 3), GEM (3 of 3)" in text
    assert "8 recorded with other settings" in text  # four rows of two seeds


def test_rows_beside_the_paper(page: Page):
    said = [figure["aria-label"] or "" for figure in page.all("svg")]
    assert any("in raw images: Replay" in words for words in said)
    assert "50.0" in page.texts  # what the paper has


def test_the_gallery_shows_originals_above_recollections(page: Page, folder: Path):
    sheets = [*folder.rglob("*.png")]
    assert [path.parent.name for path in sheets] == ["recollections"]  # real images would be shown twice
    tiles = sheet.read_tiles(sheets[0])
    assert [tile.address for tile in tiles] == [image["src"] for image in page.all("img")]
    stream = rc.streams.mnist_rotations(0, tasks=3, train_examples=30, test_examples=40)
    images = {bytes(image.flatten().tolist()) for task in stream for image in task.train.images}
    for tile in tiles:
        assert tile.task in {task.name for task in stream}
        with Image.open(io.BytesIO(base64.b64decode(tile.address.partition(",")[2]))) as image:
            pixels = np.asarray(image.convert("L"))  # WebP has no greys
        assert pixels.shape == (56, 56)
        assert pixels[:28, :28].tobytes() in images
        assert pixels[28:, :28].tobytes() not in images


def test_a_sheet_holds_what_the_memory_recollects():
    stream = rc.streams.mnist_rotations(0, tasks=3, train_examples=4, test_examples=1)
    memory = rc.Memory(rc.ResizedPixels((1, 28, 28), size=(7, 7), bits=3), capacity=20, classes=10, tasks=3)
    memory.write(*stream[0].train[:4], 0)
    memory.write(*stream[1].train[:1], 1)
    pixels = sheet.draw_sheet(memory, stream)
    batch = memory.recollections()
    assert batch is not None
    oldest, newest = int(batch.ids.argmin()), int((batch.ids == 3).nonzero())
    recollected = (255 * batch.x[[oldest, newest], 0]).round().byte()
    assert pixels.shape == (1, 56, 112)
    assert torch.equal(pixels[0, :28, :56], torch.cat([*stream[0].train.images[[0, 3], 0]], dim=1))
    assert torch.equal(pixels[0, 28:, :56], torch.cat([*recollected], dim=1))
    assert pixels[0, :, 84:].count_nonzero() == 0  # there is no second item of the second task


def test_codecs_on_a_stream_have_their_pictures():
    code = {"variables": 8, "categories": 2}
    row = CodecRow(name="Online", code=code, training={})
    profile = CodecProfile(name="tiny", seeds=1, tasks=2)
    experiment = CodecExperiment(name="codecs", title="?", answers="?", rows=(row,), profiles={"tiny": profile})
    run = CodecRun(
        experiment="codecs",
        profile="tiny",
        row="Online",
        seed=0,
        validation=False,
        amounts={},
        settings={},
        seconds=1.0,
        environment={},
        distortion=[0.3, 0.25],
        by_task=[[0.3], [0.4, 0.1]],
        items=0,
        bits_per_item=0,
        storage_examples=0.0,
        bits={"codes": 0, "codec": 2 * 24576, "total": 2 * 24576},
        evaluation_seconds=1.0,
        examples_per_second=1.0,
    )
    curve, matrix, bill = experiment.pictures([Summary(row, [run])])
    assert curve.panels[0].said.endswith("Online 0.3 to 0.25")
    assert "in the end 0.25 on average, the first task 0.4" in matrix.panels[1].said
    assert bill.panels[0].said.endswith("Online 2.0")


@pytest.mark.parametrize("name", ["Online", "Replay Recollections, CIFAR-10 Transfer"])
def test_a_figure_is_brought_to_the_width_of_a_panel_with_whole_names_below(name: str):
    figure = Figure(figsize=(9, 4), layout="constrained")
    axes = figure.subplots()
    for number in range(4):
        axes.plot([0, 1], [0, number], label=f"{name} {number}")
    axes.set(title="A block", xlabel="tasks", ylabel="error")
    axes.legend(title="hollow: the paper")
    (panel,) = panels.pictured([figure]).panels
    assert (panel.title, axes.get_title(), axes.get_legend()) == ("A block", "", None)
    assert figure.get_size_inches()[0] == panels.WIDTH
    figure.draw_without_rendering()
    (legend,) = figure.legends
    assert legend.get_title().get_text() == "hollow: the paper"
    assert legend.get_window_extent().x1 <= figure.bbox.x1
    assert legend.get_window_extent().y1 <= axes.get_window_extent().y0


def test_a_figure_in_a_page_has_its_ink_and_font_and_names_of_its_own():
    figure = Figure(figsize=(3, 2))
    axes = figure.subplots()
    axes.plot([0, 1], [0.12345, 0.5], marker="o", color="#d0524b", label="a < b & c")
    axes.text(0.5, 0.3, "0.12345")
    axes.legend()
    drawn = svg.inline(figure, 'a "word"', "one-")
    page = Page(drawn)
    assert page.found[0][1]["aria-label"] == 'a "word"'
    assert {"a < b & c", "0.12345"} <= {*page.texts}
    assert "#000000" not in drawn
    assert "font-family" not in drawn
    used = re.findall(r"(?:url\(|href=\")#([^)\"]+)", drawn)
    assert used
    assert {*used} == {*page.names}
    assert all(name.startswith("one-") for name in used)
    assert drawn == svg.inline(figure, 'a "word"', "one-")


def test_the_recorded_runs_of_the_project_fit_a_small_page(tmp_path: Path):
    call("report", ROOT / "results", "--out", tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size < 13_000_000  # a row of photographs shows 0.2 MB of recollections
    Page((tmp_path / "report.html").read_text())


@pytest.mark.parametrize(
    ("folder", "page", "message"),
    [("nowhere", "report.html", "does not exist"), (".", "report.html", "has no runs"), (".", "no/where.html", "no")],
)
def test_mistakes_are_answered(folder: str, page: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert message in call("report", folder, "--out", page, code=2)[1]
    assert [*tmp_path.iterdir()] == []


def test_a_picture_that_no_run_left_is_named(tmp_path: Path):
    Image.new("L", (4, 4)).save(tmp_path / "seed0.png")
    with pytest.raises(ValueError, match=r"seed0\.png: not a sheet"):
        sheet.read_tiles(tmp_path / "seed0.png")


def test_distortion_by_age_is_drawn_where_it_was_recorded(folder: Path):
    found = results.summaries(folder, EXPERIMENT, PROFILE, list(ROWS))
    [picture] = [picture for picture in EXPERIMENT.pictures(found) if picture.title == "Distortion by age"]
    learned = next(summary for summary in found if summary.row.name == "Recollections")
    for panel, kind in zip(picture.panels, ("held", "fresh"), strict=True):
        [drawn] = panel.figure.axes[0].lines  # real images are exact
        expected = np.mean([np.array(run.ageing[kind][-1], dtype=float) for run in learned.runs], axis=0)
        np.testing.assert_allclose(np.asarray(drawn.get_ydata(), dtype=float), expected)
    before = [Summary(summary.row, [replace(run, ageing={}) for run in summary.runs]) for summary in found]
    titles = [picture.title for picture in EXPERIMENT.pictures(before)]
    assert "Distortion over tasks" in titles
    assert "Distortion by age" not in titles


def test_the_table_of_ageing_has_the_errors_of_the_last_task(folder: Path):
    found = results.summaries(folder, EXPERIMENT, PROFILE, list(ROWS))
    learned = next(summary for summary in found if summary.row.name == "Recollections")
    last = {kind: np.array([run.ageing[kind][-1] for run in learned.runs], dtype=float) for kind in ("held", "fresh")}
    held, fresh = (errors.mean(0) for errors in last.values())
    expected = (held.mean(), fresh.mean(), held.mean() - fresh.mean(), held[0], fresh[0])
    cells = ageing.EXPERIMENT.cells(learned.row, learned.runs)
    assert len(cells) == len(ageing.EXPERIMENT.columns)
    assert [float(cell) for cell in cells[2:]] == pytest.approx(expected, abs=1e-4)
    assert ageing.EXPERIMENT.as_json(learned.row, learned.runs)["ageing"]["held"] == pytest.approx(held.tolist())


def test_a_block_of_runs_that_were_drawn_is_not_drawn_again():
    experiment = table2.EXPERIMENT
    profile = experiment.profiles["standard"]
    found = results.summaries(ROOT / "results", experiment, profile, experiment.chosen(profile))
    blocks = {summary.row.block for summary in found}
    assert {table2.SAME, table2.AS_IT_IS} <= blocks
    titles = [panel.title for picture in stream_pictures.pictures(found, table2.IMAGE) for panel in picture.panels]
    assert not any(table2.SAME in title for title in titles)
    assert any(table2.AS_IT_IS in title for title in titles)  # runs of its own
