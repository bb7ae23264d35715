"""The commands that look into a memory file, as a user types them."""

from __future__ import annotations

import io
import json
import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from rich.console import Console
from torch import nn

import recollect as rc
from battery import SHAPE, parameters
from commands import call
from conftest import GRAYS
from recollect.inspection.waiting import waiting


class Mine(rc.RawPixels):
    """A codec of one's own."""


class Model(nn.Linear):
    """A model of one's own."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return super().forward(input.flatten(1))


# info


def test_info_says_where_a_stream_of_known_length_ends(tmp_path: Path):
    memory = rc.Memory(rc.RawPixels(SHAPE), capacity=10, examples=20_000)
    memory.write(torch.rand(3, *SHAPE), 0)
    memory.commit(path := tmp_path / "short.rec")
    assert "3 examples of at most 20,000 seen" in call("info", path)[0]
    assert json.loads(call("info", path, "--json")[0])["memory"]["examples"] == 20_000


def test_info_says_what_a_file_holds_and_what_it_costs(memory: rc.Memory, path: Path):
    memory.forget(label=3)
    memory.commit(path)
    printed, _ = call("info", path)
    assert str(memory.footprint()) in printed
    line = memory.audit[0]
    for words in (
        f"{path}: {path.stat().st_size:,} bytes, 3 commits",
        "reservoir: 36 of at most 100 items held, 40 examples seen, codes of 1,152 bits (radix)",
        "RawPixels(shape=[1, 12, 12])",
        "items by task:  0: 9  1: 9  2: 9  3: 9",
        "items by class:  0: 4  1: 4  2: 4  4: 4",
        f"{line.time}  4 items by label=3",
    ):
        assert words in printed
    found = json.loads(call("info", path, "--json")[0])
    assert found["memory"]["examples"] is None
    bill = memory.footprint()
    assert found["bill"] == {"bits": bill.bits, "examples": bill.examples}
    assert (found["bytes"], found["overhead_bits"]) == (path.stat().st_size, 8 * path.stat().st_size - bill.total)
    assert found["memory"]["items_by_class"] == {str(label): 4 for label in range(10) if label != 3}
    assert found["memory"]["codec"] == {"class": "RawPixels", "arguments": {"shape": [1, 12, 12]}}
    assert (found["learner"], found["learner_bits"]) == (None, 0)
    assert found["audit"] == [{"time": line.time, "items": 4, "rule": "label=3"}]


def test_info_of_an_empty_memory(path: Path):
    rc.Memory(rc.RawPixels((1, 12, 12)), capacity=5).commit(path)
    assert "0 of at most 5 items held" in call("info", path)[0]
    assert json.loads(call("info", path, "--json")[0])["memory"]["held"] == 0


def test_info_names_learner_and_model(learner: rc.Replay, path: Path):
    printed, _ = call("info", path)
    for words in (
        "balanced: 12 of at most 12",
        "DiscreteAutoencoder(shape=[1, 12, 12], variables=8, categories=3, ",
        "learner   Replay(learning_rate=0.1, batch_size=5, steps=1, loss='cross_entropy', augment=None, averaging=0.0, "
        "seed=0) with Recollection",
        "model     MLP(inputs=144, hidden=[16], classes=10, seed=0)",
        "erased: nothing so far",
    ):
        assert words in printed
    found = json.loads(call("info", path, "--json")[0])
    assert found["learner"]["progress"] == {"batches": 8}
    assert sum(found["memory"]["items_by_task"].values()) == 12
    with closing(sqlite3.connect(path)) as connection:
        query = "SELECT sum(length(data)) FROM part WHERE name NOT IN ('head', 'memory', 'codec')"
        assert found["learner_bits"] == 8 * connection.execute(query).fetchone()[0]


def test_info_of_a_learner_without_a_memory(path: Path):
    rc.Online(rc.models.MLP()).save(path)
    assert "Online(learning_rate=0.01, loss='cross_entropy', averaging=0.0)" in call("info", path)[0]
    assert json.loads(call("info", path, "--json")[0])["memory"] is None
    assert call("verify", path)[0].startswith("ok: ")
    for command in ("show", "forget"):
        assert "holds no memory" in call(command, path, "--task", "0", code=2)[1]


def test_a_codec_of_ones_own_must_be_given(path: Path):
    memory = rc.Memory(Mine(SHAPE), capacity=5)
    memory.commit(path)
    for command in (("info",), ("show",), ("forget", "--label", "1", "--yes")):
        assert "Mine, a class of your own: give one made as it was" in call(*command, path, code=2)[1]
    printed, _ = call("verify", path)
    assert printed.startswith("ok: ")
    assert "Not checked: its state and records (the file holds a Mine" in printed


def test_a_model_of_ones_own_is_named(path: Path):
    rc.Replay(Model(144, 10), rc.RecollectionModule(rc.Memory(rc.RawPixels(SHAPE), capacity=5))).save(path)
    assert "model     Model, a class of your own" in call("info", path)[0]
    assert "Not checked: its learner (the file holds a Model" in call("verify", path)[0]


# show


def drawn(picture: Path) -> list[int]:
    """The grays in the middle of the images, row by row."""
    with Image.open(picture) as image:
        pixels = np.asarray(image.convert("L"))
    rows, columns = round(pixels.shape[0] / 232.9), round(pixels.shape[1] / 172.5)
    centres = [(round((r + 0.65) * 232.9), round((c + 0.5) * 172.5)) for r in range(rows) for c in range(columns)]
    return [int(pixels[centre]) for centre in centres]


def test_show_draws_from_the_oldest_to_the_newest_and_leaves_the_file_alone(memory: rc.Memory, path: Path):
    before = path.read_bytes(), path.stat().st_mtime_ns
    printed, _ = call("show", path)
    picture = path.with_name("memory-recollections.png")
    assert printed == f"40 of 40 items: {picture}\n"
    assert drawn(picture) == pytest.approx(GRAYS.tolist(), abs=1)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert sorted(path.parent.iterdir()) == [picture, path]


def test_show_draws_what_is_asked_for(memory: rc.Memory, path: Path):
    picture = path.with_name("few.png")
    assert call("show", path, "--items", "4", "--out", picture)[0] == f"4 of 40 items: {picture}\n"
    assert drawn(picture) == pytest.approx(GRAYS[[0, 13, 26, 39]].tolist(), abs=1)
    call("show", path, "--task", "2", "--out", picture)
    assert drawn(picture) == pytest.approx(GRAYS[20:30].tolist(), abs=1)
    call("show", path, "--label", "7", "--out", picture)
    assert drawn(picture) == pytest.approx(GRAYS[7::10].tolist(), abs=1)
    call("show", path, "--label", "7", "--task", "3", "--out", picture)
    assert drawn(picture) == pytest.approx([int(GRAYS[37])], abs=1)


@pytest.mark.parametrize("channels", [2, 3])
def test_show_draws_images_of_any_channels_and_shape(channels: int, path: Path):
    memory = rc.Memory(rc.RawPixels((channels, 8, 16)), capacity=5)
    memory.write(torch.rand(13, channels, 8, 16), 0)
    memory.commit(path)
    call("show", path)
    with Image.open(path.with_name("memory-recollections.png")) as image:
        assert image.size == (862, 155)


def test_the_titles_say_label_task_and_age(memory: rc.Memory, path: Path, monkeypatch: pytest.MonkeyPatch):
    from matplotlib.axes import Axes  # noqa: PLC0415 - as the command does

    titles: list[str] = []
    monkeypatch.setattr(Axes, "text", lambda self, x, y, title, **how: titles.append(title))
    call("show", path, "--items", "3")
    assert titles == ["label 0, task 0\nage 39", "label 0, task 2\nage 19", "label 9, task 3\nage 0"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--task", "4"), "task has the value 4: accepted are 0 to 3"),
        (("--label", "3", "--task", "2"), "no items of task 2 and label 3 are held"),
        (("--out", "picture.jpg"), "picture.jpg: accepted is another file, with a name that ends in .png"),
        (("--out", "nowhere/at/all.png"), "nowhere/at/all.png"),
    ],
)
def test_show_answers_mistakes(arguments: tuple[str, ...], message: str, memory: rc.Memory, path: Path):
    memory.forget(label=3)
    memory.commit(path)
    assert message in call("show", path, *arguments, code=2)[1]


def test_show_does_not_draw_over_the_memory(memory: rc.Memory, path: Path):
    odd = path.rename(path.with_name("memory.png"))
    assert "accepted is another file" in call("show", odd, "--out", odd, code=2)[1]
    assert len(rc.Memory.open(odd)) == 40


# forget


@pytest.mark.parametrize(
    ("arguments", "gone", "rule"),
    [
        (("--ids", "1,2,39"), {1, 2, 39}, "ids"),
        (("--task", "2"), {*range(20, 30)}, "task=2"),
        (("--label", "7"), {7, 17, 27, 37}, "label=7"),
        (("--label", "7", "--task", "2", "--ids", "27,28"), {27}, "ids and task=2 and label=7"),
    ],
)
def test_forget_erases_and_says_so(
    arguments: tuple[str, ...], gone: set[int], rule: str, memory: rc.Memory, path: Path
):
    printed, _ = call("forget", path, *arguments, "--yes")
    opened = rc.Memory.open(path)
    assert set(opened.ids.tolist()) == {*range(40)} - gone
    line = opened.audit[0]
    assert (line.items, line.rule) == (len(gone), rule)
    said = f"Erased {len(gone)} of 40 items from {path}. The audit has a line: {line.time}, {len(gone)} by {rule}.\n"
    assert printed == said
    assert call("verify", path)[0].startswith("ok: ")


def test_what_was_forgotten_is_not_in_the_file(memory: rc.Memory, path: Path):
    images = [bytes([gray]) * 60 for gray in GRAYS.tolist()]  # of 144: the rest may be on another page
    assert Counter(image in path.read_bytes() for image in images[1:]) == {True: 39}
    call("forget", path, "--label", "7", "--yes")
    left = path.read_bytes()
    assert [number for number, image in enumerate(images) if image not in left] == [7, 17, 27, 37]
    call("forget", path, "--ids", "39", "--yes")
    assert images[39] not in path.read_bytes()


def test_forget_takes_ids_from_a_file(memory: rc.Memory, path: Path, tmp_path: Path):
    ids = tmp_path / "ids.txt"
    ids.write_text("3, 5\n7\n")
    assert "Erased 3 of 40 items" in call("forget", path, "--ids-file", ids, "--yes")[0]
    assert {3, 5, 7}.isdisjoint(rc.Memory.open(path).ids.tolist())


def test_forget_keeps_the_learner(learner: rc.Replay, path: Path):
    held = len(learner.memory)
    call("forget", path, "--task", "3", "--yes")
    loaded = rc.Replay.load(path)
    assert torch.equal(parameters(loaded), parameters(learner))
    assert (loaded.progress, len(loaded.memory)) == ({"batches": 8}, held - loaded.memory.audit[0].items)
    assert loaded.memory.audit[0].items > 0


def test_without_a_terminal_forget_wants_a_yes(memory: rc.Memory, path: Path):
    before = path.read_bytes()
    said = call("forget", path, "--label", "7", code=2)[1]
    assert "4 of 40 items would be erased" in said
    assert "give --yes" in said
    assert path.read_bytes() == before


def terminal(monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], object] = lambda: None) -> None:
    stdin = SimpleNamespace(isatty=lambda: (meanwhile(), True)[1])
    monkeypatch.setattr("recollect.cli.files.sys", SimpleNamespace(stdin=stdin))


def test_on_a_terminal_forget_asks(memory: rc.Memory, path: Path, monkeypatch: pytest.MonkeyPatch):
    terminal(monkeypatch)
    before = path.read_bytes()
    printed, _ = call("forget", path, "--label", "7", answer="n\n", code=1)
    assert "Erase 4 of 40 items from" in printed
    assert path.read_bytes() == before
    assert "Erased 4 of 40 items" in call("forget", path, "--label", "7", answer="y\n")[0]
    assert len(rc.Memory.open(path)) == 36


def test_forget_does_not_undo_what_another_wrote_meanwhile(
    memory: rc.Memory, path: Path, monkeypatch: pytest.MonkeyPatch
):
    terminal(monkeypatch, meanwhile=lambda: memory.commit(path))
    said = call("forget", path, "--label", "7", answer="y\n", code=1)[1]
    assert "Nothing was erased: " in said
    assert "was changed by another writer" in said
    assert len(rc.Memory.open(path)) == 40


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "nothing to forget was named: accepted are ids, task and label"),
        (("--ids", "1,two"), "ids='two': accepted are whole numbers, such as 1,2,3"),
        (("--ids", ""), "ids='': accepted are whole numbers"),
        (("--ids", "9" * 30), "accepted are whole numbers"),
        (("--ids", "40"), "ids has the value 40: accepted are 0 to 39"),
        (("--label", "10"), "label has the value 10: accepted are 0 to 9"),
    ],
)
def test_forget_answers_mistakes(arguments: tuple[str, ...], message: str, memory: rc.Memory, path: Path):
    before = path.read_bytes()
    assert message in call("forget", path, *arguments, "--yes", code=2)[1]
    assert path.read_bytes() == before


def test_ids_are_given_in_one_way(memory: rc.Memory, path: Path, tmp_path: Path):
    ids = tmp_path / "ids.txt"
    ids.write_bytes(b"\xff\xfe")
    assert "accepted is one of them" in call("forget", path, "--ids", "1", "--ids-file", ids, code=2)[1]
    assert "accepted are whole numbers" in call("forget", path, "--ids-file", ids, code=2)[1]


# waiting


@pytest.mark.parametrize("on_terminal", [True, False])
def test_what_takes_long_is_seen_to_go_on(on_terminal: bool, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("recollect.inspection.waiting.EVERY", 0.01)
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=on_terminal, width=80)
    with waiting(console, "Reading [1].rec", 400) as watch:
        for _ in range(3):
            watch(100)
            time.sleep(0.15)
    assert "Reading [1].rec" in shown.getvalue()
    assert (", 75%" in shown.getvalue()) == (not on_terminal)


def test_what_is_quick_says_nothing(memory: rc.Memory, path: Path):
    assert call("info", path)[1] == ""


def test_info_of_a_memory_that_weighs_nothing(path: Path):
    codec = rc.ResizedPixels((1, 8, 8), size=(4, 4), bits=1)
    rc.Memory(codec, code_bits=2000, scheme="entropy").commit(path)
    assert "0 items held" in call("info", path)[0]
