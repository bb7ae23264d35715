"""Experience replay with a Scalable Recollection Module: the paper's Algorithm 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from recollect.checks import check_at_least
from recollect.learners.learner import Learner

if TYPE_CHECKING:
    from torch import nn

    from recollect.checks import IntegerLike
    from recollect.module import RecollectionModule


class Replay(Learner):
    """Trains the model on each batch of the stream together with recollections of earlier ones.

    With the codec `RawPixels` in the memory this is replay with real storage.

    Args:
        model: the predictive model F.
        module: codec and memory.
        learning_rate: of gradient descent on the model, the paper's α.
        batch_size: recollections that join the new examples in a step.

    >>> import recollect as rc
    >>> memory = rc.Memory(rc.RawPixels((1, 28, 28)), capacity=100)
    >>> model = rc.models.MLP()
    >>> learner = rc.Replay(model, rc.RecollectionModule(memory), batch_size=5)
    >>> learner.observe(torch.rand(10, 1, 28, 28), torch.arange(10), task=0)
    >>> learner.predict(torch.rand(2, 1, 28, 28)).shape
    torch.Size([2])
    """

    def __init__(
        self, model: nn.Module, module: RecollectionModule, *, learning_rate: float = 0.01, batch_size: int = 25
    ) -> None:
        super().__init__(model, learning_rate)
        self.module = module
        self.batch_size = check_at_least("batch_size", batch_size, 1)

    def observe(self, x: torch.Tensor, y: IntegerLike, task: IntegerLike = 0) -> None:
        """Learn from a batch of the stream. Examples that the memory does not take change nothing."""
        memory = self.module.memory
        x, labels, tasks = memory.check(x, y, task)

        # Scalable Recollection Module training; x_1 and y_1 are its first sample set.
        recollected = self.module.rehearse(x, self.batch_size)

        # Experience replay training, on X_1 and Y_1.
        X, Y, T = x, torch.from_numpy(labels), torch.from_numpy(tasks)
        if recollected is not None:
            X = torch.cat([X, recollected.x])
            Y = torch.cat([Y, recollected.y])
            T = torch.cat([T, recollected.task])
        self._step(X, Y, T)

        # Encode x and store it in the index buffer.
        memory.write(x, labels, tasks)
