"""Experiments and their results for the terminal, for programs and for Markdown."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from recollect.lab.cost import core_seconds

if TYPE_CHECKING:
    from collections.abc import Iterable

    from recollect.lab.experiment import Experiment, Profile
    from recollect.lab.results import Summary

CORES = 2
COLUMNS = ("storage", "items", "bits", "retention, %", "paper", "difference")


def cells(summary: Summary) -> tuple[str, ...]:
    """A row's cells, in the order of COLUMNS behind its name."""
    first, paper = summary.runs[0], summary.row.paper
    spread = f" ± {summary.std:.1f}" if len(summary.runs) > 1 else ""
    return (
        f"{first.storage_examples:,.{int(first.storage_examples < 1000)}f}" if first.storage_examples else "0",
        f"{first.items:,}",
        f"{first.bits_per_item:,}" if first.bits_per_item else "-",
        f"{summary.mean:.1f}{spread}",
        f"{paper:.1f}" if paper is not None else "-",
        f"{summary.mean - paper:+.1f}" if paper is not None else "-",
    )


def by_block(found: list[Summary]) -> list[tuple[str, list[Summary]]]:
    """The rows of each block, in order."""
    return [(block, list(rows)) for block, rows in itertools.groupby(found, key=lambda summary: summary.row.block)]


def table(experiment: Experiment, profile: Profile, found: list[Summary]) -> Table:
    """The table for the terminal."""
    counts = sorted({len(summary.runs) for summary in found})
    seeds = f"{counts[0]} to {counts[-1]} seeds" if len(counts) > 1 else f"{counts[0]} seed{'s' * (counts[0] != 1)}"
    amount = f"{profile.tasks} tasks of {profile.train_examples:,} examples in batches of {profile.stream_batch}"
    caption = f"profile {profile.name}: {amount}, {seeds}"
    shown = Table(title=experiment.title, caption=caption, box=SIMPLE_HEAD, padding=0)  # fits 80 columns
    shown.add_column(no_wrap=True)
    for column in COLUMNS:
        shown.add_column(column, justify="right", no_wrap=True)
    for block, rows in by_block(found):
        if block:
            shown.add_section()
            shown.add_row(f"[bold]{block}[/]")
        for summary in rows:
            shown.add_row(summary.row.name, *cells(summary))
    return shown


def markdown(found: list[Summary]) -> str:
    """The table for a document."""
    lines = [f"| | {' | '.join(COLUMNS)} |", "|---|" + "---:|" * len(COLUMNS)]
    for block, rows in by_block(found):
        if block:
            lines.append(f"| **{block}** |" + " |" * len(COLUMNS))
        lines += [f"| {summary.row.name} | {' | '.join(cells(summary))} |" for summary in rows]
    return "\n".join(lines)


def as_json(experiment: Experiment, profile: Profile, found: list[Summary]) -> dict[str, Any]:
    """One object with everything."""
    return {
        "experiment": experiment.name,
        "profile": profile.name,
        "rows": [summary.as_json() for summary in found],
    }


def listing(experiments: Iterable[Experiment]) -> Table:
    """The experiments, what they answer and how long they take."""
    shown = Table()
    for column in ("name", "what it answers", *(f"{name}, about" for name in ("quick", "standard", "paper"))):
        shown.add_column(column, justify="right" if "about" in column else "left")
    for experiment in experiments:
        times = [_time(experiment, name) for name in ("quick", "standard", "paper")]
        shown.add_row(experiment.name, f"{experiment.title}. {experiment.answers}", *times)
    return shown


def _time(experiment: Experiment, name: str) -> str:
    """Expected time on two cores."""
    if name not in experiment.profiles:
        return "-"
    profile = experiment.profiles[name]
    rows = experiment.distinct(profile, experiment.chosen(profile))
    return duration(profile.seeds * sum(core_seconds(row, profile, experiment.course) for row in rows) / CORES)


def duration(seconds: float) -> str:
    """A time in the unit that suits it.

    >>> duration(61), duration(3600), duration(1e6)
    ('61 s', '60 min', '12 days')
    """
    for unit, length in (("s", 1), ("min", 60), ("h", 3600)):
        if seconds < 90 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds / 86400:.0f} days"
