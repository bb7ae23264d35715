"""Learning from the stream alone: what happens without a memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.checks import check_images
from recollect.learners.learner import Learner, integers
from recollect.rebuild import rebuildable

if TYPE_CHECKING:
    import torch
    from torch import nn

    from recollect.checks import IntegerLike


@rebuildable
class Online(Learner):
    """One step of gradient descent on each batch of the stream, and nothing is kept.

    Args:
        model: the predictive model F.
        learning_rate: of gradient descent, the paper's α.
    """

    def __init__(self, model: nn.Module, *, learning_rate: float = 0.01) -> None:
        super().__init__(model, learning_rate)

    def observe(self, x: torch.Tensor, y: IntegerLike, task: IntegerLike | None = None) -> None:
        """Learn from a batch of the stream."""
        x = check_images(x)
        self._step(x, integers("y", y, len(x)), integers("task", self._for_learner(task), len(x)))
