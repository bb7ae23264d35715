"""Pictures of a report: each is made of panels, small figures that find their places on a page of any width."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from matplotlib.axes import Axes

WIDTH = 4.2  # inches of a panel, so narrow that its text can be read on a telephone
SMALL = 1.8
HEIGHT = 3.0  # of a figure that was drawn larger, without its legend
LONG = 24  # letters of a name, more than which two do not fit side by side


@dataclass(frozen=True, eq=False)
class Panel:
    """A figure, what stands above it, and what is said of it to those who do not see it."""

    figure: Figure
    said: str
    title: str = ""


@dataclass(frozen=True, eq=False)
class Picture:
    """Panels that answer one question."""

    title: str
    caption: str
    panels: Sequence[Panel]
    size: Literal["small", "medium"] = "medium"


def pictured(figures: Sequence[Figure]) -> Picture:
    """Figures of one plot each that stand for themselves, with what is on their axes for a title."""
    axes = figures[0].axes[0]
    title = f"{axes.get_ylabel()} against {axes.get_xlabel()}"
    return Picture(title[:1].upper() + title[1:], "", [_fitted(figure) for figure in figures])


def _fitted(figure: Figure) -> Panel:
    """A figure in the size of a panel, its title above and its legend below."""
    (axes,) = figure.axes
    said, title = said_of_lines(figure), axes.get_title()
    figure.set_size_inches(WIDTH, HEIGHT)
    axes.set_title("")
    label(axes, axes.get_xlabel(), axes.get_ylabel())
    if (legend := axes.get_legend()) is not None:
        legend.remove()
        legend_below(figure, axes, len(legend.get_texts()), legend.get_title().get_text())
    return Panel(figure, said, title)


def styled() -> AbstractContextManager[None]:
    """Within it figures have the lines and letters of a report."""
    return mpl.rc_context(
        {
            "axes.axisbelow": True,
            "axes.linewidth": 0.6,
            "axes.spines.right": False,
            "axes.spines.top": False,
            "font.size": 8.5,
            "grid.linewidth": 0.5,
            "legend.fontsize": 8,
            "legend.frameon": False,
            "lines.linewidth": 1.3,
        }
    )


def empty(height: float, width: float = WIDTH) -> tuple[Figure, Axes]:
    """A figure to draw in, in inches."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()


def label(axes: Axes, x: str, y: str) -> None:
    """Name both axes; the upright one above its end, where it is read without turning the head."""
    axes.set_xlabel(x)
    axes.set_ylabel(y, rotation=0, ha="left", va="bottom")
    axes.yaxis.set_label_coords(0, 1.02)


def legend_below(figure: Figure, axes: Axes, entries: int, title: str = "") -> None:
    """The names of what is drawn, under the figure and made room for; side by side where they are short."""
    handles, names = axes.get_legend_handles_labels()
    columns = 1 if max(map(len, names), default=0) > LONG else 2
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + 0.17 * (math.ceil(entries / columns) + bool(title)))
    figure.legend(
        handles,
        names,
        loc="outside lower left",
        ncols=columns,
        borderpad=0.3,
        title=title or None,
        title_fontsize=8,
        alignment="left",
    )


def said_of_lines(figure: Figure) -> str:
    """A figure of lines in words: what is on the axes, and where each line begins and ends.

    >>> figure, axes = empty(2)
    >>> line = axes.plot([1, 2, 3], [0.5, 0.25, 0.75], label="Online")
    >>> label(axes, "tasks", "error")
    >>> said_of_lines(figure)
    'error against tasks: Online 0.5 to 0.75'
    """
    parts = []
    for axes in figure.axes:
        named = [line for line in axes.lines if not str(line.get_label()).startswith("_")]
        ends = [(line.get_label(), *np.asarray(line.get_ydata(), dtype=float)[[0, -1]]) for line in named]
        lines = ", ".join(f"{name} {first:.3g} to {last:.3g}" for name, first, last in ends)
        title = f"{axes.get_title()}, " if axes.get_title() else ""
        parts.append(f"{title}{axes.get_ylabel()} against {axes.get_xlabel()}: {lines}")
    return ". ".join(parts)
