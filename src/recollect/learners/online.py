"""Learning from the stream alone: what happens without a memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.checks import check_images
from recollect.learners.learner import Learner, integers, reals
from recollect.rebuild import rebuildable

if TYPE_CHECKING:
    import torch
    from torch import nn

    from recollect.checks import IntegerLike, TargetLike
    from recollect.learners.losses import Loss, Named


@rebuildable
class Online(Learner):
    """One step of gradient descent on each batch of the stream, and nothing is kept.

    Args:
        model: the predictive model F.
        learning_rate: of gradient descent, the paper's α.
        loss: by name, "cross_entropy", "binary_cross_entropy" (of logits), "mse" or "mae"; or a function of outputs and
            targets, which are floating point numbers then.
        averaging: `predict` by a moving average of the model over its steps, of which so much stays in each; 0 for the
            model as it is. Not in the paper.
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        learning_rate: float = 0.01,
        loss: Named | Loss = "cross_entropy",
        averaging: float = 0.0,
    ) -> None:
        super().__init__(model, learning_rate, loss, averaging)

    def observe(self, x: torch.Tensor, y: TargetLike, task: IntegerLike | None = None) -> None:
        """Learn from a batch of the stream."""
        x = check_images(x)
        targets = integers("y", y, len(x)) if self._of_classes else reals("y", y, len(x))
        self._step(x, targets, integers("task", self._for_learner(task), len(x)))
