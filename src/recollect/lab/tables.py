"""Renders recorded runs into README and docs: ``make tables``. A test fails when they differ."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.lab import results
from recollect.lab.show import duration, markdown
from recollect.lab.table1 import EXPERIMENT

if TYPE_CHECKING:
    from recollect.lab.continual import ContinualRow
    from recollect.lab.run import ContinualRun

ROOT = Path(__file__).parents[3]
DOCUMENTS = ("README.md", "docs/table1.md")
PROFILE = EXPERIMENT.profiles["standard"]


def blocks(folder: Path) -> dict[str, str]:
    """The text of every block, by the name that marks it in a document. Rows without all seeds are left out."""
    found = [
        summary
        for summary in results.summaries(folder, EXPERIMENT, PROFILE, EXPERIMENT.chosen(PROFILE))
        if len(summary.runs) >= PROFILE.seeds
    ]
    few = EXPERIMENT.profiles["quick"].rows
    selected = [summary for summary in found if summary.row.name in few]
    return {
        "table1": markdown(EXPERIMENT, found),
        "table1-selected": markdown(EXPERIMENT, selected),
        "table1-machine": machine(found),
    }


def machine(found: list[results.Summary[ContinualRow, ContinualRun]]) -> str:
    """Where and how long."""
    runs = {(run.row, run.seed): run for summary in found for run in summary.runs}.values()
    seconds = sum(run.seconds + run.evaluation_seconds for run in runs)
    described = {f"{run.environment['threads']} thread a run on an {run.environment['cpu']}" for run in runs}
    each = min(len(summary.runs) for summary in found)
    return (
        f"Mean and standard deviation of {each} seeds. {len(runs)} runs, {duration(seconds)} of one core, "
        f"{', '.join(sorted(described))}, PyTorch {', '.join(sorted({run.environment['torch'] for run in runs}))}."
    )


def rendered(document: str, texts: dict[str, str]) -> str:
    """The document with its blocks made anew."""
    for name, text in texts.items():
        block = f"<!-- {name} -->\n{text}\n<!-- /{name} -->"
        document = re.sub(f"<!-- {name} -->.*<!-- /{name} -->", lambda _, block=block: block, document, flags=re.DOTALL)
    return document


def main() -> None:
    """Rewrite the documents."""
    texts = blocks(ROOT / "results")
    for name in DOCUMENTS:
        path = ROOT / name
        path.write_text(rendered(path.read_text(), texts))


if __name__ == "__main__":
    main()
