"""README and docs: their code runs, their commands are ones that there are, their links and names lead somewhere."""

from __future__ import annotations

import ast
import importlib
import itertools
import re
import shlex
import shutil
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from typer.testing import CliRunner

import recollect as rc
from recollect.cli import app
from recollect.lab.experiments import EXPERIMENTS
from recollect.memory.file import SCHEMA

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
PAGES = sorted([README, *DOCS.rglob("*.md")])
RUN = {"memory-file.md", "format.md", "own-data.md"}  # pages whose commands belong to their code, and are run with it
LEARNERS = ("Online", "Replay", "GEM", "EWC", "LwF", "ICaRL", "Offline")


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), flags=re.DOTALL)


def with_code(page: Path) -> bool:
    return bool(blocks(page, "python"))


@pytest.fixture
def short_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streams of two short tasks where the code of a page has whole ones."""
    whole = rc.streams.mnist_rotations
    few: dict[str, Any] = {"tasks": 2, "train_examples": 10, "test_examples": 10}
    monkeypatch.setattr(rc.streams, "mnist_rotations", lambda seed=0, **amounts: whole(seed, **(few | amounts)))


@pytest.mark.usefixtures("short_streams")
@pytest.mark.parametrize("page", [*filter(with_code, PAGES)], ids=name_of)
def test_the_code_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.chdir(tmp_path)
    if page.name == "own-data.md":
        take_photos(tmp_path / "photos")
    names: dict[str, object] = {}
    for language, block in re.findall(r"```(python|sh)\n(.*?)```", page.read_text(), flags=re.DOTALL):
        if language == "python":
            exec(re.sub(r"episodes=\d+", "episodes=3", block), names)
            promised = re.findall(r"print\(.*\)  # (.*)", block)
            printed = capsys.readouterr().out.splitlines()
            assert printed == promised or not promised
        elif page.name in RUN:
            for line in block.splitlines():
                run(line)


def take_photos(folder: Path) -> None:
    for label, kind in enumerate(("cat", "cow", "dog", "hen")):
        (folder / kind).mkdir(parents=True)
        for number in range(10):
            Image.new("RGB", (40 + number, 30), (60 * label, 20 * number, 99)).save(folder / kind / f"{number}.jpg")


def run(line: str) -> None:
    program, *arguments = shlex.split(line)
    if program == "recollect":
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.output
    elif shutil.which(program):
        result = subprocess.run([program, *arguments], capture_output=True, text=True, check=True)
        assert result.stdout, line


def test_the_script_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    script = blocks(DOCS / "memory-file.md", "python")[0]
    names: dict[str, object] = {}
    for tasks in (1, 3):
        names = {}
        exec(script.replace("enumerate(stream)", f"enumerate(stream[:{tasks}])"), names)
    assert "codec" not in names  # the second time it was loaded
    learner = rc.Replay.load("run.rec")
    assert (learner.progress, learner.memory.seen) == ({"tasks": 3}, 300)


def test_the_quick_start_is_the_loop_of_the_readme_and_ten_lines_of_a_tested_example():
    assert blocks(DOCS / "quick-start.md", "python")[0] == blocks(README, "python")[0]
    _, _, lines, _ = blocks(README, "python")[0].split("\n\n")
    assert len(lines.splitlines()) == 10
    assert textwrap.indent(lines, "    ") in (ROOT / "examples" / "own_loop.py").read_text()


@pytest.mark.usefixtures("short_streams")
def test_the_bill_of_the_quick_start_is_that_of_its_memory():
    start = blocks(README, "python")[0].split("for x, y")[0]
    names: dict[str, object] = {}
    exec(start, names)
    memory = names["memory"]
    assert isinstance(memory, rc.Memory)
    width = {"codes": memory.bits_per_item, "labels": 4, "tasks": 0, "ids": 64}  # of 10 classes and no tasks
    full = rc.Bill(
        **{kind: memory.capacity * bits for kind, bits in width.items()},
        codec=memory.codec.storage_bits,
        example=28 * 28 * 8,
    )
    assert blocks(DOCS / "quick-start.md", "text") == [f"{full}\n"]


def test_the_tables_are_those_of_the_file():
    described = blocks(DOCS / "format.md", "sql")[0]
    assert tuple(described.splitlines()) == SCHEMA


def test_commands_are_ones_that_there_are():
    lines = {line.split("  #")[0] for page in PAGES for block in blocks(page, "sh") for line in block.splitlines()}
    for program, *words in map(shlex.split, lines):
        if program == "make":
            assert f"\n{words[0]}:" in (ROOT / "Makefile").read_text()
        if program == "recollect":
            result = CliRunner().invoke(app, [*words, "--help"])  # refuses options that there are not, and runs nothing
            assert result.exit_code == 0, result.output
            if words[0] in {"run", "table"} and "--stream" not in words:
                experiment, options = EXPERIMENTS[words[1]], dict(itertools.pairwise(words))
                profile = experiment.profiles[options.get("--profile", "standard")]
                assert experiment.chosen(profile, [options["--rows"]] if "--rows" in options else [])


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path):
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", page.read_text()):
        found = page.parent / target if target else page
        assert found.exists(), target
        if anchor and found.name != "api.md":
            headings = re.findall(r"^#+ (.*)$", found.read_text(), flags=re.MULTILINE)
            assert anchor in {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_files_that_are_named_exist(page: Path):
    for path in re.findall(r"`([a-z_0-9]+(?:/[a-z_0-9]+)*\.py)`", page.read_text()):
        assert any((folder / path).exists() for folder in (ROOT, ROOT / "src" / "recollect")), path


@pytest.mark.parametrize("name", LEARNERS)
def test_a_page_of_a_learner_names_what_is_in_its_code(name: str):
    text = (DOCS / "learners" / f"{name.lower()}.md").read_text()
    table = text.split("## In the code")[1].split("##")[0]
    named = re.findall(r"`(\w+)\.(\w+)`", table)
    for owner, member in named:
        assert owner.islower() or hasattr(getattr(rc, owner), member), f"{owner}.{member}"
    for function, module in re.findall(r"`(\w+)` in `([\w/]+)\.py`", table):
        assert hasattr(importlib.import_module(f"recollect.{module.replace('/', '.')}"), function), function


@pytest.mark.parametrize("name", LEARNERS)
def test_a_page_of_a_learner_has_all_its_settings(name: str):
    text = (DOCS / "learners" / f"{name.lower()}.md").read_text()
    settings = text.split("## Settings")[1].split("\n## ")[0]
    described = dict(re.findall(r"^\| `(\w+)` \| ([^|]*) \|", settings, flags=re.MULTILINE))
    defaults = defaults_of(name)
    assert defaults.keys() <= described.keys()
    for setting, default in defaults.items():
        if isinstance(default, bool):
            assert described[setting].strip() == str(default), setting
        elif isinstance(default, int | float):
            assert float(described[setting]) == default, setting


def defaults_of(name: str) -> dict[str, object]:
    """The keyword arguments of a learner and their defaults, as they stand in its source."""
    tree = ast.parse((ROOT / "src" / "recollect" / "learners" / f"{name.lower()}.py").read_text())
    made = next(
        inner
        for outer in ast.walk(tree)
        if isinstance(outer, ast.ClassDef) and outer.name == name
        for inner in outer.body
        if isinstance(inner, ast.FunctionDef) and inner.name == "__init__"
    )
    values = [ast.literal_eval(default) for default in made.args.kw_defaults if default is not None]
    return dict(zip([argument.arg for argument in made.args.kwonlyargs], values, strict=True))


def test_the_reference_has_every_public_name():
    listed = re.findall(r"^::: (recollect\.[\w.]+)$", (DOCS / "api.md").read_text(), flags=re.MULTILINE)
    public = [
        f"recollect.{module}{name}"
        for module in ("", "distillation.", "models.", "streams.")
        for name in exported(ROOT / "src" / "recollect" / module.rstrip(".") / "__init__.py")
        if not (ROOT / "src" / "recollect" / name).is_dir()
    ]
    assert sorted(listed) == sorted(public)


def exported(path: Path) -> list[str]:
    """The names of a contract: one a line, as themselves."""
    return re.findall(r"^from \S+ import (\w+) as \1$", path.read_text(), flags=re.MULTILINE)


def test_the_site_has_every_page():
    nav = (ROOT / "mkdocs.yml").read_text()
    for page in DOCS.rglob("*.md"):
        assert re.search(rf": {re.escape(page.relative_to(DOCS).as_posix())}$", nav, flags=re.MULTILINE), page
