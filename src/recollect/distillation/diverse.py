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

    They are chosen in groups of k, each filtered by itself, so that the work grows no faster than their number. Where
    fewer are asked for than whole groups have, some of the last group are drawn.

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
        groups, width = -(-check_at_least("size", size, 1) // self.k), self.k * self.n
        candidates = self.sampler.sample(groups * width)
        chosen = []
        for number, group in enumerate(candidates.x.flatten(1).cpu().double().numpy().reshape(groups, width, -1)):
            chosen.append(number * width + self.select(group @ group.T, self.k, self._rng))
        if cut := size % self.k:
            chosen[-1] = self._rng.choice(chosen[-1], cut, replace=False)
        return candidates[torch.from_numpy(np.concatenate(chosen))]
