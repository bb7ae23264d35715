"""Experiments and their results for the terminal, for programs and for Markdown."""

from __future__ import annotations

import itertools
from itertools import compress
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from recollect.lab.experiment import AnyExperiment, Experiment, P, R, U
    from recollect.lab.results import Summary

CORES = 2


def by_block(found: list[Summary[R, U]]) -> list[tuple[str, list[Summary[R, U]]]]:
    """The rows of each block, in order."""
    return [(block, list(rows)) for block, rows in itertools.groupby(found, key=lambda summary: summary.row.block)]


def recorded_once(found: list[Summary[R, U]]) -> list[Summary[R, U]]:
    """The rows without those that share the runs of another."""
    first: dict[tuple[str, str], Summary[R, U]] = {}
    for summary in found:
        run = summary.runs[0]
        first.setdefault((run.experiment, run.row), summary)
    return [*first.values()]


def _cells(
    experiment: Experiment[R, P, U], found: list[Summary[R, U]]
) -> tuple[list[str], list[tuple[str, list[tuple[str, list[str]]]]]]:
    """Columns, without those that no row has anything in, and the rows of each block with their cells."""
    rows = [
        (block, [(each.row.name, experiment.cells(each.row, each.runs)) for each in of])
        for block, of in by_block(found)
    ]
    told = [any(cells[number] != "-" for _, of in rows for _, cells in of) for number in range(len(experiment.columns))]
    return [*compress(experiment.columns, told)], [
        (block, [(name, [*compress(cells, told)]) for name, cells in of]) for block, of in rows
    ]


def table(experiment: Experiment[R, P, U], profile: P, found: list[Summary[R, U]]) -> Table:
    """The table for the terminal."""
    counts = sorted({len(summary.runs) for summary in found})
    seeds = f"{counts[0]} to {counts[-1]} seeds" if len(counts) > 1 else f"{counts[0]} seed{'s' * (counts[0] != 1)}"
    caption = f"profile {profile.name}: {experiment.amount(profile)}, {seeds}"
    shown = Table(title=escape(experiment.title), caption=caption, box=SIMPLE_HEAD, padding=0)  # fits 80 columns
    shown.add_column()  # names are broken where there is no room for all of them, numbers never
    columns, blocks = _cells(experiment, found)
    for column in columns:
        shown.add_column(column, justify="right", no_wrap=True)
    for block, rows in blocks:
        if block:
            shown.add_section()
            shown.add_row(f"[bold]{block}[/]")
        for name, cells in rows:
            shown.add_row(name, *cells)
    return shown


def markdown(experiment: Experiment[R, P, U], found: list[Summary[R, U]]) -> str:
    """The table for a document."""
    columns, blocks = _cells(experiment, found)
    lines = [f"| | {' | '.join(columns)} |", "|---|" + "---:|" * len(columns)]
    for block, rows in blocks:
        if block:
            lines.append(f"| **{block}** |" + " |" * len(columns))
        lines += [f"| {' | '.join([name, *cells])} |" for name, cells in rows]
    return "\n".join(lines)


# What every row has; null for what an experiment has not.
FIELDS = ("name", "storage_examples", "items", "bits_per_item", "retention", "paper", "seeds", "seconds")


def as_json(experiment: Experiment[R, P, U], profile: P, found: list[Summary[R, U]]) -> dict[str, Any]:
    """One object with everything."""
    return {
        "experiment": experiment.name,
        "profile": profile.name,
        "rows": [dict.fromkeys(FIELDS) | experiment.as_json(summary.row, summary.runs) for summary in found],
    }


def listing(experiments: Iterable[AnyExperiment]) -> Table:
    """The experiments, what they answer and how long they take."""
    names = ("quick", "standard", "paper")
    shown = Table(caption=f"Times are about those on {CORES} cores, with --jobs {CORES}.")
    shown.add_column("name", no_wrap=True)
    shown.add_column("what it answers")
    for name in names:
        shown.add_column(name, justify="right", no_wrap=True)
    for experiment in experiments:
        times = [_time(experiment, name) for name in names]
        shown.add_row(experiment.name, f"{experiment.title}. {experiment.answers}", *times)
    return shown


def rows_listing(experiment: AnyExperiment) -> Table:
    """The rows of an experiment, and what a run of each takes."""
    shown = Table(title=f"{experiment.title}. {experiment.answers}", caption="Seeds x the time of a run on one core.")
    shown.add_column("row", no_wrap=True)
    costs: dict[str, dict[str, str]] = {}
    for name, profile in experiment.profiles.items():
        shown.add_column(name, justify="right", no_wrap=True)
        for row in experiment.distinct(profile, experiment.chosen(profile)):
            time = duration(experiment.cost(profile, row))
            costs.setdefault(row.name, {})[name] = f"{len(profile.seeds_of(row))} x {time}"
    for row in experiment.rows:
        if row.name in costs:  # others do the same as one before
            shown.add_row(row.name, *(costs[row.name].get(name, "-") for name in experiment.profiles))
    return shown


def _time(experiment: AnyExperiment, name: str) -> str:
    """Expected time on two cores."""
    if name not in experiment.profiles:
        return "-"
    profile = experiment.profiles[name]
    rows = experiment.distinct(profile, experiment.chosen(profile))
    return duration(sum(len(profile.seeds_of(row)) * experiment.cost(profile, row) for row in rows) / CORES)


def duration(seconds: float) -> str:
    """A time in the unit that suits it.

    >>> duration(61), duration(3600), duration(1e6)
    ('61 s', '60 min', '12 days')
    """
    for unit, length in (("s", 1), ("min", 60), ("h", 3600)):
        if seconds < 90 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds / 86400:.0f} days"
