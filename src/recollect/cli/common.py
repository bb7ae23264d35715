"""What all commands share: the application, where it prints, and options that mean the same everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import recollect as rc

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
# Progress and remarks go to the standard error stream, so that the output of --json can be piped.
out, remarks = Console(), Console(stderr=True)

AsJson = Annotated[bool, typer.Option("--json", help="print one JSON object instead of a table")]


def _say_version(wanted: bool) -> None:
    if wanted:
        out.print(rc.__version__, highlight=False)
        raise typer.Exit


@app.callback()
def main(
    *,
    version: Annotated[
        bool, typer.Option("--version", help="print the version", callback=_say_version, is_eager=True)
    ] = False,
) -> None:
    """A memory for neural networks that keep learning: experiments, tables and plans, and a look into its files."""


def say(text: str, console: Console = out) -> None:
    """Print as it is, for names of files may look like markup."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def sizes(shape: str) -> tuple[int, ...]:
    """Channels, height and width."""
    try:
        return tuple(int(part) for part in shape.lower().split("x"))
    except ValueError:
        raise typer.BadParameter(f"shape={shape!r}: accepted is channels x height x width, such as 3x32x32") from None


def folder_of(stream: str) -> Path | None:
    """The folder, where a stream is given as folder:PATH."""
    kind, _, path = stream.partition(":")
    return Path(path) if kind == "folder" and path else None
