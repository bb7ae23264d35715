"""The diagram of how data flows: new examples, codes, memory, recollections, model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    import torch
    from matplotlib.axes import Axes

WRITING, READING, PLAIN = "#1f5fa8", "#b3402e", "#444444"
UPPER, LOWER = 3.3, 1.0  # the two lanes


def draw_data_flow(x: torch.Tensor, recollections: torch.Tensor, bits: np.ndarray, path: Path) -> None:
    """Images on their way into the memory above, recollections on their way out below."""
    figure = Figure(figsize=(10, 4.5))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, 10), ylim=(0, 4.5))
    axes.set_axis_off()

    _images(axes, x[:3], 0.95, UPPER)
    _images(axes, recollections[3:], 3.05, LOWER)
    _code(axes, bits[0], 5.35, UPPER)
    for number, row in enumerate(bits):
        _digits(axes, row[:22], 8.75, 3.55 - 0.48 * number)
    _box(axes, (7.75, 0.45), 2.0, 3.45, "")
    axes.text(8.75, 4.08, "memory", ha="center", size=13, weight="bold")
    axes.text(8.75, 0.58, "codes, labels, tasks, ids", ha="center", size=9)
    _box(axes, (3.4, UPPER - 0.4), 1.15, 0.8, "encoder")
    _box(axes, (5.45, LOWER - 0.4), 1.15, 0.8, "decoder")
    _box(axes, (0.3, LOWER - 0.4), 1.3, 0.8, "your model")
    axes.text(0.95, 4.08, "new examples", ha="center", size=13, weight="bold")
    axes.text(3.05, 0.08, "recollections", ha="center", size=13, weight="bold")
    axes.text(5.35, 4.08, "code", ha="center", size=13, weight="bold")

    _arrow(axes, (1.75, UPPER), (3.35, UPPER), WRITING)
    _arrow(axes, (4.6, UPPER), (4.85, UPPER), WRITING)
    _arrow(axes, (5.85, UPPER), (7.7, UPPER), WRITING)
    axes.text(6.78, UPPER + 0.1, "pack, admit", ha="center", size=9, color=WRITING)
    _arrow(axes, (7.7, LOWER), (6.65, LOWER), READING)
    axes.text(7.18, LOWER + 0.1, "draw", ha="center", size=9, color=READING)
    _arrow(axes, (5.4, LOWER), (3.9, LOWER), READING)
    _arrow(axes, (2.2, LOWER), (1.65, LOWER), READING)
    _arrow(axes, (0.95, UPPER - 0.75), (0.95, LOWER + 0.45), PLAIN)
    _arrow(axes, (3.05, LOWER + 0.8), (3.75, UPPER - 0.45), READING)
    axes.text(1.08, 2.0, "2  learn: from new and\nrecollected images", size=9.5, va="center", color=PLAIN)
    axes.text(
        3.75,
        2.25,
        "1  rehearse: encoder and decoder learn,\nfrom new and recollected images",
        size=9.5,
        va="center",
        color=READING,
    )
    axes.text(2.55, UPPER + 0.1, "3  write", ha="center", size=9.5, color=WRITING)

    with mpl.rc_context({"svg.hashsalt": "recollect"}):  # the same file every time
        figure.savefig(path, metadata={"Date": None})


def _images(axes: Axes, images: torch.Tensor, x: float, y: float) -> None:
    """A stack of them, each a little lower and to the right."""
    for number, image in enumerate(images):
        left, top = x - 0.75 + 0.25 * number, y + 0.65 - 0.2 * number
        axes.imshow(image[0].numpy(), cmap="gray", vmin=0, vmax=1, extent=(left, left + 0.9, top - 0.9, top), zorder=2)
        axes.plot([left, left + 0.9, left + 0.9, left, left], [top, top, top - 0.9, top - 0.9, top], "white", zorder=2)
    axes.set(xlim=(0, 10), ylim=(0, 4.5), aspect="auto")


def _code(axes: Axes, bits: np.ndarray, x: float, y: float) -> None:
    extent = (x - 0.45, x + 0.45, y - 0.37, y + 0.37)
    axes.imshow(bits.reshape(13, 16), cmap="Blues", vmin=-0.6, vmax=1.6, extent=extent, zorder=2)
    axes.set(xlim=(0, 10), ylim=(0, 4.5), aspect="auto")


def _digits(axes: Axes, bits: np.ndarray, x: float, y: float) -> None:
    axes.text(x, y, "".join(map(str, bits)) + "...", ha="center", va="center", family="monospace", size=8)


def _box(axes: Axes, corner: tuple[float, float], width: float, height: float, text: str) -> None:
    x, y = corner
    style = "round,pad=0,rounding_size=0.08"
    axes.add_patch(FancyBboxPatch(corner, width, height, boxstyle=style, facecolor="#f2f4f7", edgecolor=PLAIN))
    axes.text(x + width / 2, y + height / 2, text, ha="center", va="center", size=12)


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], colour: str) -> None:
    axes.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": colour, "linewidth": 1.8})
