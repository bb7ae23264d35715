"""The command line: `recollect list`, `run`, `table` and `plan`; `info`, `verify`, `show` and `forget` for files."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import torch
import typer
from rich.console import Console

import recollect as rc
from recollect.inspection import damage, facts
from recollect.inspection.waiting import waiting
from recollect.lab import own, results, runner
from recollect.lab.experiments import EXPERIMENTS
from recollect.lab.show import as_json, listing, table
from recollect.memory.file import DamagedFileError, MemoryFileError, reading
from recollect.memory.saved import restored

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recollect.lab.experiment import AnyExperiment, Profile, Row
    from recollect.memory.file import Watch

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
# Progress and remarks go to the standard error stream, so that the output of --json can be piped.
out, remarks = Console(), Console(stderr=True)

Name = Annotated[str, typer.Argument(help="the experiment, as `recollect list` names it")]
ProfileName = Annotated[str, typer.Option("--profile", "-p", help="quick, standard or paper")]
Rows = Annotated[list[str] | None, typer.Option(help="only rows whose names have this part; may be given again")]
AsJson = Annotated[bool, typer.Option("--json", help="print one JSON object instead of a table")]
MemoryFile = Annotated[
    Path, typer.Argument(exists=True, dir_okay=False, help="what a memory or a learner was saved to")
]
OfTask = Annotated[int | None, typer.Option("--task", min=0, help="only items of this task")]
OfLabel = Annotated[int | None, typer.Option("--label", min=0, help="only items with this label")]
MOST_DIGITS = 18  # of an id, which has 64 bits


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


@app.command("list")
def list_experiments() -> None:
    """The experiments, what each answers and about how long it takes on two cores, with --jobs 2."""
    out.print(listing(EXPERIMENTS.values()))


@app.command()
def run(
    name: Annotated[str | None, typer.Argument(help="the experiment, as `recollect list` names it")] = None,
    *,
    stream: Annotated[
        str | None, typer.Option(help="folder:PATH, in place of a name: your own images, a folder for each class")
    ] = None,
    shape: Annotated[str | None, typer.Option(help="with --stream: what images are scaled to (3x32x32)")] = None,
    tasks: Annotated[int | None, typer.Option(min=1, help="with --stream: groups that classes come in (5)")] = None,
    storage: Annotated[
        int | None, typer.Option(min=1, help="with --stream: images that a memory may take (1 % of them)")
    ] = None,
    profile: ProfileName = "standard",
    seeds: Annotated[int | None, typer.Option(min=1, help="how many seeds, from 0 (default: the profile's)")] = None,
    rows: Rows = None,
    folder: Annotated[Path, typer.Option("--out", help="folder for the runs; what is there is not run again")] = Path(
        "runs"
    ),
    jobs: Annotated[int, typer.Option(min=1, help="runs side by side, with a thread each if more than one")] = 1,
    device: Annotated[str, typer.Option(help="auto, cpu, or a device of PyTorch such as cuda")] = "auto",
    as_json_object: AsJson = False,
) -> None:
    """Run an experiment and show its table. Each run is written as it ends; a stopped command goes on when repeated."""
    of_stream = {"shape": shape, "tasks": tasks, "storage": storage}
    experiment, chosen = _find(name, profile) if stream is None else _own(name, stream, profile, of_stream)
    if stream is None and (extra := [f"--{option}" for option, value in of_stream.items() if value is not None]):
        raise typer.BadParameter(f"{', '.join(extra)}: accepted with --stream only")
    wanted = _rows(experiment, chosen, rows)
    try:
        jobs_left = runner.jobs_left(experiment, chosen, wanted, seeds, folder, device=_device(device))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    runs = sum(len(chosen.seeds_of(row, seeds)) for row in experiment.distinct(chosen, wanted))
    if done := runs - len(jobs_left):
        remarks.print(f"{done} of {runs} runs are in {folder} already.")
    try:  # in this process, so that workers find the data and do not all download it
        if jobs_left:
            experiment.prepare(chosen, [job.row for job in jobs_left])
    except (OSError, ValueError) as error:  # data that is not there, or is not what it should be
        _say(str(error), remarks)
        raise typer.Exit(1) from None
    try:
        runner.run(jobs_left, partial(results.write, folder), workers=jobs, console=remarks)
    except KeyboardInterrupt:
        remarks.print(f"Stopped. Finished runs are in {folder}; the same command goes on from there.")
        raise typer.Exit(130) from None
    except (MemoryFileError, OSError) as error:  # such as a full disk
        remarks.print(f"{error}\nFinished runs are in {folder}; the same command goes on from the last checkpoint.")
        raise typer.Exit(1) from None
    found = results.summaries(folder, experiment, chosen, wanted, seeds or chosen.seeds)
    _show(experiment, chosen, found, as_json_object)


@app.command("table")
def show_table(
    name: Name,
    *,
    profile: ProfileName = "standard",
    rows: Rows = None,
    folder: Annotated[Path, typer.Option("--results", help="folder of recorded runs")] = Path("results"),
    as_json_object: AsJson = False,
) -> None:
    """The table of recorded runs; nothing is run."""
    experiment, chosen = _find(name, profile)
    try:
        found = results.summaries(folder, experiment, chosen, _rows(experiment, chosen, rows))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    if not found:
        raise typer.BadParameter(
            f"{folder} has no runs of {name} in profile {profile} with the settings of this version; "
            f"`recollect run {name} --profile {profile} --out {folder}` makes them"
        )
    _show(experiment, chosen, found, as_json_object)


@app.command()
def plan(
    *,
    shape: Annotated[str, typer.Option(help="channels x height x width, such as 3x32x32")],
    storage: Annotated[float | None, typer.Option(help="storage in raw examples")] = None,
    items: Annotated[int | None, typer.Option(help="items to be kept")] = None,
    variables: Annotated[int | None, typer.Option(help="variables of a code, the paper's c")] = None,
    categories: Annotated[int | None, typer.Option(help="values of a variable, the paper's l")] = None,
    count_codec: Annotated[bool, typer.Option("--count-codec", help="the codec's parameters count, too")] = False,
    as_json_object: AsJson = False,
) -> None:
    """The code shape for a storage constraint: two of storage, items, and variables with categories."""
    try:
        found = rc.plan(
            shape=_shape(shape),
            storage_examples=storage,
            items=items,
            variables=variables,
            categories=categories,
            count_codec=count_codec,
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    code = {name: getattr(found, name) for name in ("variables", "categories", "bits_per_item", "items")}
    if as_json_object:
        print(json.dumps(code | {"parameters": found.parameter_count, "bits": found.bill.bits}))
        return
    out.print(
        f"{found.items:,} items of {found.variables} variables with {found.categories} values, "
        f"{found.bits_per_item} bits each; the codec has {found.parameter_count:,} parameters",
        highlight=False,
    )
    out.print(str(found.bill), highlight=False)


@app.command()
def info(file: MemoryFile, *, as_json_object: AsJson = False) -> None:
    """What a memory file holds and what it costs: bill, counts, codec, learner, and what was erased."""
    with _reading(file) as watch:
        found = facts.facts(file, watch)
    if as_json_object:
        print(json.dumps(facts.as_json(found)))
    else:
        _say(facts.text(found))


@app.command()
def verify(file: MemoryFile, *, as_json_object: AsJson = False) -> None:
    """Look for all that is wrong with a memory file. The exit code is 1 if there is anything."""
    with _reading(file) as watch:
        found = damage.examined(file, watch)
    if as_json_object:
        print(json.dumps(damage.as_json(found)))
    else:
        _say(damage.text(found))
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
    memory = _opened(file)
    try:
        with waiting(remarks, f"Drawing {target}"):
            drawn = draw_memory(memory, target, items=items, task=task, label=label)
    except (ValueError, OSError) as error:
        raise typer.BadParameter(str(error)) from None
    _say(f"{drawn} of {len(memory):,} items: {target}")


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
    memory = _opened(file)
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
        _say(f"Nothing was erased: {error}", remarks)
        raise typer.Exit(1) from None
    line = memory.audit[-1]
    _say(f"Erased {what} from {file}. The audit has a line: {line.time}, {line.items} by {line.rule}.")


@contextmanager
def _reading(path: Path) -> Iterator[Watch]:
    """Show how far the reading of a file has come, and say what keeps it from being read."""
    try:
        if not damage.is_database(path):
            raise MemoryFileError(f"{path} is no file of a memory: it does not begin as a database of SQLite does")
        with waiting(remarks, f"Reading {path}", path.stat().st_size) as watch:
            yield watch
    except DamagedFileError as error:
        _say(f"{error}\n`recollect verify {path}` looks for all that is wrong.", remarks)
        raise typer.Exit(1) from None
    except (MemoryFileError, OSError) as error:
        raise typer.BadParameter(str(error)) from None


def _opened(path: Path) -> rc.Memory:
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


def _say(text: str, console: Console = out) -> None:
    """Print as it is, for names of files may look like markup."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def _shape(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.lower().split("x"))
    except ValueError:
        raise typer.BadParameter(f"shape={text!r}: accepted is channels x height x width, such as 3x32x32") from None


def _own(name: str | None, stream: str, profile: str, settings: dict[str, Any]) -> tuple[AnyExperiment, Profile]:
    """The experiment on a stream of the user's own."""
    kind, _, path = stream.partition(":")
    if name is not None or kind != "folder" or not path:
        raise typer.BadParameter(f"{name or ''} --stream {stream}: accepted is --stream folder:PATH, and no name")
    given = {option: value for option, value in settings.items() if value is not None}
    if "shape" in given:
        given["shape"] = _shape(given["shape"])
    try:
        experiment = own.experiment(Path(path), profile=profile, **given)
    except (OSError, ValueError) as error:
        raise typer.BadParameter(str(error)) from None
    return experiment, experiment.profiles[profile]


def _find(name: str | None, profile: str) -> tuple[AnyExperiment, Profile]:
    if name is None:
        raise typer.BadParameter("no name: accepted is that of an experiment, or --stream folder:PATH")
    if name not in EXPERIMENTS:
        raise typer.BadParameter(f"{name!r}: accepted are {', '.join(EXPERIMENTS)}")
    experiment = EXPERIMENTS[name]
    if profile not in experiment.profiles:
        raise typer.BadParameter(f"profile={profile!r}: accepted are {', '.join(experiment.profiles)}")
    return experiment, experiment.profiles[profile]


def _rows(experiment: AnyExperiment, profile: Profile, words: list[str] | None) -> list[Row]:
    try:
        return experiment.chosen(profile, words or ())
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _device(name: str) -> torch.device:
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise typer.BadParameter(f"device={name!r}: {error}") from None
    return device


def _show(
    experiment: AnyExperiment, profile: Profile, found: list[results.Summary[Any, Any]], as_json_object: bool
) -> None:
    if as_json_object:
        print(json.dumps(as_json(experiment, profile, found)))
    else:
        out.print(table(experiment, profile, found))
        for note in experiment.notes:
            out.print(note, highlight=False)


if __name__ == "__main__":
    app()
