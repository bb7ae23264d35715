"""Minimum Sum of Squared Similarities: the paper's Algorithm 3."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from recollect.checks import check_at_least

if TYPE_CHECKING:
    import numpy.typing as npt

    from recollect.checks import Integers


def msss(S: npt.NDArray[np.float64], m: int, rng: np.random.Generator, *, gamma: float = 1.0) -> Integers:
    """Landmarks, by their numbers: two points at random, then again and again the one least like those before.

    Args:
        S: similarities of all points to each other.
        m: landmarks to choose.
        rng: draws the first two, and each subset.
        gamma: share of the remaining points that are drawn for each choice; all by default.

    >>> x = np.array([[1.0, 0.0], [0.9, 0.1], [0.8, 0.0], [0.0, 1.0]])
    >>> 3 in msss(x @ x.T, 3, np.random.default_rng(0))  # the one that points elsewhere
    True
    """
    if check_at_least("m", m, 1) > len(S):
        raise ValueError(f"m={m}: accepted are 1 to {len(S)}, as many as there are points")
    if not 0 < gamma <= 1:
        raise ValueError(f"gamma={gamma}: accepted is a share above 0 and up to 1")
    landmarks = rng.choice(len(S), min(m, 2), replace=False).tolist()
    remaining = np.ones(len(S), bool)
    remaining[landmarks] = False
    sums = (S[landmarks] ** 2).sum(0)  # of squared similarities to the landmarks, one for each point
    while len(landmarks) < m:
        T = np.flatnonzero(remaining)
        if gamma < 1:
            T = rng.choice(T, math.ceil(gamma * len(T)), replace=False)
        landmark = int(T[sums[T].argmin()])
        landmarks.append(landmark)
        remaining[landmark] = False
        sums += S[landmark] ** 2
    return np.array(landmarks, np.int64)
