"""Figures of the lab: what is ours is filled, what is the paper's is hollow."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter

from recollect.budget import raw_bits
from recollect.lab.colours import colour, looks
from recollect.lab.compressing import mean_distortion
from recollect.lab.show import by_block
from recollect.lab.stream_pictures import counts, draw_points

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from recollect.lab.compressing import CompressionRow, CompressionRun
    from recollect.lab.continual import Continual, ContinualRow
    from recollect.lab.results import Summary
    from recollect.lab.run import ContinualRun

SIZE = (7.0, 4.5)  # inches


def rate_distortion(found: list[Summary[CompressionRow, CompressionRun]]) -> Figure:
    """Distortion against compression, both on log scales, a colour for each family of codes."""
    figure = Figure(figsize=SIZE, layout="constrained")
    axes = figure.subplots()
    for family, rows in by_block(found):
        own, marker = colour(rows[0].row), "o" if rows[0].row.scheme == "binary" else "s"
        ours = ((summary.runs[0].compression, mean_distortion(summary.runs)) for summary in rows)
        axes.plot(*_columns(ours), marker, color=own, label=family, markersize=5)
        papers = ((summary.row.paper_compression, summary.row.paper) for summary in rows)
        if (points := _columns(papers))[0]:
            label = f"{family}, the paper"
            axes.plot(*points, "o", color=own, label=label, markerfacecolor="none", markersize=8)
    axes.set(xscale="log", yscale="log", xlabel="compression", ylabel="distortion (mean absolute error)")
    axes.grid(which="both", alpha=0.2)
    axes.legend(fontsize=8)
    return figure


def learning_curves(found: Sequence[Summary[Any, Any]]) -> Figure:
    """Error of the student against episodes, both on log scales; the paper's numbers are hollow."""
    figure = Figure(figsize=SIZE, layout="constrained")
    axes = figure.subplots()
    look_of = looks(summary.row for summary in found)
    for summary in found:
        look = look_of[summary.row.name]
        episodes = summary.runs[0].episodes
        each = zip(*(run.accuracy for run in summary.runs), strict=True)
        errors = [100 - statistics.fmean(values) for values in each]
        axes.plot(episodes, errors, label=summary.row.name, **look.drawn)
        papers = [(at, 100 - accuracy) for at, accuracy in summary.row.paper.items()]
        if papers:
            axes.plot(*_columns(papers), "o", color=look.colour, markerfacecolor="none", markersize=8, alpha=0.7)
    axes.set(xscale="log", yscale="log", xlabel="episodes", ylabel="test error of the student, %")
    axes.yaxis.set_major_formatter(LogFormatter())  # with numbers such as 60, in the place of 6 x 10^1
    axes.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(2, 0.5)))
    axes.grid(which="both", alpha=0.2)
    axes.legend(fontsize=8, title="hollow: the paper" if any(summary.row.paper for summary in found) else None)
    return figure


def accuracy_by_task(found: Sequence[Summary[ContinualRow, ContinualRun]]) -> Figure:
    """What is known of each task after the last one, averaged over seeds: forgetting is the slope to the left."""
    figure = Figure(figsize=SIZE, layout="constrained")
    axes = figure.subplots()
    look_of = looks(summary.row for summary in found)
    for summary in found:
        each = zip(*(run.accuracy[-1] for run in summary.runs), strict=True)
        accuracies = [statistics.fmean(values) for values in each]
        tasks = range(1, len(accuracies) + 1)
        axes.plot(tasks, accuracies, label=summary.row.name, **look_of[summary.row.name].drawn)
        axes.set_xticks(tasks)
    axes.set(xlabel="task, in the order of the stream", ylabel="test accuracy after the last task, %", ylim=(0, 100))
    axes.grid(alpha=0.2)
    axes.legend(fontsize=9, loc="lower right")
    return figure


def retention_against_storage(found: Sequence[tuple[Continual, list[Summary[ContinualRow, ContinualRun]]]]) -> Figure:
    """What each kind of memory keeps in how much storage: an experiment a column, a way to count storage a line."""
    width, height = SIZE
    figure = Figure(figsize=(len(found) * 0.7 * width, 1.6 * height), layout="constrained")
    grid = figure.subplots(2, len(found), squeeze=False)
    for column, (experiment, rows) in zip(grid.T, found, strict=True):
        for axes, (counted, count) in zip(column, counts(raw_bits(experiment.course.shape)).items(), strict=True):
            draw_points(axes, rows, count)
            axes.set(xlabel=f"raw images: {counted}", ylabel="retention, %")
        column[0].set_title(experiment.title.split(":")[0])
    labelled = (zip(*axes.get_legend_handles_labels(), strict=True) for axes in grid[0])
    kinds = {name.removeprefix("Replay "): handle for pairs in labelled for handle, name in pairs}
    hollow = any(summary.row.paper for _, rows in found for summary in rows)
    legend = figure.legend(kinds.values(), kinds.keys(), loc="outside lower center", ncols=len(kinds), frameon=False)
    legend.set_title("hollow: the paper" if hollow else "")
    return figure


def _columns(points: Iterable[tuple[float | None, float | None]]) -> tuple[list[float], list[float]]:
    """The points that are known, as x and y."""
    known = [(x, y) for x, y in points if x is not None and y is not None]
    return [x for x, _ in known], [y for _, y in known]
