"""Pictures of codecs on a stream of tasks: how well each task is reconstructed after each task."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from recollect.lab.heat_maps import heat_maps
from recollect.lab.panels import Picture

if TYPE_CHECKING:
    from recollect.lab.codec_experiment import CodecRow
    from recollect.lab.codec_run import CodecRun
    from recollect.lab.results import Summary


def pictures(found: list[Summary[CodecRow, CodecRun]]) -> list[Picture]:
    """Distortion by task as heat maps; a codec that saw all tasks at once has one line, and is left out."""
    named = {
        summary.row.name: np.mean([_square(run.by_task) for run in summary.runs], axis=0)
        for summary in found
        if len(summary.runs[0].by_task) > 1
    }
    if not named:
        return []
    most = max(float(np.nanmax(values)) for values in named.values())
    return [
        Picture(
            "Every task after every task",
            "Distortion, the mean over seeds. A line is a moment, after so many tasks; a column is a task. What shines "
            "below the diagonal is forgotten.",
            heat_maps(named, x="task", y="after", unit="mean absolute error", most=most),
            size="small",
        )
    ]


def _square(by_task: list[list[float]]) -> np.ndarray:
    """Lines of growing length, filled up with what is not known."""
    square = np.full((len(by_task), len(by_task)), np.nan)
    for number, line in enumerate(by_task):
        square[number, : len(line)] = line
    return square
