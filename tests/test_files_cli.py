"""The commands that look into a memory file, as a user types them."""

from __future__ import annotations

import hashlib
import io
import json
import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from rich.console import Console
from torch import nn
from typer.testing import CliRunner

import recollect as rc
from battery import CODECS, SHAPE, batches, parameters, replay
from recollect.cli import app
from recollect.inspection.waiting import waiting

GRAYS = torch.arange(40) * 6  # every image has a gray of its own


def call(*arguments: str | Path, code: int = 0, answer: str | None = None) -> tuple[str, str]:
    result = CliRunner().invoke(app, [*map(str, arguments)], input=answer)
    assert result.exit_code == code, result.output
    return result.stdout, " ".join(result.stderr.replace("│", "").split())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.rec"


@pytest.fixture
def memory(path: Path) -> rc.Memory:
    """40 gray images, labels 0 to 9, tasks 0 to 3, committed twice: the last image is in a patch."""
    memory = rc.Memory(rc.RawPixels(SHAPE), capacity=100, classes=10, tasks=4)
    images = (GRAYS / 255).view(-1, 1, 1, 1).expand(-1, *SHAPE)
    memory.write(images[:39], torch.arange(39) % 10, torch.arange(39) // 10)
    memory.commit(path)
    memory.write(images[39:], 9, 3)
    memory.commit(path)
    return memory


@pytest.fixture
def learner(path: Path) -> rc.Replay:
    learner = replay(CODECS["autoencoder"](), "balanced")
    for batch in batches():
        learner.observe(*batch)
    learner.save(path, {"batches": 8})
    return learner


class Mine(rc.RawPixels):
    """A codec of one's own."""


class Model(nn.Linear):
    """A model of one's own."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return super().forward(input.flatten(1))


# info


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
    bill = memory.footprint()
    assert found["bill"] == {"bits": bill.bits, "examples": bill.examples}
    assert (found["bytes"], found["overhead_bits"]) == (path.stat().st_size, 8 * path.stat().st_size - bill.total)
    assert found["memory"]["items_by_class"] == {str(label): 4 for label in range(10) if label != 3}
    assert found["memory"]["codec"] == {"class": "RawPixels", "arguments": {"shape": [1, 12, 12]}}
    assert (found["learner"], found["learner_bits"]) == (None, 0)
    assert found["audit"] == [{"time": line.time, "items": 4, "rule": "label=3"}]


def test_info_names_learner_and_model(learner: rc.Replay, path: Path):
    printed, _ = call("info", path)
    for words in (
        "balanced: 12 of at most 12",
        "DiscreteAutoencoder(shape=[1, 12, 12], variables=8, categories=3, ",
        "learner   Replay(learning_rate=0.1, batch_size=5, steps=1) with RecollectionModule(steps=2, ",
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
    assert "Online(learning_rate=0.01)" in call("info", path)[0]
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


# verify


def test_verify_finds_nothing_wrong_with_what_was_committed(memory: rc.Memory, path: Path):
    printed, _ = call("verify", path)
    assert (
        printed
        == f"ok: {path.stat().st_size:,} bytes; commit 2; the parts memory; 40 items in 3 segments and 1 patch\n"
    )
    found = json.loads(call("verify", path, "--json")[0])
    assert (found["ok"], found["damage"]) == (True, [])
    assert (found["segments"], found["patches"], found["items"]) == (3, 1, 40)


def test_verify_looks_at_the_learner_without_touching_the_random_state(learner: rc.Replay, path: Path):
    before = torch.get_rng_state()
    assert "the parts codec, learner, memory, model, optimiser, state; 12 items" in call("verify", path)[0]
    assert torch.equal(torch.get_rng_state(), before)


def run(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def sealed(path: Path, **parts: Callable[[Any], object]) -> None:
    """Change parts in JSON, and make all checksums right again as docs/format.md describes them."""

    def checksum(name: str, data: bytes) -> bytes:
        return hashlib.blake2b(name.encode() + b"\0" + data, digest_size=16).digest()

    with closing(sqlite3.connect(path)) as connection:
        for name, change in parts.items():
            state = json.loads(connection.execute("SELECT data FROM part WHERE name = ?", (name,)).fetchone()[0])
            change(state)
            data = json.dumps(state).encode()
            connection.execute(
                "UPDATE part SET data = ?, checksum = ? WHERE name = ?", (data, checksum(name, data), name)
            )
        sums = []
        for table in ("segment", "patch"):
            rows = connection.execute(f"SELECT number, data FROM {table} ORDER BY number").fetchall()
            lines = [checksum(f"{table} {number}", data) for number, data in rows]
            connection.executemany(f"UPDATE {table} SET checksum = ?2 WHERE number = ?1", enumerate(lines))
            sums.append(b"".join(lines))
        head = connection.execute("SELECT data FROM part WHERE name = 'head'").fetchone()[0]
        named = connection.execute("SELECT name, checksum FROM part WHERE name != 'head' ORDER BY name").fetchall()
        whole = b"\n".join([head, *(name.encode() + line for name, line in named), *sums])
        connection.execute("UPDATE part SET checksum = ? WHERE name = 'head'", (checksum("head", whole),))
        connection.commit()


def put(path: Path, table: str, offset: int, data: bytes) -> None:
    """Change the first page of a table."""
    with closing(sqlite3.connect(path)) as connection:
        query = "SELECT rootpage FROM sqlite_schema WHERE name = ?"
        page = connection.execute(query, (table,)).fetchone()[0]
    with path.open("r+b") as file:
        file.seek(1024 * (page - 1) + offset)
        file.write(data)


DAMAGE: dict[str, tuple[Callable[[Path], object], list[str]]] = {
    "each segment": (
        lambda path: run(path, "UPDATE segment SET data = randomblob(length(data))"),
        [f"the checksum of segment {number} is wrong" for number in range(3)],
    ),
    "segments that changed places": (
        lambda path: run(path, *(f"UPDATE segment SET number = {n}" for n in ("-1 - number", "3 + number"))),
        ["the checksum of segment 0 is wrong", "the checksum of segment 2 is wrong"],
    ),
    "a part": (
        lambda path: run(path, "UPDATE part SET data = CAST('{}' AS BLOB) WHERE name = 'memory'"),
        ["the checksum of part 'memory' is wrong", "its state cannot be read ("],
    ),
    "a part twice": (
        lambda path: run(path, "INSERT INTO part SELECT * FROM part WHERE name = 'memory'"),
        ["there are two parts 'memory'"],
    ),
    "no memory": (
        lambda path: run(path, "DELETE FROM part WHERE name = 'memory'"),
        ["it holds neither a memory nor a learner", "it holds records without a memory", "are not those of one commit"],
    ),
    "no head": (lambda path: run(path, "DELETE FROM part WHERE name = 'head'"), ["its head cannot be read or found"]),
    "the first segment gone": (
        lambda path: run(path, "DELETE FROM segment WHERE number = 0"),
        ["there is no segment 0", "it holds 2 segments, and not 3", "are not those of one commit"],
    ),
    "the last segment gone": (
        lambda path: run(path, "DELETE FROM segment WHERE number = 2"),
        ["it holds 2 segments, and not 3", "are not those of one commit"],
    ),
    "a patch": (
        lambda path: run(path, "UPDATE patch SET data = randomblob(length(data))"),
        ["the checksum of patch 0 is wrong", "its state cannot be read (a patch with records that do not fit)"],
    ),
    "a patch too far": (
        lambda path: run(path, "UPDATE patch SET number = 7"),
        ["there is no patch 0 to 6", "the checksum of patch 7 is wrong"],
    ),
    "a patch gone": (
        lambda path: run(path, "DELETE FROM patch"),
        ["its parts, records and audit are not those of one commit"],
    ),
    "a line of the audit": (
        lambda path: run(path, "INSERT INTO audit VALUES ('now', 1, 'label=3')"),
        ["its parts, records and audit are not those of one commit"],
    ),
    "other types": (
        lambda path: run(path, "UPDATE segment SET data = 'text' WHERE number = 1"),
        ["segment 1 has values of types that it should not have"],
    ),
    "the schema": (
        lambda path: run(path, "CREATE TABLE more (x)"),
        ["its tables are not those of a memory"],
    ),
    "a table gone": (
        lambda path: run(path, "DROP TABLE segment"),
        ["its tables are not those of a memory", "SQLite cannot read the table segment (no such table: segment)"],
    ),
    "a page": (
        lambda path: put(path, table="segment", offset=3, data=b"\xff"),  # many cells in a page that has room for few
        ["SQLite cannot read the table segment (database disk image is malformed)"],
    ),
    "cut short": (
        lambda path: path.write_bytes(path.read_bytes()[:-1024]),
        ["SQLite cannot open it (", "it is cut short: "],
    ),
    "a state that cannot be": (
        lambda path: sealed(path, memory=lambda state: state.pop("capacity")),
        ["its state cannot be read ('capacity')"],
    ),
    "records against counts": (
        lambda path: sealed(path, memory=lambda state: state.update(seen=20, tasks=3)),
        ["its state cannot be read (tasks of 3 and above, ids of 20 and above)"],
    ),
    "an id twice": (
        lambda path: (run(path, "UPDATE segment SET data = zeroblob(length(data))"), sealed(path)),
        ["its state cannot be read (an id twice)"],
    ),
    "all at once": (
        lambda path: run(
            path,
            "CREATE TABLE more (x)",
            "DELETE FROM segment WHERE number = 0",
            "UPDATE segment SET checksum = zeroblob(16)",
            "UPDATE part SET checksum = zeroblob(16)",
        ),
        [
            "its tables are not those of a memory",
            "the checksum of part 'memory' is wrong",
            "there is no segment 0",
            "the checksum of segment 1 is wrong",
            "are not those of one commit",
        ],
    ),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_verify_reports_all_damage(kind: str, memory: rc.Memory, path: Path):
    damage, messages = DAMAGE[kind]
    damage(path)
    printed, _ = call("verify", path, code=1)
    assert printed.startswith(f"{path} is damaged:\n")
    assert "Go on from a copy" in printed
    found = json.loads(call("verify", path, "--json", code=1)[0])
    assert not found["ok"]
    for message in messages:
        assert message in printed
        assert any(message in line for line in found["damage"])
    said = call("info", path, code=1)[1]
    assert "is damaged: " in said
    assert "recollect verify" in said


def test_verify_reports_what_sqlite_finds_though_all_can_be_read(memory: rc.Memory, path: Path):
    with path.open("r+b") as file:
        file.seek(36)  # how many pages are free
        file.write(b"\0\0\0\x63")
    assert len(rc.Memory.open(path)) == 40
    assert "SQLite finds: " in call("verify", path, code=1)[0]


def test_verify_reports_a_learner_that_cannot_be_read(learner: rc.Replay, path: Path):
    whole = path.read_bytes()
    sealed(path, learner=lambda state: state.update(values=None, learner={"class": "Popen", "arguments": {}}))
    assert "its learner cannot be read (Popen cannot be built from a file)" in call("verify", path, code=1)[0]
    path.write_bytes(whole)
    run(path, "DELETE FROM part WHERE name IN ('model', 'codec')")
    printed = call("verify", path, code=1)[0]
    for words in (
        "there is no part 'model'",
        "weights that are not those of a DiscreteAutoencoder",
        "not those of one commit",
    ):
        assert words in printed


def other_database(path: Path) -> None:
    run(path, "CREATE TABLE t (x)")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: None, "does not exist"),
        (lambda path: path.mkdir(), "is a directory"),
        (lambda path: path.touch(), "is empty: nothing was committed to it"),
        (lambda path: path.write_text("a list of things to buy"), "is no file of a memory"),
        (other_database, "is a database of another kind"),
        (lambda path: run(path, "PRAGMA application_id = 1919247215", "PRAGMA user_version = 9"), "has format 9"),
    ],
)
@pytest.mark.parametrize("command", [("info",), ("verify",), ("show",), ("forget", "--label", "1", "--yes")])
def test_what_is_no_memory_is_bad_input(
    command: tuple[str, ...], make: Callable[[Path], object], message: str, path: Path
):
    make(path)
    assert message in call(*command, path, code=2)[1]


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
    monkeypatch.setattr("recollect.cli.sys", SimpleNamespace(stdin=stdin))


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
