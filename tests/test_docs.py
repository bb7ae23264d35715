"""The pages on memory files and bits: their code and commands run, one after the other; all links lead somewhere."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

import recollect as rc
from recollect.cli import app
from recollect.memory.file import SCHEMA

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize("name", ["memory-file.md", "format.md", "bits.md"])
def test_the_code_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    blocks = re.findall(r"```(python|sh)\n(.*?)```", (DOCS / name).read_text(), flags=re.DOTALL)
    for language, block in blocks:
        if language == "python":
            exec(block, names)
            promised = re.findall(r"print\(.*\)  # (.*)", block)
            assert capsys.readouterr().out.splitlines() == promised
        else:
            for line in block.splitlines():
                run(line)


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
    script = re.findall(r"```python\n(.*?)```", (DOCS / "memory-file.md").read_text(), flags=re.DOTALL)[0]
    names: dict[str, object] = {}
    for tasks in (1, 3):
        names = {}
        exec(script.replace("enumerate(stream)", f"enumerate(stream[:{tasks}])"), names)
    assert "codec" not in names  # the second time it was loaded
    learner = rc.Replay.load("run.rec")
    assert (learner.progress, learner.memory.seen) == ({"tasks": 3}, 300)


def test_the_tables_are_those_of_the_file():
    described = re.findall(r"```sql\n(.*?)```", (DOCS / "format.md").read_text(), flags=re.DOTALL)[0]
    assert tuple(described.splitlines()) == SCHEMA


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path):
    for link in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
        assert (page.parent / link).exists(), link
