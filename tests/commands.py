"""The commands that look into a memory file, called as a user types them."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from recollect.cli import app


def call(*arguments: str | Path, code: int = 0, answer: str | None = None) -> tuple[str, str]:
    """What a command prints and what it says, if it ends with this code."""
    result = CliRunner().invoke(app, [*map(str, arguments)], input=answer)
    assert result.exit_code == code, result.output
    return result.stdout, " ".join(result.stderr.replace("│", "").split())
