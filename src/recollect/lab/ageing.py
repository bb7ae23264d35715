"""Code ageing on MNIST-Rotations in the storage of 100 images: what age costs the paper's codec, and what bounds it."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any

from recollect.lab.continual import Continual, ContinualProfile, retention
from recollect.lab.table1 import LEARNED_100, PIXELS_100, replay, tuned

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from recollect.lab.continual import ContinualRow
    from recollect.lab.experiment import Settings
    from recollect.lab.run import ContinualRun

AVERAGING = 0.995  # the decoder's average reaches about 200 steps back


@dataclass(frozen=True, kw_only=True)
class CodeAgeing(Continual):
    """Errors of what the memory holds in the end, and of the same images encoded anew."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Retention, and mean absolute errors."""
        return ("bits", "retention, %", "held", "anew", "cost", "first held", "first anew")

    def cells(self, row: ContinualRow, runs: list[ContinualRun]) -> tuple[str, ...]:
        """The cells of a row, in the order of the columns."""
        mean, std = retention(runs)
        spread = f" ± {std:.1f}" if len(runs) > 1 else ""
        held, fresh = (errors(runs, kind) for kind in ("held", "fresh"))
        first = (f"{runs[0].bits_per_item:,}", f"{mean:.1f}{spread}")
        if not (held and fresh):
            return (*first, *["diverged"] * (len(self.columns) - len(first)))
        found = (fmean(held), fmean(fresh), fmean(held) - fmean(fresh), held[0], fresh[0])
        return (*first, *(f"{error:.4f}" for error in found))

    def as_json(self, row: ContinualRow, runs: list[ContinualRun]) -> dict[str, Any]:
        """The row as `--json` prints it, with errors by task."""
        return super().as_json(row, runs) | {"ageing": {kind: errors(runs, kind) for kind in ("held", "fresh")}}


def errors(runs: Iterable[ContinualRun], kind: str) -> list[float]:
    """Errors by task after the last one, mean over seeds; tasks of which nothing is held are left out."""
    by_task = zip(*(run.ageing[kind][-1] for run in runs), strict=True)
    known = ([error for error in each if error is not None] for each in by_task)
    return [fmean(each) for each in known if each]


@dataclass(frozen=True)
class Trial:
    """A way to bound ageing that was tried, with a seed: retention in percent, and errors as in `CodeAgeing`."""

    row: str
    settings: Settings
    seed: int
    retention: float
    held: list[float]  # by task
    fresh: list[float]
    seconds: float


def trials_table(path: Path) -> str:
    """All that was tried, as a table for a document; what has the same seed can be compared."""
    columns = ("seed", "retention, %", "held", "encoded anew", "first task held", "last task held")
    lines = [f"| | {' | '.join(columns)} |", "|---|" + "---:|" * len(columns)]
    trials = [Trial(**json.loads(line)) for line in path.read_text().splitlines()]
    for trial in sorted(trials, key=lambda trial: trial.seed):
        shown = (fmean(trial.held), fmean(trial.fresh), trial.held[0], trial.held[-1])
        numbers = (str(trial.seed), f"{trial.retention:.1f}", *(f"{error:.4f}" for error in shown))
        lines.append(f"| {trial.row} | {' | '.join(numbers)} |")
    return "\n".join(lines)


def row(name: str, memory: Settings, **changed: Any) -> ContinualRow:
    """Replay as in Table 1."""
    return replace(replay(name, 100, None, memory | changed, tuned(0.2, 25, 3)), name=name)


TRAINING: Settings = LEARNED_100["training"]
QUICK: Settings = TRAINING | {"warm_up": (400, 20)}  # the first task, which is shorter there
EXPERIMENT = CodeAgeing(
    name="ageing",
    title="Code ageing: MNIST-Rotations in the storage of 100 images",
    answers="How far do old codes fall behind the codec that reads them, and what keeps them from it?",
    rows=(
        row("Paper's codec", LEARNED_100, quick_training=QUICK),
        row(
            "Averaged decoder",
            LEARNED_100,
            code=LEARNED_100["code"] | {"averaging": AVERAGING},
            quick_training=QUICK,
        ),
        row(
            "No rehearsal",
            LEARNED_100,
            training=TRAINING | {"rehearse": "none"},
            quick_training=QUICK | {"rehearse": "none"},
        ),
        row("Resized pixels", PIXELS_100),
    ),
    profiles={
        "quick": ContinualProfile(
            name="quick",
            seeds=1,
            tasks=6,
            train_examples=400,
            test_examples=1000,
            matrix_examples=100,
            rows=("Paper's codec", "Averaged decoder"),
        ),
        "standard": ContinualProfile(name="standard", seeds=3),
    },
    notes=(
        "Mean absolute errors of values in [0, 1] after the last task: of items as the memory holds them, of the same "
        "images encoded anew, what age costs, and both errors for the first task. Resized pixels do not age.",
    ),
)
