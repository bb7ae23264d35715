"""Figures of curves over the tasks of a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

    from recollect.lab.colours import Look

    Curves = Mapping[str, Sequence[Sequence[float | None]]]  # by name, one for each seed; None is a gap


def curves(panels: Mapping[str, Curves], looks: Mapping[str, Look], *, x: str, y: str) -> Figure:
    """A panel for each title; the mean over seeds as a line, from the least to the largest of them as a band."""
    figure = Figure(figsize=(1 + 5 * len(panels), 4), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, (title, named) in zip(axes, panels.items(), strict=True):
        draw_curves(axis, looks, named)
        axis.set(title=title, xlabel=x, ylabel=y)
        axis.legend()
    return figure


def draw_curves(axis: Axes, looks: Mapping[str, Look], named: Curves) -> None:
    """The curves of one panel."""
    for name, seeds in named.items():
        values, look = np.array(seeds, dtype=float), looks[name]
        numbers = np.arange(1, values.shape[1] + 1)
        axis.plot(numbers, values.mean(0), label=name, **look.drawn)
        axis.fill_between(numbers, values.min(0), values.max(0), color=look.colour, alpha=0.15, linewidth=0)
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.grid(alpha=0.3)
