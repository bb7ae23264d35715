"""Matrices of tasks as small heat maps, and the scale that they share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from recollect.lab.panels import SMALL, WIDTH, Panel, empty

if TYPE_CHECKING:
    from collections.abc import Mapping

MAP = "viridis"


def heat_maps(named: Mapping[str, np.ndarray], *, x: str, y: str, unit: str, most: float) -> list[Panel]:
    """A panel for each matrix behind one for the scale, from 0 to ``most``. What is not known is left blank."""
    if not named:
        return []
    return [_scale(unit, most), *(_map(title, values, x, y, most) for title, values in named.items())]


def _map(title: str, values: np.ndarray, x: str, y: str, most: float) -> Panel:
    lines, columns = values.shape
    figure, axes = empty(SMALL * lines / columns + 0.1, SMALL)
    axes.imshow(values, cmap=MAP, vmin=0, vmax=most, interpolation="none", aspect="auto")
    axes.set(xlabel=x, ylabel=y, xticks=[0, columns - 1], xticklabels=[1, columns])
    axes.set(yticks=[0, lines - 1], yticklabels=[1, lines])
    axes.tick_params(length=2, pad=2)
    known = values[-1][~np.isnan(values[-1])]
    just = np.nanmean(np.diag(values)) if lines == columns else np.nanmean(values)
    said = f"{title}: just learned {just:.3g}, in the end {known.mean():.3g} on average, the first task {known[0]:.3g}"
    return Panel(figure, said, title)


def _scale(unit: str, most: float) -> Panel:
    figure, axes = empty(0.6, WIDTH)
    axes.imshow(np.linspace(0, 1, 128)[None], cmap=MAP, aspect="auto", extent=(0, most, 0, 1))
    axes.set(yticks=[], xlabel=unit)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=2, pad=2)
    return Panel(figure, f"the scale of the heat maps: {unit}, from 0, dark, to {most:.3g}, bright")
