"""Experiments: `recollect list`, `run`, `table` and `report`."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Annotated, Any

import torch
import typer

from recollect.cli.common import AsJson, app, folder_of, out, remarks, say, sizes
from recollect.inspection.waiting import waiting
from recollect.lab import own, results, runner
from recollect.lab.experiments import EXPERIMENTS
from recollect.lab.show import as_json, listing, rows_listing, table
from recollect.memory.file import MemoryFileError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from recollect.lab.experiment import AnyExperiment, Profile, Row
    from recollect.lab.job import AnyJob

DEVICES = ("cpu", "cuda", "mps")
Name = Annotated[str, typer.Argument(help="the experiment, as `recollect list` names it")]
ProfileName = Annotated[str, typer.Option("--profile", "-p", help="quick, standard or paper")]
Rows = Annotated[list[str] | None, typer.Option(help="only rows whose names have this part; may be given again")]


@app.command("list")
def list_experiments(
    name: Annotated[str | None, typer.Argument(help="an experiment, to see its rows and what each takes")] = None,
) -> None:
    """The experiments, what each answers and about how long it takes on two cores, with --jobs 2."""
    out.print(listing(EXPERIMENTS.values()) if name is None else rows_listing(_named(name)))


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
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 and so on, or mps")] = "auto",
    tensorboard: Annotated[
        Path | None,
        typer.Option(file_okay=False, help="a folder for TensorBoard: accuracy, distortion and images after each task"),
    ] = None,
    as_json_object: AsJson = False,
) -> None:
    """Run an experiment and show its table. Each run is written as it ends; a stopped command goes on when repeated.

    With --stream the runs are shown in a report, too.
    """
    of_stream = {"shape": shape, "tasks": tasks, "storage": storage}
    experiment, chosen = _find(name, profile) if stream is None else _own(name, stream, profile, of_stream)
    if stream is None and (extra := [f"--{option}" for option, value in of_stream.items() if value is not None]):
        raise typer.BadParameter(f"{', '.join(extra)}: accepted with --stream only")
    wanted = _rows(experiment, chosen, rows)
    try:
        jobs_left = runner.jobs_left(experiment, chosen, wanted, seeds, folder, device=_device(device))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    if tensorboard is not None:
        jobs_left = _with_diaries(jobs_left, experiment, tensorboard)
    _check_writable(folder)
    runs = sum(len(chosen.seeds_of(row, seeds)) for row in experiment.distinct(chosen, wanted))
    if done := runs - len(jobs_left):
        say(f"{done} of {runs} runs are in {folder} already.", remarks)
    try:  # in this process, so that workers find the data and do not all download it
        if jobs_left:
            experiment.prepare(chosen, [job.row for job in jobs_left])
    except (OSError, ValueError) as error:  # data that is not there, or is not what it should be
        say(str(error), remarks)
        raise typer.Exit(1) from None
    try:
        runner.run(jobs_left, partial(results.write, folder), workers=jobs, console=remarks)
    except KeyboardInterrupt:
        say(f"Stopped. Finished runs are in {folder}; the same command goes on from there.", remarks)
        raise typer.Exit(130) from None
    except (MemoryFileError, OSError, runner.RunError) as error:  # such as a full disk
        say(f"{error}\nFinished runs are in {folder}; the same command goes on from the last checkpoint.", remarks)
        raise typer.Exit(1) from None
    found = results.summaries(folder, experiment, chosen, wanted, seeds or chosen.seeds)
    _show(experiment, chosen, found, as_json_object)
    if stream is not None:
        say(_written(folder / experiment.name / "report.html", folder, [experiment]), remarks)


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
    if not folder.is_dir():
        raise typer.BadParameter(f"there is no folder {folder}: accepted is --results with one of recorded runs")
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


@app.command("report")
def write_report(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", exists=True, file_okay=False, help="folder of recorded runs")
    ] = Path("results"),
    *,
    page: Annotated[Path, typer.Option("--out", dir_okay=False, help="the page")] = Path("report.html"),
) -> None:
    """One HTML page of all recorded runs: tables, figures, recollections, and what was run. Nothing is run.

    The page is a single file that needs no network. Runs on your own images have a report of their own.
    """
    say(_written(page, folder, EXPERIMENTS.values()))


def _written(page: Path, folder: Path, experiments: Iterable[AnyExperiment]) -> str:
    """Write a report. Returns where it is, and how large."""
    from recollect.lab.report import report  # noqa: PLC0415 - matplotlib takes its time to load

    try:
        with waiting(remarks, f"Drawing {page}"):
            text = report(folder, experiments)
        page.write_text(text, encoding="utf-8")
    except (ValueError, OSError) as error:
        raise typer.BadParameter(str(error)) from None
    return f"{page}, {len(text) / 1e6:.1f} MB"


def _own(name: str | None, stream: str, profile: str, settings: dict[str, Any]) -> tuple[AnyExperiment, Profile]:
    """The experiment on a stream of the user's own."""
    folder = folder_of(stream)
    if name is not None or folder is None:
        raise typer.BadParameter(f"{name or ''} --stream {stream}: accepted is --stream folder:PATH, and no name")
    given = {option: value for option, value in settings.items() if value is not None}
    if "shape" in given:
        given["shape"] = sizes(given["shape"])
    try:
        experiment = own.experiment(folder, profile=profile, **given)
    except (OSError, ValueError) as error:
        raise typer.BadParameter(str(error)) from None
    return experiment, experiment.profiles[profile]


def _named(name: str) -> AnyExperiment:
    if name not in EXPERIMENTS:
        raise typer.BadParameter(f"{name!r}: accepted are {', '.join(EXPERIMENTS)}")
    return EXPERIMENTS[name]


def _find(name: str | None, profile: str) -> tuple[AnyExperiment, Profile]:
    if name is None:
        raise typer.BadParameter("no name: accepted is that of an experiment, or --stream folder:PATH")
    experiment = _named(name)
    if profile not in experiment.profiles:
        raise typer.BadParameter(f"profile={profile!r}: accepted are {', '.join(experiment.profiles)}")
    return experiment, experiment.profiles[profile]


def _rows(experiment: AnyExperiment, profile: Profile, words: list[str] | None) -> list[Row]:
    try:
        return experiment.chosen(profile, words or ())
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _with_diaries(jobs: list[AnyJob], experiment: AnyExperiment, folder: Path) -> list[AnyJob]:
    """The runs, each with a folder of its own that it writes to, in whatever process it is made."""
    if not experiment.keeps_diary:
        able = ", ".join(name for name, other in EXPERIMENTS.items() if other.keeps_diary)
        raise typer.BadParameter(f"--tensorboard with {experiment.name}: accepted are experiments on a stream, {able}")
    if find_spec("tensorboard") is None:
        raise typer.BadParameter("--tensorboard needs TensorBoard: `pip install tensorboard` installs it")
    paths = (results.kept_at(folder, experiment, job.profile, job.row, job.seed).with_suffix("") for job in jobs)
    return [replace(job, diary=path) for job, path in zip(jobs, paths, strict=True)]


def _device(name: str) -> torch.device:
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or device.type not in DEVICES:
        raise typer.BadParameter(f"device={name!r}: accepted are auto, {', '.join(DEVICES)}, and one such as cuda:1")
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise typer.BadParameter(f"device={name!r} is not there: {str(error).partition(chr(10))[0]}") from None
    return device


def _check_writable(folder: Path) -> None:
    """Better found before the runs than when the first of them is to be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise typer.BadParameter(f"--out {folder} cannot be written: {error}") from None


def _show(
    experiment: AnyExperiment, profile: Profile, found: list[results.Summary[Any, Any]], as_json_object: bool
) -> None:
    if as_json_object:
        print(json.dumps(as_json(experiment, profile, found)))
    else:
        out.print(table(experiment, profile, found))
        for note in experiment.notes:
            out.print(note, highlight=False)
