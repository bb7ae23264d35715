"""Experiments that ask how much is kept in how much storage: every memory trains in the same way, both bills count."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from recollect.budget import raw_bits
from recollect.lab.continual import Continual

if TYPE_CHECKING:
    from recollect.lab.continual import ContinualRow
    from recollect.lab.run import ContinualRun


@dataclass(frozen=True, kw_only=True)
class AgainstStorage(Continual):
    """Memories of several kinds in several storages."""

    @property
    def columns(self) -> tuple[str, ...]:
        """What is kept by both bills, and how much is retained."""
        return ("storage", "in all", "items", "bits", "retention, %")

    def cells(self, row: ContinualRow, runs: list[ContinualRun]) -> tuple[str, ...]:
        """The cells of a row, in the order of the columns."""
        storage, items, bits, kept, *_ = super().cells(row, runs)
        in_all = fmean(run.bits["total"] for run in runs) / raw_bits(self.course.shape)
        return (storage, f"{in_all:,.{int(in_all < 1000)}f}", items, bits, kept)


BILLS = (
    "Storage, in images, is that of codes with all that they are coded by, as in the paper; in all it is every bit, "
    "with labels, tasks, ids and the codec. Bits are those of an item on average."
)
