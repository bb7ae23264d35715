"""Figures of curves over the tasks of a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Curves = Mapping[str, Sequence[Sequence[float]]]  # by name, one for each seed


def curves(panels: Mapping[str, Curves], *, x: str, y: str) -> Figure:
    """A panel for each title; the mean over seeds as a line, from the least to the largest of them as a band."""
    figure = Figure(figsize=(1 + 5 * len(panels), 4), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, (title, named) in zip(axes, panels.items(), strict=True):
        for name, seeds in named.items():
            values = np.array(seeds)
            numbers = np.arange(1, values.shape[1] + 1)
            axis.plot(numbers, values.mean(0), marker=".", label=name)
            axis.fill_between(numbers, values.min(0), values.max(0), alpha=0.2)
        axis.set(title=title, xlabel=x, ylabel=y)
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        axis.grid(alpha=0.3)
        axis.legend()
    return figure
