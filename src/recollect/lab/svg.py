"""Figures as SVG inside a page: they take the page's font and ink, and their names do not meet others' on it."""

from __future__ import annotations

import io
import re
from html import escape
from typing import TYPE_CHECKING

import matplotlib as mpl

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LARGEST = 1.15  # times its own size, on a wide page
NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))


def inline(figure: Figure, said: str, prefix: str) -> str:
    """The figure as an element of a page, as wide as there is room; ``said`` is read to those who do not see it.

    Names that its parts refer to get the ``prefix``, others are dropped. Black is what the page writes in.
    """
    file = io.StringIO()
    # Text stays text: small, searchable, and in the font of the page. The salt makes the same names every time.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "recollect"}):
        figure.savefig(file, format="svg", transparent=True, metadata=NO_METADATA)
    drawn = re.sub(r"<!--.*?-->|<style.*?</style>", "", file.getvalue(), flags=re.DOTALL)
    widest = LARGEST * 96 * figure.get_size_inches()[0]
    start = f'<svg role="img" aria-label="{escape(said)}" style="max-width:{widest:.0f}px" viewBox='
    drawn = re.sub(r".*?<svg .*?viewBox=", lambda _: start, drawn, count=1, flags=re.DOTALL)
    used = {*re.findall(r"(?:url\(|href=\")#([^)\"]+)", drawn)}
    drawn = re.sub(r' id="([^"]+)"', lambda found: f' id="{prefix}{found[1]}"' if found[1] in used else "", drawn)
    drawn = re.sub(r"(url\(|href=\")#", rf"\1#{prefix}", drawn)
    drawn = re.sub(r"font-family: [^;\"]*;? ?", "", drawn).replace("#000000", "currentColor")
    drawn = re.sub(r' (d|x|y|transform|width|height)="[^"]*"', lambda found: _short(found[0]), drawn)
    return re.sub(r">\s+<", "><", drawn).strip()


def _short(attribute: str) -> str:
    """Coordinates to a hundredth of a point."""
    return " " + " ".join(re.sub(r"\d+\.\d{3,}", lambda found: f"{float(found[0]):.2f}", attribute).split())
