"""Renders recorded runs into README and docs, as tables and figures: ``make tables``. A test fails when they differ."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import recollect as rc
from recollect.lab import ageing, frontier, frontier_cifar100, frontier_omniglot, results, table1, table2
from recollect.lab.continual import Continual
from recollect.lab.experiments import EXPERIMENTS
from recollect.lab.figures import accuracy_by_task, retention_against_storage
from recollect.lab.show import duration, markdown, recorded_once

if TYPE_CHECKING:
    from collections.abc import Container

    from matplotlib.figure import Figure

    from recollect.lab.experiment import AnyExperiment, Row
    from recollect.lab.results import Summary

    Record = tuple[list[Summary[Any, Any]], list[Row]]  # rows that have runs, and those that have none

ROOT = Path(__file__).parents[3]
DOCUMENTS = ("README.md", *(path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "docs").rglob("*.md"))))
FIGURES = ROOT / "docs" / "images"
# The rows of Table 2 for the README: one storage, every kind of memory.
IN_50 = tuple(f"Replay {kind} 50" for kind in ("Real Storage", "Recollections", "Resized Pixels", "JPEG", "Cosines"))
FRONTIERS = (frontier.EXPERIMENT, frontier_cifar100.EXPERIMENT, frontier_omniglot.EXPERIMENT)
SELECTED = table1.EXPERIMENT.profiles["quick"].rows  # the few rows of Table 1 that tell its story
LEARNERS = (rc.Online, rc.Replay, rc.GEM, rc.EWC, rc.LwF, rc.ICaRL, rc.Offline)


def recorded(experiment: AnyExperiment, folder: Path) -> Record:
    """The rows of the profile standard that have runs, and those that have none and would not share another's."""
    profile = experiment.profiles["standard"]
    rows = experiment.chosen(profile)
    found = results.summaries(folder, experiment, profile, rows)
    names = {summary.row.name for summary in found}
    return found, [row for row in experiment.distinct(profile, rows) if row.name not in names]


def among(record: Record, names: Container[str]) -> Record:
    """The rows of a record with these names."""
    found, missing = record
    return [summary for summary in found if summary.row.name in names], [row for row in missing if row.name in names]


def blocks(folder: Path) -> dict[str, str]:
    """The text of every block, by the name that marks it in a document: figure, table, and how it was made."""
    records = {name: recorded(experiment, folder) for name, experiment in EXPERIMENTS.items()}
    texts = {name: block(EXPERIMENTS[name], *record) for name, record in records.items()}
    texts["table1-selected"] = block(table1.EXPERIMENT, *among(records["table1"], SELECTED))
    texts["table2-selected"] = block(table2.EXPERIMENT, *among(records["table2"], IN_50))
    texts["ageing-trials"] = ageing.trials_table(folder / "ageing" / "trials.jsonl")
    texts |= {f"learner-{learner.__name__}": block_of_learner(learner, records) for learner in LEARNERS}
    return texts


def block_of_learner(learner: type[rc.Learner], records: dict[str, Record]) -> str:
    """What was recorded of a learner with the settings that were chosen for it, table by table."""
    parts = []
    for name, experiment in EXPERIMENTS.items():
        if type(experiment) is Continual:
            own = {row.name for row in experiment.rows if row.learner is learner and not row.block}
            if own:
                parts += [f"[{experiment.title}](../{name}.md)", block(experiment, *among(records[name], own))]
    return "\n\n".join(parts)


def block(experiment: AnyExperiment, found: list[Summary[Any, Any]], missing: list[Row]) -> str:
    """The text of a block."""
    if not found:
        return f"Not yet run: `recollect run {experiment.name} --jobs 2` does."
    drawn = experiment.figure(found) is not None
    figure = f"![{experiment.title}](images/{experiment.name}.png)\n\n" if drawn else ""
    told = [machine(found), *seeds_left(experiment, found)]
    if missing:
        told.append(f"Not yet run: {', '.join(row.name for row in missing)}.")
    return f"{figure}{markdown(experiment, found)}\n\n{' '.join(told)}"


def machine(found: list[Summary[Any, Any]]) -> str:
    """Where and how long."""
    runs = {(run.row, run.seed): run for summary in found for run in summary.runs}.values()
    seconds = sum(run.seconds for run in runs)
    described = {f"{run.environment['threads']} thread a run on an {run.environment['cpu']}" for run in runs}
    each = sorted({len(summary.runs) for summary in found})
    seeds = f"{each[0]} to {each[-1]} seeds" if len(each) > 1 else f"{each[0]} seeds"
    averaged = "One seed" if each == [1] else f"Mean and standard deviation of {seeds}"
    return (
        f"{averaged}. {len(runs)} run{'s' * (len(runs) > 1)}, {duration(seconds)} of training on one core, "
        f"{', '.join(sorted(described))}, PyTorch {', '.join(sorted({run.environment['torch'] for run in runs}))}."
    )


def seeds_left(experiment: AnyExperiment, found: list[Summary[Any, Any]]) -> list[str]:
    """Which rows have fewer seeds so far than they are to have; their names, unless these are all."""
    behind: dict[str, list[str]] = {}
    once = recorded_once(found)
    for row, runs in ((summary.row, len(summary.runs)) for summary in once):
        if runs < (wanted := len(experiment.profiles["standard"].seeds_of(row))):
            behind.setdefault(f"{runs} of {wanted} seeds so far", []).append(row.name)
    named = {seeds: f": {', '.join(names)}" if len(names) < len(once) else "" for seeds, names in behind.items()}
    return [f"{seeds}{names}." for seeds, names in named.items()]


def rendered(document: str, texts: dict[str, str]) -> str:
    """The document with its blocks made anew."""
    for name, text in texts.items():
        block = f"<!-- {name} -->\n{text}\n<!-- /{name} -->"
        document = re.sub(f"<!-- {name} -->.*<!-- /{name} -->", lambda _, block=block: block, document, flags=re.DOTALL)
    return document


def figures(folder: Path) -> dict[str, tuple[Figure, str]]:
    """Every figure that can be drawn, by name, and the digest of what it is drawn from."""
    drawn = {}
    for name, experiment in EXPERIMENTS.items():
        record = recorded(experiment, folder)
        if (found := record[0]) and (figure := experiment.figure(found)) is not None:
            drawn[name] = figure, digest(found)
        if experiment is table1.EXPERIMENT and (few := among(record, SELECTED)[0]):
            drawn["forgetting"] = accuracy_by_task(few), digest(few)
    if found := [(experiment, rows) for experiment in FRONTIERS if (rows := recorded(experiment, folder)[0])]:
        drawn["frontier"] = retention_against_storage(found), digest([summary for _, rows in found for summary in rows])
    return drawn


def digest(found: list[Summary[Any, Any]]) -> str:
    """Of all that a figure is drawn from. It is kept in the picture, and tells if it is that of the recorded runs.

    What an earlier version did not record is empty, and does not count.
    """
    runs = [[summary.row.name, [_recorded(run) for run in summary.runs]] for summary in found]
    return hashlib.blake2b(json.dumps(runs, sort_keys=True).encode(), digest_size=16).hexdigest()


def _recorded(run: Any) -> dict[str, Any]:
    return {name: value for name, value in asdict(run).items() if value != {}}


def main() -> None:
    """Rewrite the documents and draw the figures."""
    texts = blocks(ROOT / "results")
    for name in DOCUMENTS:
        path = ROOT / name
        path.write_text(rendered(path.read_text(), texts))
    for name, (figure, drawn_from) in figures(ROOT / "results").items():
        figure.savefig(FIGURES / f"{name}.png", dpi=150, metadata={"Description": drawn_from})


if __name__ == "__main__":
    main()
