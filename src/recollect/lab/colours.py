"""What each method looks like in every figure: a colour for what is kept, a line for the learner that keeps it.

All colours are as far from a white page as from a dark one, so that a figure without a background suits both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from recollect.lab.experiment import Row

COLOURS = {
    "raw": "#d0524b",
    "pixels": "#3d9257",
    "jpeg": "#b27d12",
    "paper": "#3a7bd5",  # the paper's codec
    "transfer": "#1f8fa6",  # the same, trained on other images before
    "continuous": "#7c8b2c",
    "ours": "#c14fa8",  # any codec of another class
    "online": "#858b94",
    "ewc": "#9a62d3",
    "lwf": "#a8694a",
    "offline": "#5f7a9e",
    "active": "#f24c14",  # of recollections, how they are chosen
    "diverse": "#12a5a0",
    "active and diverse": "#a050ea",
}
BILL = {  # what bits are spent on, in colours that no method has
    "codes": "#7065bd",
    "tables": "#8f86cf",
    "labels": "#bf7b35",
    "tasks": "#b7586f",
    "ids": "#45968a",
    "free": "#8c8c8c",
    "parameters": "#a2743f",
    "codec": "#76893b",
}
_CODECS = {
    "RawPixels": "raw",
    "ResizedPixels": "pixels",
    "JPEG": "jpeg",
    "DiscreteAutoencoder": "paper",
    "ContinuousAutoencoder": "continuous",
}
_LEARNERS = {"Online": "online", "EWC": "ewc", "LwF": "lwf", "Offline": "offline"}  # that are told by no codec
_BUFFERS = {"recollections": "paper", "real": "raw", "none": "online"}  # that a codec rehearses from
_LINE_OF = {"GEM": "--", "ICaRL": ":"}
_LINES, _MARKERS = ("-", "--", ":", "-."), (".", "s", "^", "x")


@dataclass(frozen=True)
class Look:
    """How a row is drawn."""

    colour: str
    line: str
    marker: str

    @property
    def drawn(self) -> dict[str, Any]:
        """As matplotlib's `plot` is told."""
        return {"color": self.colour, "linestyle": self.line, "marker": self.marker, "markersize": 4}


def method(row: Row) -> str:
    """The name under which a row has its colour.

    >>> from recollect.lab.table1 import ROWS
    >>> [method(row) for row in ROWS if row.name in {"Online", "GEM JPEG 100", "Replay JPEG 200"}]
    ['jpeg', 'jpeg', 'online']
    """
    how = row.described
    if how.get("learner") in _LEARNERS:
        return _LEARNERS[how["learner"]]
    if how.get("offline"):
        return "offline"
    if how.get("pretraining") or how.get("pretraining_rate") is not None:
        return "transfer"
    if ways := {way.partition(" ")[0] for way in how.get("sampling", ())} & {"active", "diverse"}:
        return " and ".join(sorted(ways))
    if "buffer" in how:
        return _BUFFERS[how["buffer"]]
    return _CODECS.get(how["codec"], "ours")


def colour(row: Row) -> str:
    """The row's colour."""
    return COLOURS[method(row)]


def looks(rows: Iterable[Row]) -> dict[str, Look]:
    """How the rows of one picture are drawn, by name: those of one colour differ in line or marker."""
    found: dict[str, Look] = {}
    for row in rows:
        own = _LINE_OF.get(row.described.get("learner", ""), "-")
        styles = [(line, marker) for marker in _MARKERS for line in (own, *_LINES)]
        ways = [Look(colour(row), line, marker) for line, marker in styles]
        found[row.name] = next((look for look in ways if look not in found.values()), ways[0])
    return found
