"""Gradient Episodic Memory with a Scalable Recollection Module: the paper's Algorithm 2."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from recollect.checks import check_at_least, check_flag, check_number
from recollect.learners.gradients import gradients_of_groups
from recollect.learners.learner import Learner
from recollect.learners.losses import check_classes
from recollect.learners.projection import multipliers
from recollect.learners.together import Together, check_layers
from recollect.module import check_module
from recollect.rebuild import rebuildable

if TYPE_CHECKING:
    from torch import nn

    from recollect.checks import IntegerLike
    from recollect.learners.gradients import Gradients
    from recollect.memory.memory import Memory
    from recollect.module import RecollectionModule


@rebuildable
class GEM(Learner):
    """Steps along the gradient of the new examples, turned so that the loss on no past task grows.

    With the codec `RawPixels` in the memory this is GEM with real storage. The paper's memory is a ring per task.

    Args:
        model: the predictive model F.
        module: codec and memory.
        learning_rate: of gradient descent on the model; the paper's α, 0.1 on MNIST-Rotations.
        memory_strength: the least share of each past gradient in a projected step; 0.5 in the paper.
        memory_batch: memories of each past task that its gradient is taken of, drawn anew for every step; all by
            default, as in the paper.
        batch_size: recollections that join the new examples when the codec rehearses.
        together: whether new examples and memories go through the model together, so that batch normalisation has the
            statistics of all of them, as in `Replay`. If not, each group is normalised by itself, as in GEM's code, by
            which few memories of each task keep less.
        averaging: `predict` by a moving average of the model over its steps, of which so much stays in each; 0 for the
            model as it is. Not in the paper.

    >>> import recollect as rc
    >>> memory = rc.Memory(rc.RawPixels((1, 28, 28)), capacity=100, admission="ring")
    >>> learner = rc.GEM(rc.models.MLP(), rc.RecollectionModule(memory))
    >>> for task in range(3):
    ...     learner.observe(torch.rand(10, 1, 28, 28), torch.arange(10), task)
    """

    needs_tasks = "keeps the loss on each earlier task from growing"

    def __init__(
        self,
        model: nn.Module,
        module: RecollectionModule,
        *,
        learning_rate: float = 0.1,
        memory_strength: float = 0.5,
        memory_batch: int | None = None,
        batch_size: int = 25,
        together: bool = False,
        averaging: float = 0.0,
    ) -> None:
        super().__init__(model, learning_rate, averaging=averaging)
        self.module = check_module(module)
        check_classes("GEM", module.memory)
        self.memory_strength = check_number("memory_strength", memory_strength, above=0, or_equal=True)
        self.memory_batch = None if memory_batch is None else check_at_least("memory_batch", memory_batch, 1)
        self.batch_size = check_at_least("batch_size", batch_size, 1)
        self.together = check_flag("together", together)
        if together:
            check_layers(model)

    @property
    def memory(self) -> Memory:
        """The memory of the module."""
        return self.module.memory

    def observe(self, x: torch.Tensor, y: IntegerLike, task: IntegerLike | None = None) -> None:
        """Learn from a batch of the stream. Examples that the memory does not take change nothing."""
        memory = self.module.memory
        x, labels, tasks = memory.check(x, y, self._for_learner(task))
        y, t = (torch.from_numpy(numbers).to(x.device) for numbers in (labels, tasks))
        self._check_outputs(x, y, t)

        # Scalable Recollection Module training.
        self.module.rehearse_checked(x, self.batch_size if self.module.rehearses else 0)

        # Encode x and store it.
        memory.write_checked(x, labels, tasks)

        # GEM training: the gradient g of the new examples, and g_k of the memories of every other task.
        past = memory.sample_tasks(self.memory_batch, but=set(tasks.tolist()))
        if past is None:
            self._step(x, y, t)
            return
        past = past.to(x.device)
        sizes = [len(x), *past.task.unique_consecutive(return_counts=True)[1].tolist()]
        inputs = self._inputs(torch.cat([x, past.x]), torch.cat([t, past.task]))
        self._set_training()
        gradients_of = Together if self.together else gradients_of_groups
        gradients = gradients_of(self.model, inputs, torch.cat([y, past.y]), sizes)
        step = gradients.combined(self._shares(gradients))
        trained = self._trained
        self._descend(trained, [part.view_as(parameter) for part, parameter in zip(step, trained, strict=True)])

    def _shares(self, gradients: Gradients) -> torch.Tensor:
        """How much of g and of each g_k is in the step: g alone, unless it would make the loss on a past task grow."""
        gram = gradients.gram()
        along = gram[0, 1:]
        shares = torch.zeros_like(gram[0])
        shares[0] = 1
        if bool((along < 0).any()) and bool(gram.isfinite().all()):  # no projection mends a diverged model
            P, p = (products.double().cpu().numpy() for products in (gram[1:, 1:], along))
            shares[1:] = torch.from_numpy(multipliers(P, p, self.memory_strength))
        return shares
