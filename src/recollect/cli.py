"""The command line: `recollect list`, `run`, `table` and `plan`."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import torch
import typer
from rich.console import Console

import recollect as rc
from recollect.lab import results, runner
from recollect.lab.experiments import EXPERIMENTS
from recollect.lab.show import as_json, listing, table

if TYPE_CHECKING:
    from recollect.lab.experiment import Experiment, Profile, Row

app = typer.Typer(
    help="A memory for neural networks that keep learning: experiments, tables and plans.",
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


@app.command("list")
def list_experiments() -> None:
    """The experiments, what each answers and about how long it takes on two cores, with --jobs 2."""
    out.print(listing(EXPERIMENTS.values()))


@app.command()
def run(
    name: Name,
    *,
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
    experiment, chosen = _find(name, profile)
    wanted = _rows(experiment, chosen, rows)
    numbers = list(range(chosen.seeds if seeds is None else seeds))
    try:
        jobs_left = runner.jobs_left(experiment, chosen, wanted, numbers, folder)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    if done := len(experiment.distinct(chosen, wanted)) * len(numbers) - len(jobs_left):
        remarks.print(f"{done} of {done + len(jobs_left)} runs are in {folder} already.")
    try:
        runner.run(jobs_left, partial(results.write, folder), workers=jobs, device=_device(device), console=remarks)
    except KeyboardInterrupt:
        remarks.print(f"Stopped. Finished runs are in {folder}; the same command goes on from there.")
        raise typer.Exit(130) from None
    _show(experiment, chosen, results.summaries(folder, experiment, chosen, wanted, numbers), as_json_object)


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
        sizes = tuple(int(part) for part in shape.lower().split("x"))
    except ValueError:
        raise typer.BadParameter(f"shape={shape!r}: accepted is channels x height x width, such as 3x32x32") from None
    try:
        found = rc.plan(
            shape=sizes,
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


def _find(name: str, profile: str) -> tuple[Experiment, Profile]:
    if name not in EXPERIMENTS:
        raise typer.BadParameter(f"{name!r}: accepted are {', '.join(EXPERIMENTS)}")
    experiment = EXPERIMENTS[name]
    if profile not in experiment.profiles:
        raise typer.BadParameter(f"profile={profile!r}: accepted are {', '.join(experiment.profiles)}")
    return experiment, experiment.profiles[profile]


def _rows(experiment: Experiment, profile: Profile, words: list[str] | None) -> list[Row]:
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


def _show(experiment: Experiment, profile: Profile, found: list[results.Summary], as_json_object: bool) -> None:
    if as_json_object:
        print(json.dumps(as_json(experiment, profile, found)))
    else:
        out.print(table(experiment, profile, found))
        for note in experiment.notes:
            out.print(note, highlight=False)


if __name__ == "__main__":
    app()
