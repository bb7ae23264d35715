"""Active sampling: of a few recollections the one that is hardest for the student as it is now."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from recollect.checks import check_at_least
from recollect.distillation.divergence import Divergence, predicting

if TYPE_CHECKING:
    from torch import nn

    from recollect.distillation.sampling import Recollections, Sampler


class ActiveSampling:
    """For each recollection that is asked for, ``k`` are drawn and the one most difficult for the student is chosen.

    Most difficult is where the student is furthest from its teacher. Around a `DiverseSampling` with the same ``k`` it
    is the paper's active and diverse sampling.

    Args:
        sampler: draws the candidates.
        teacher: as in `distil`.
        student: the one that is trained; it is asked again at every call.
        k: candidates for each choice; 10 in the paper, about one a class.

    >>> import recollect as rc
    >>> memory = rc.Memory(rc.RawPixels((1, 28, 28)), capacity=50)
    >>> ids = memory.write(torch.rand(50, 1, 28, 28), y=3)
    >>> teacher, student = rc.models.LeNet(seed=0), rc.models.LeNet(seed=1)
    >>> buffer = rc.distillation.BufferSampling(memory)
    >>> ActiveSampling(buffer, teacher, student).sample(2).x.shape
    torch.Size([2, 1, 28, 28])
    """

    def __init__(self, sampler: Sampler, teacher: nn.Module | None, student: nn.Module, *, k: int = 10) -> None:
        self.sampler = sampler
        self.student = student
        self.k = check_at_least("k", k, 1)
        self._divergence = Divergence(teacher, student)

    def sample(self, size: int) -> Recollections:
        """The hardest of each of ``size`` groups of k recollections."""
        candidates = self.sampler.sample(check_at_least("size", size, 1) * self.k)
        candidates = candidates.to(next(self.student.parameters()).device)
        with predicting(self.student):
            difficulty = self._divergence(candidates).view(size, self.k)
        hardest = difficulty.argmax(1) + self.k * torch.arange(size, device=difficulty.device)
        return candidates[hardest]
