"""What each row keeps, by kind, as stacked bars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from recollect.lab.colours import BILL
from recollect.lab.panels import Panel, Picture, empty, legend_below
from recollect.lab.show import recorded_once

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.lab.results import Summary

BAR = 0.36  # inches from bar to bar
ONCE = {"parameters", "codec"}  # what does not grow with the items
ROOM = 1.2  # beyond the longest bar that has a storage to keep to


def bill(found: list[Summary[Any, Any]], example: int) -> list[Picture]:
    """The items alone, and everything with the codec. ``example`` are the bits of a raw image."""
    everything, items = [*BILL], [kind for kind in BILL if kind not in ONCE]
    rows = [summary for summary in recorded_once(found) if _images(summary, everything, example)]
    if not rows:
        return []
    panels = []
    if holding := [summary for summary in rows if summary.runs[0].bits["codes"]]:
        kept_to = [summary for summary in holding if getattr(summary.row, "storage", None) is not None] or holding
        longest = max(_images(summary, items, example) for summary in kept_to)
        panels.append(_bars("the items", holding, items, example, ROOM * longest))
    # Beside a codec or parameters kept all others would vanish.
    light = [summary for summary in rows if not any(summary.runs[0].bits.get(kind) for kind in ONCE)] or rows
    longest = max(_images(summary, everything, example) for summary in light)
    panels.append(_bars("all, the codec and parameters counted", rows, everything, example, ROOM * longest))
    return [
        Picture(
            "The bill",
            "Every bit that a row keeps in the end, in raw images, by what it is spent on. A bar that does not fit is "
            "cut; its number is that of all of it.",
            panels,
        )
    ]


def _images(summary: Summary[Any, Any], kinds: Sequence[str], example: int) -> float:
    return sum(summary.runs[0].bits.get(kind, 0) for kind in kinds) / example


def _bars(title: str, rows: list[Summary[Any, Any]], kinds: list[str], example: int, most: float) -> Panel:
    """A bar for each row under its name, so that long names take no room beside it."""
    figure, axes = empty(0.65 + BAR * len(rows))
    places = range(len(rows))
    ends = [0.0] * len(rows)
    used = [kind for kind in kinds if any(summary.runs[0].bits.get(kind) for summary in rows)]
    for kind in used:
        lengths = [_images(summary, [kind], example) for summary in rows]
        axes.barh(places, lengths, left=ends, height=0.4, color=BILL[kind], label=kind)
        ends = [end + length for end, length in zip(ends, lengths, strict=True)]
    for place, (summary, end) in enumerate(zip(rows, ends, strict=True)):
        axes.text(0, place - 0.28, summary.row.name, fontsize=7.5, va="bottom")
        arrow = " \N{RIGHTWARDS ARROW}" if end > most else ""
        axes.text(most, place - 0.28, f"{end:,.1f}{arrow}", fontsize=7.5, va="bottom", ha="right")
    axes.set(xlim=(0, most), ylim=(len(rows) - 0.6, -0.9), yticks=[], xlabel="raw images")
    axes.xaxis.set_major_formatter("{x:,.7g}")
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x", alpha=0.3)
    legend_below(figure, axes, len(used))
    said = ", ".join(f"{summary.row.name} {end:,.1f}" for summary, end in zip(rows, ends, strict=True))
    return Panel(figure, f"{title}, in raw images: {said}", title)
