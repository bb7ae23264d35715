"""Experience replay with a Scalable Recollection Module: the paper's Algorithm 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from recollect.checks import check_at_least
from recollect.learners.augmentation import Augmentation
from recollect.learners.learner import Learner
from recollect.learners.losses import check_loss
from recollect.module import check_module
from recollect.rebuild import rebuildable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import nn

    from recollect.checks import IntegerLike, TargetLike
    from recollect.learners.losses import Loss, Named
    from recollect.memory.memory import Memory
    from recollect.module import RecollectionModule
    from recollect.rebuild import Plain


@rebuildable
class Replay(Learner):
    """Trains the model on each batch of the stream together with recollections of earlier ones.

    With the codec `RawPixels` in the memory this is replay with real storage.

    Args:
        model: the predictive model F.
        module: codec and memory.
        learning_rate: of gradient descent on the model, the paper's α.
        batch_size: recollections that join the new examples in a step.
        steps: steps on the new examples, each with recollections of its own; one in Algorithm 1.
        loss: by name, "cross_entropy", "binary_cross_entropy" (of logits), "mse" or "mae"; or a function of outputs and
            targets. With `RealTargets` or `NoTargets` in the memory it is another than cross entropy.
        augment: how the model sees images, new ones and recollections: moved, turned, scaled or mirrored at random by
            up to so much, such as ``{"shift": 1, "turn": 8, "scale": 0.1, "mirror": 0.5}``, where the targets allow it.
            Not in the paper. The codec and the memory see images as they are.
        averaging: `predict` by a moving average of the model over its steps, of which so much stays in each; 0 for the
            model as it is. Not in the paper.
        seed: of the augmentation.

    >>> import recollect as rc
    >>> memory = rc.Memory(rc.RawPixels((1, 28, 28)), capacity=100)
    >>> model = rc.models.MLP()
    >>> learner = rc.Replay(model, rc.RecollectionModule(memory), batch_size=5)
    >>> learner.observe(torch.rand(10, 1, 28, 28), torch.arange(10), task=0)
    >>> learner.predict(torch.rand(2, 1, 28, 28)).shape
    torch.Size([2])
    """

    def __init__(
        self,
        model: nn.Module,
        module: RecollectionModule,
        *,
        learning_rate: float = 0.01,
        batch_size: int = 25,
        steps: int = 1,
        loss: Named | Loss = "cross_entropy",
        augment: Mapping[str, float] | None = None,
        averaging: float = 0.0,
        seed: int = 0,
    ) -> None:
        super().__init__(model, learning_rate, loss, averaging)
        self.module = check_module(module)
        check_loss(loss, self.module.memory)
        self.batch_size = check_at_least("batch_size", batch_size, 1)
        self.steps = check_at_least("steps", steps, 1)
        self._augment = Augmentation(augment, check_at_least("seed", seed, 0)) if augment else None

    def _state(self) -> tuple[Plain, dict[str, torch.Tensor]]:
        return {}, {"augmentation": self._augment.generator.get_state()} if self._augment else {}

    def _restore(self, values: Plain, tensors: dict[str, torch.Tensor]) -> None:
        if self._augment:
            self._augment.generator.set_state(tensors["augmentation"].cpu())

    @property
    def memory(self) -> Memory:
        """The memory of the module."""
        return self.module.memory

    def observe(self, x: torch.Tensor, y: TargetLike = None, task: IntegerLike | None = None) -> None:
        """Learn from a batch of the stream. Examples that the memory does not take change nothing."""
        memory = self.module.memory
        x, targets, tasks = memory.check(x, y, self._for_learner(task))

        y, t = (torch.from_numpy(numbers).to(x.device) for numbers in (targets, tasks))
        if self._loss_is_of_classes:
            self._check_outputs(x, y, t)

        # Scalable Recollection Module training; x_1 and y_1 are its first sample set.
        recollected = self.module.rehearse_checked(x, self.batch_size)

        # Experience replay training, on X_1 and Y_1; further steps have recollections by the codec as it is now.
        sets = [] if recollected is None else [recollected]
        if sets and self.steps > 1:
            sets += memory.sample((self.steps - 1) * self.batch_size).to(x.device).split(self.batch_size)
        for step in range(self.steps):
            X, Y, T = x, y, t
            if sets:
                X, Y = torch.cat([x, sets[step].x]), torch.cat([y, sets[step].y])
                T = torch.cat([t, sets[step].task]) if self._takes_task else t
            self._step(self._augment(X) if self._augment else X, Y, T)

        # Encode x and store it in the index buffer.
        memory.write_checked(x, targets, tasks)
