"""Memory files: `recollect info`, `verify`, `show` and `forget`."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import recollect as rc
from recollect.cli.common import AsJson, app, remarks, say
from recollect.inspection import damage, facts
from recollect.inspection.waiting import waiting
from recollect.memory.file import DamagedFileError, MemoryFileError, reading
from recollect.memory.saved import restored

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recollect.memory.file import Watch

MemoryFile = Annotated[
    Path, typer.Argument(exists=True, dir_okay=False, help="what a memory or a learner was saved to")
]
OfTask = Annotated[int | None, typer.Option("--task", min=0, help="only items of this task")]
OfLabel = Annotated[int | None, typer.Option("--label", min=0, help="only items with this label")]
MOST_DIGITS = 18  # of an id, which has 64 bits


@app.command()
def info(file: MemoryFile, *, as_json_object: AsJson = False) -> None:
    """What a memory file holds and what it costs: bill, counts, codec, learner, and what was erased."""
    with _reading(file) as watch:
        found = facts.facts(file, watch)
    if as_json_object:
        print(json.dumps(facts.as_json(found)))
    else:
        say(facts.text(found))


@app.command()
def verify(file: MemoryFile, *, as_json_object: AsJson = False) -> None:
    """Look for all that is wrong with a memory file. The exit code is 1 if there is anything."""
    with _reading(file) as watch:
        found = damage.examined(file, watch)
    if as_json_object:
        print(json.dumps(damage.as_json(found)))
    else:
        say(damage.text(found))
    if found.damage:
        raise typer.Exit(1)


@app.command()
def show(
    file: MemoryFile,
    *,
    picture: Annotated[
        Path | None, typer.Option("--out", help="the picture, a PNG (default: beside the file)", dir_okay=False)
    ] = None,
    items: Annotated[
        int, typer.Option(min=1, max=1000, help="recollections at most, evenly spread from oldest to newest")
    ] = 40,
    task: OfTask = None,
    label: OfLabel = None,
) -> None:
    """Draw what a memory file recollects, with label, task and age. The file stays as it is."""
    from recollect.inspection.picture import draw_memory  # noqa: PLC0415 - matplotlib takes its time to load

    target = file.with_name(f"{file.stem}-recollections.png") if picture is None else picture
    if target.suffix.lower() != ".png" or target.resolve() == file.resolve():
        raise typer.BadParameter(f"{target}: accepted is another file, with a name that ends in .png")
    memory = opened(file)
    try:
        with waiting(remarks, f"Drawing {target}"):
            drawn = draw_memory(memory, target, items=items, task=task, label=label)
    except (ValueError, OSError) as error:
        raise typer.BadParameter(str(error)) from None
    say(f"{drawn} of {len(memory):,} items: {target}")


@app.command()
def forget(
    file: MemoryFile,
    *,
    ids: Annotated[str | None, typer.Option(help="only items with these ids, such as 1,2,3")] = None,
    ids_file: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="a file with such ids, apart by commas or spaces")
    ] = None,
    task: OfTask = None,
    label: OfLabel = None,
    yes: Annotated[bool, typer.Option("--yes", help="do not ask")] = False,
) -> None:
    """Erase items from a memory file: those for which all that is given holds.

    A learner in the file stays there, and what its model and the codec learned from the items does, too.
    """
    wanted = _ids(ids, ids_file)
    memory = opened(file)
    try:
        gone = memory.forget(ids=wanted, task=task, label=label)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    what = f"{gone:,} of {gone + len(memory):,} items"
    if not yes:
        if not sys.stdin.isatty():
            raise typer.BadParameter(f"{what} would be erased from {file}: give --yes, since there is nobody to ask")
        typer.confirm(f"Erase {what} from {file}? They cannot be brought back.", abort=True)
    try:
        with waiting(remarks, f"Writing {file}"):
            memory.commit(file)
    except MemoryFileError as error:
        say(f"Nothing was erased: {error}", remarks)
        raise typer.Exit(1) from None
    line = memory.audit[-1]
    say(f"Erased {what} from {file}. The audit has a line: {line.time}, {line.items} by {line.rule}.")


@contextmanager
def _reading(path: Path) -> Iterator[Watch]:
    """Show how far the reading of a file has come, and say what keeps it from being read."""
    try:
        if not damage.is_database(path):
            raise MemoryFileError(f"{path} is no file of a memory: it does not begin as a database of SQLite does")
        with waiting(remarks, f"Reading {path}", path.stat().st_size) as watch:
            yield watch
    except DamagedFileError as error:
        say(f"{error}\n`recollect verify {path}` looks for all that is wrong.", remarks)
        raise typer.Exit(1) from None
    except (MemoryFileError, OSError) as error:
        raise typer.BadParameter(str(error)) from None


def opened(path: Path) -> rc.Memory:
    """The memory of a file, or the end of the command with what is wrong."""
    with _reading(path) as watch, reading(path, watch) as reader:
        return restored(rc.Memory, reader, None)


def _ids(listed: str | None, path: Path | None) -> list[int] | None:
    if listed is not None and path is not None:
        raise typer.BadParameter("--ids and --ids-file: accepted is one of them")
    if listed is None and path is None:
        return None
    words = (path.read_text(errors="replace") if path is not None else listed or "").replace(",", " ").split()
    wrong = [word for word in words if not word.isdecimal() or len(word) > MOST_DIGITS]
    if wrong or not words:
        raise typer.BadParameter(f"ids={wrong[0] if wrong else ''!r}: accepted are whole numbers, such as 1,2,3")
    return [int(word) for word in words]
