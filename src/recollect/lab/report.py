"""One page of all recorded runs: tables, pictures and what was run, in a file that needs nothing else."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

import recollect as rc
from recollect.lab import results
from recollect.lab.colours import colour
from recollect.lab.experiments import EXPERIMENTS
from recollect.lab.panels import styled
from recollect.lab.sheet import Tile, read_tiles
from recollect.lab.show import by_block, duration, recorded_once
from recollect.lab.svg import inline

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from recollect.lab.experiment import AnyExperiment, Profile, Row
    from recollect.lab.panels import Picture
    from recollect.lab.results import Summary


@dataclass(frozen=True)
class Line:
    """A row of the table."""

    name: str
    colour: str
    cells: tuple[str, ...]
    settings: str


@dataclass(frozen=True)
class Drawn:
    """A picture with its panels as elements of the page."""

    picture: Picture
    panels: list[tuple[str, Markup]]  # a title and the figure


@dataclass(frozen=True)
class Section:
    """An experiment in one profile."""

    name: str
    experiment: AnyExperiment
    profile: Profile
    columns: tuple[str, ...]
    blocks: list[tuple[str, list[Line]]]
    pictures: list[Drawn]
    gallery: list[tuple[str, list[Tile]]]
    facts: dict[str, str]


def report(folder: Path, experiments: Iterable[AnyExperiment] = EXPERIMENTS.values()) -> str:
    """The page for the runs of the experiments in a folder; ValueError if there are none."""
    sections = [*_sections(folder, experiments)]
    if not sections:
        raise ValueError(
            f"{folder} has no runs with the settings of this version; `recollect run NAME --out {folder}` makes them"
        )
    environment = Environment(
        loader=PackageLoader("recollect.lab", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html").render(sections=sections, version=rc.__version__)


def _sections(folder: Path, experiments: Iterable[AnyExperiment]) -> Iterator[Section]:
    for experiment in experiments:
        for profile in experiment.profiles.values():
            rows = [row.in_profile(profile) for row in experiment.rows]
            if found := results.summaries(folder, experiment, profile, rows):
                yield _section(folder, experiment, profile, found)


def _section(folder: Path, experiment: AnyExperiment, profile: Profile, found: list[Summary[Any, Any]]) -> Section:
    name = f"{experiment.name}-{profile.name}"
    return Section(
        name=name,
        experiment=experiment,
        profile=profile,
        columns=(*experiment.columns, "seeds", "a run took"),
        blocks=[(block, [_line(experiment, summary) for summary in rows]) for block, rows in by_block(found)],
        pictures=[*_drawn(name, experiment, found)],
        gallery=[*_gallery(folder, experiment, found)],
        facts=_facts(folder, experiment, profile, found),
    )


def _line(experiment: AnyExperiment, summary: Summary[Any, Any]) -> Line:
    row, runs = summary.row, summary.runs
    took = duration(sum(run.seconds for run in runs) / len(runs))
    cells = (*experiment.cells(row, runs), str(len(runs)), took)
    return Line(row.name, colour(row), cells, json.dumps(runs[0].settings))


def _drawn(name: str, experiment: AnyExperiment, found: list[Summary[Any, Any]]) -> Iterator[Drawn]:
    with styled():
        for number, picture in enumerate(experiment.pictures(found)):
            panels = [
                (panel.title, Markup(inline(panel.figure, panel.said, f"{name}-{number}-{place}-")))
                for place, panel in enumerate(picture.panels)
            ]
            yield Drawn(picture, panels)


def _gallery(
    folder: Path, experiment: AnyExperiment, found: list[Summary[Any, Any]]
) -> Iterator[tuple[str, list[Tile]]]:
    """What the first seed of each row left beside its run. Where that is another experiment's, its section has it."""
    for summary in recorded_once(found):
        run = summary.runs[0]
        path = results.path_of(folder, run.experiment, run.profile, run.row, run.seed)
        if run.experiment == experiment.name and (tiles := read_tiles(results.sheet_of(path))):
            yield summary.row.name, tiles


def _facts(folder: Path, experiment: AnyExperiment, profile: Profile, found: list[Summary[Any, Any]]) -> dict[str, str]:
    runs = [run for summary in recorded_once(found) for run in summary.runs]
    machines = {
        f"{run.environment['cpu']}, device {run.environment['device']}, {run.environment['threads']} "
        f"thread{'s' * (run.environment['threads'] > 1)} a run"
        for run in runs
    }
    parts = {"recollect": "recollect", "torch": "PyTorch", "numpy": "NumPy", "python": "Python"}
    versions = (f"{part} {', '.join(_each(runs, key))}" for key, part in parts.items())
    measuring = sum(getattr(run, "evaluation_seconds", 0.0) for run in runs)
    facts = {
        "Amount": f"{experiment.amount(profile)}; {len(runs)} runs",
        "When": _when(runs),
        "Where": "; ".join(sorted(machines)),
        "How long": f"{duration(sum(run.seconds for run in runs))} of training in all"
        + (f", {duration(measuring)} of measuring" if measuring else ""),
        "Versions": "; ".join(versions),
        "Commits": _commits(runs),
        "Command": experiment.command(profile),
    }
    if left := _left(experiment, profile, found):
        facts["Still to be run"] = ", ".join(left)
    own = [run for run in runs if run.experiment == experiment.name]
    others = len([*(folder / experiment.name / profile.name).glob("*/seed*.json")]) - len(own)
    if others > 0:
        facts["Not shown"] = f"{others} recorded with other settings than those of this version"
    return facts


def _each(runs: list[Any], key: str) -> list[str]:
    return sorted({str(run.environment[key]) for run in runs})


def _commits(runs: list[Any]) -> str:
    """Of the code; runs of earlier versions have none."""
    found = [run.environment["revision"] for run in runs if run.environment.get("revision")]
    told = ", ".join(dict.fromkeys(sorted(found)))
    left = len(runs) - len(found)
    return "; ".join(filter(None, [told, f"not recorded for {left} run{'s' * (left > 1)}" if left else ""]))


def _when(runs: list[Any]) -> str:
    """The first and the last day; runs of earlier versions have none."""
    dates = sorted(run.environment["date"] for run in runs if "date" in run.environment)
    if not dates:
        return "not recorded"
    span = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    return span + (f"; not recorded for {len(runs) - len(dates)} runs" if len(dates) < len(runs) else "")


def _left(experiment: AnyExperiment, profile: Profile, found: list[Summary[Any, Any]]) -> list[str]:
    """The rows of the profile that miss runs, and how many."""
    there = {summary.row.name: len(summary.runs) for summary in found}

    def missing(row: Row) -> int:
        return len(profile.seeds_of(row)) - there.get(row.name, 0)

    return [
        f"{row.name} ({missing(row)} of {len(profile.seeds_of(row))})"
        for row in experiment.chosen(profile)
        if missing(row) > 0
    ]
