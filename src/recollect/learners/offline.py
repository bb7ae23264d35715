"""Learning when the stream is over, from all of it in random order: what a stream costs can be read off against it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from recollect.checks import check_at_least
from recollect.learners.learner import Learner
from recollect.learners.losses import check_loss
from recollect.memory.memory import check_memory
from recollect.rebuild import rebuildable

if TYPE_CHECKING:
    from torch import nn

    from recollect.checks import IntegerLike, TargetLike
    from recollect.learners.losses import Loss, Named
    from recollect.memory.memory import Memory


@rebuildable
class Offline(Learner):
    """Keeps the stream in a memory, and trains on it in `finish`, shuffled anew for each epoch.

    Args:
        model: the predictive model F.
        memory: as large as the stream, with `RawPixels`, for training on all of it as it was.
        learning_rate: of gradient descent.
        epochs: passes over what the memory holds.
        batch_size: examples in a step.
        loss: by name, "cross_entropy", "binary_cross_entropy" (of logits), "mse" or "mae"; or a function of outputs and
            targets. With `RealTargets` or `NoTargets` in the memory it is another than cross entropy.

    >>> import recollect as rc, torch
    >>> memory = rc.Memory(rc.RawPixels((1, 28, 28)), capacity=1000)
    >>> learner = rc.Offline(rc.models.MLP(), memory)
    >>> learner.observe(torch.rand(10, 1, 28, 28), torch.arange(10))
    >>> learner.finish()
    """

    def __init__(
        self,
        model: nn.Module,
        memory: Memory,
        *,
        learning_rate: float = 0.01,
        epochs: int = 1,
        batch_size: int = 10,
        loss: Named | Loss = "cross_entropy",
    ) -> None:
        super().__init__(model, learning_rate, loss)
        self._memory = check_memory(memory)
        check_loss(loss, memory)
        self.epochs = check_at_least("epochs", epochs, 1)
        self.batch_size = check_at_least("batch_size", batch_size, 1)

    @property
    def memory(self) -> Memory:
        """The memory."""
        return self._memory

    def observe(self, x: torch.Tensor, y: TargetLike = None, task: IntegerLike | None = None) -> None:
        """Keep a batch of the stream."""
        x, targets, tasks = self.memory.check(x, y, self._for_learner(task))
        if self._loss_is_of_classes:
            device = next(self.model.parameters()).device
            self._check_outputs(x.to(device), *(torch.from_numpy(each).to(device) for each in (targets, tasks)))
        self.memory.write_checked(x, targets, tasks)

    def finish(self) -> None:
        """Train on what was kept."""
        device = next(self.model.parameters()).device
        for _ in range(self.epochs):
            for batch in self.memory.shuffled(self.batch_size):
                self._step(batch.x.to(device), batch.y, batch.task)
