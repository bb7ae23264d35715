"""Diverse sampling: of many recollections a few that are unlike each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch

from recollect.checks import Integers, check_at_least
from recollect.distillation.msss import msss
from recollect.seeding import derived

if TYPE_CHECKING:
    from recollect.distillation.sampling import Recollections, Sampler

# Similarities of all candidates to each other, how many to choose, a generator; the numbers of the chosen.
Selection = Callable[[npt.NDArray[np.float64], int, np.random.Generator], Integers]


class DiverseSampling:
    """Filters ``k n`` recollections down to ``k`` that are unlike each other; similarity is their dot product.

    More than k are asked for in groups of k, each filtered by itself, so that the work grows no faster than their
    number.

    Args:
        sampler: draws the candidates.
        k: recollections that are chosen together; 10 in the paper.
        n: candidates for each that is chosen; 10 in the paper.
        select: `msss` as in the paper's tables, or `k_dpp`, a determinantal point process.
        seed: of the choice.

    >>> import recollect as rc
    >>> memory = rc.Memory(rc.RawPixels((1, 28, 28)), capacity=50)
    >>> ids = memory.write(torch.rand(50, 1, 28, 28), y=3)
    >>> buffer = rc.distillation.BufferSampling(memory)
    >>> DiverseSampling(buffer).sample(10).x.shape
    torch.Size([10, 1, 28, 28])
    """

    def __init__(self, sampler: Sampler, *, k: int = 10, n: int = 10, select: Selection = msss, seed: int = 0) -> None:
        self.sampler = sampler
        self.k, self.n = check_at_least("k", k, 1), check_at_least("n", n, 1)
        self.select = select
        self._rng = np.random.default_rng(derived(seed, "DiverseSampling"))

    def sample(self, size: int) -> Recollections:
        """``size`` recollections, diverse in groups of k."""
        candidates = self.sampler.sample(check_at_least("size", size, 1) * self.n)
        x = candidates.x.flatten(1).cpu().double().numpy()
        chosen = []
        for start in range(0, size, self.k):
            k = min(self.k, size - start)
            group = x[start * self.n : (start + k) * self.n]
            chosen.append(start * self.n + self.select(group @ group.T, k, self._rng))
        return candidates[torch.from_numpy(np.concatenate(chosen))]
