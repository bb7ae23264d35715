"""Pictures of learners on a stream of tasks: what they keep, in how much storage, and how well codecs do."""

from __future__ import annotations

import math
from collections import defaultdict
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import LogLocator, NullFormatter

from recollect.lab.colours import looks
from recollect.lab.continual import retention
from recollect.lab.curves import draw_curves
from recollect.lab.heat_maps import heat_maps
from recollect.lab.panels import Panel, Picture, empty, label, legend_below, said_of_lines
from recollect.lab.show import by_block, recorded_once

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes

    from recollect.lab.continual import ContinualRow
    from recollect.lab.results import Summary
    from recollect.lab.run import ContinualRun

    Found = list[Summary[ContinualRow, ContinualRun]]

HEIGHT = 2.6
SPREAD = 1.05  # less than that and rows stand one above the other
MARKERS = {"GEM": "s", "ICaRL": "^"}


def pictures(found: Found, example: int) -> list[Picture]:
    """All that there is something to draw for. ``example`` are the bits of a raw image."""
    drawn = (
        _over_tasks(found),
        _matrices(found),
        _against_storage(found, example),
        _distortion(found),
        _ageing(found),
    )
    return [picture for picture in drawn if picture.panels]


def _over_tasks(found: Found) -> Picture:
    panels = []
    for block, rows in _blocks([summary for summary in found if len(summary.runs[0].accuracy) > 1]):
        for storage, sharing in _by_storage(rows).items():
            title = f"{block}, {_images(storage)}" if block else _images(storage)
            panels.append(_curves(sharing, storage, title, _so_far, "accuracy on the tasks so far, %"))
    return Picture(
        "Retention over tasks",
        "Accuracy on all tasks learned so far, after each of them: the mean over seeds, and their range as a band. "
        "Rows without a set storage have a panel of their own.",
        panels,
    )


def _matrices(found: Found) -> Picture:
    named = {
        summary.row.name: np.mean([run.accuracy for run in summary.runs], axis=0)
        for summary in recorded_once(found)
        if len(summary.runs[0].accuracy) > 1
    }
    return Picture(
        "Every task after every task",
        "Accuracy in percent, the mean over seeds. A line is a moment, after so many tasks; a column is a task. What "
        "fades below the diagonal is forgotten; what shines above it is known before it was learned.",
        heat_maps(named, x="task", y="after", unit="accuracy, %", most=100),
        size="small",
    )


def _against_storage(found: Found, example: int) -> Picture:
    panels = []
    for block, rows in _blocks(found):
        for title, count in counts(example).items():
            stored = [size for summary in rows if (size := count(summary.runs[0]))]
            if stored and max(stored) > SPREAD * min(stored):
                panels.append(_points(rows, f"{block}: {title}" if block else title, count))
    beside = "Filled points are ours, hollow ones the paper's. " if any(summary.row.paper for summary in found) else ""
    return Picture(
        "Retention against storage",
        f"{beside}Points have the standard deviation over seeds. Both counts are in raw images, on a log scale. A row "
        f"that keeps nothing is a dashed line.",
        panels,
    )


def counts(example: int) -> dict[str, Callable[[ContinualRun], float]]:
    """The ways to count what a run keeps, in raw images of so many bits, by what they are called."""
    return {
        "codes or parameters alone, as the paper counts": lambda run: run.storage_examples,
        "every bit, labels and the codec counted": lambda run: run.bits["total"] / example,
    }


def _distortion(found: Found) -> Picture:
    lossy = [summary for summary in recorded_once(found) if any(map(any, summary.runs[0].distortion.values()))]
    kinds = {"new": "new images of the task", "held": "what the memory holds"}
    panels = [
        _curves(
            rows,
            storage,
            f"{_images(storage)}, {of}",
            lambda run, kind=kind: run.distortion[kind],
            "mean absolute error",
        )
        for storage, rows in _by_storage(lossy).items()
        for kind, of in kinds.items()
    ]
    return Picture(
        "Distortion over tasks",
        "How far what is decoded is from its original after each task, pixels in [0, 1]: on test images of the task "
        "just learned, and on items of all ages, which keep the codes that they were written with.",
        panels,
    )


def _ageing(found: Found) -> Picture:
    """Runs that were recorded before there was such a measure, and codecs that are exact, are left out."""
    aged = [summary for summary in recorded_once(found) if all(_last_ages(run, "held") for run in summary.runs)]
    lossy = [summary for summary in aged if any(_last_ages(summary.runs[0], "held"))]
    kinds = {"held": "as the memory holds them", "fresh": "encoded anew at the end"}
    panels = [
        _curves(
            rows,
            storage,
            f"{_images(storage)}, {of}",
            lambda run, kind=kind: _last_ages(run, kind),
            "mean absolute error",
            x="task that the item is of",
        )
        for storage, rows in _by_storage(lossy).items()
        for kind, of in kinds.items()
    ]
    return Picture(
        "Distortion by age",
        "How far items are from their originals after the last task, the oldest to the left: as the codec reads their "
        "codes at the end, and had it written them only then. What the two differ by is what age costs.",
        panels,
    )


def _last_ages(run: ContinualRun, kind: str) -> list[float | None]:
    """Errors by task after the last one; None for a task of which nothing is held."""
    lines = run.ageing.get(kind, [])
    return lines[-1] if lines else []


def _blocks(found: Found) -> list[tuple[str, Found]]:
    """The blocks of a table, without those that only show runs of others once more."""
    once = {summary.row.name for summary in recorded_once(found)}
    return [(block, rows) for block, rows in by_block(found) if any(summary.row.name in once for summary in rows)]


def _by_storage(rows: Found) -> dict[int | None, Found]:
    """The rows that share a storage, the smallest first; in the end those that have none."""
    grouped: dict[int | None, Found] = defaultdict(list)
    for summary in sorted(rows, key=lambda summary: summary.row.storage or math.inf):
        grouped[summary.row.storage].append(summary)
    return grouped


def _curves(
    rows: Found,
    storage: int | None,
    title: str,
    curve: Callable[[ContinualRun], Sequence[float | None]],
    y: str,
    *,
    x: str = "tasks so far",
) -> Panel:
    figure, axes = empty(HEIGHT)
    look_of = looks(summary.row for summary in rows)
    draw_curves(
        axes,
        {_short(name, storage): look for name, look in look_of.items()},
        {_short(summary.row.name, storage): [curve(run) for run in summary.runs] for summary in rows},
    )
    label(axes, x, y)
    legend_below(figure, axes, len(rows))
    return Panel(figure, said_of_lines(figure), title)


def _points(rows: Found, title: str, count: Callable[[ContinualRun], float]) -> Panel:
    figure, axes = empty(HEIGHT)
    lines = draw_points(axes, rows, count)
    label(axes, "storage in raw images", "retention, %")
    legend_below(figure, axes, lines)
    kept = (f"{s.row.name} {retention(s.runs)[0]:.1f} in {count(s.runs[0]):,.0f}" for s in rows)
    return Panel(figure, f"retention in percent against storage in raw images: {', '.join(kept)}", title)


def draw_points(axes: Axes, rows: Found, count: Callable[[ContinualRun], float]) -> int:
    """Draw what is retained against what is kept, a line for each kind of memory. Returns how many lines there are."""
    lines: dict[str, Found] = defaultdict(list)
    for summary in rows:
        lines[_short(summary.row.name, summary.row.storage)].append(summary)
    look_of = looks(group[0].row for group in lines.values())
    for name, group in lines.items():
        look = look_of[group[0].row.name]
        stored = [count(summary.runs[0]) for summary in group]
        means, deviations = zip(*(retention(summary.runs) for summary in group), strict=True)
        if not any(stored):
            axes.axhline(means[0], color=look.colour, linestyle=(0, (4, 3)), label=name)
            continue
        marker = MARKERS.get(group[0].row.learner.__name__, "o") if len(group) > 1 else look.marker
        drawn = {**look.drawn, "marker": marker}
        axes.errorbar(stored, means, deviations, label=name, **drawn, elinewidth=0.8)
        papers = [(x, summary.row.paper) for x, summary in zip(stored, group, strict=True) if summary.row.paper]
        if papers:
            axes.plot(*zip(*papers, strict=True), marker, color=look.colour, markerfacecolor="none", markersize=7)
    axes.set_xscale("log")
    least, most = axes.get_xlim()
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if most < 20 * least else (1,)))
    axes.xaxis.set_major_formatter("{x:,.7g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(alpha=0.3)
    return len(lines)


def _so_far(run: ContinualRun) -> list[float]:
    return [fmean(line[:number]) for number, line in enumerate(run.accuracy, 1)]


def _short(name: str, storage: int | None) -> str:
    """A name without the storage that others in the panel have, too."""
    return name.replace(f" {storage}", "", 1) if storage is not None else name


def _images(storage: int | None) -> str:
    return f"storage of {storage:,} images" if storage is not None else "no set storage"
