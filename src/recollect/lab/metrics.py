"""Numbers that sum up a run: what was kept, and what tasks did to each other (Lopez-Paz and Ranzato, 2017)."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def backward_transfer(R: Sequence[Sequence[float]]) -> float:
    """How much better a task is known at the end than when it was just learned, on average; below 0 is forgetting.

    >>> backward_transfer([[90.0, 20.0], [70.0, 95.0]])
    -20.0
    """
    return fmean(R[-1][i] - R[i][i] for i in range(len(R) - 1)) if len(R) > 1 else 0.0


def forward_transfer(R: Sequence[Sequence[float]], untrained: Sequence[float]) -> float:
    """How much better than untrained a task is known just before it is learned, on average.

    >>> forward_transfer([[90.0, 20.0], [70.0, 95.0]], untrained=[10.0, 12.0])
    8.0
    """
    return fmean(R[i - 1][i] - untrained[i] for i in range(1, len(R))) if len(R) > 1 else 0.0
