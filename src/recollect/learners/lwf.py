"""Learning without Forgetting (Li and Hoiem, 2016): on new examples, old outputs are to stay what they were."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch.func import functional_call

from recollect.averaging import copied
from recollect.budget import Bill, raw_bits
from recollect.checks import check_images, check_number
from recollect.learners.last_layer import look
from recollect.learners.learner import Learner, integers, one_task
from recollect.learners.losses import cross_entropy
from recollect.learners.model import predicting
from recollect.rebuild import rebuildable

if TYPE_CHECKING:
    from torch import nn

    from recollect.checks import IntegerLike
    from recollect.rebuild import Plain

TEMPERATURE = 2.0  # as published; it makes small probabilities count


@rebuildable
class LwF(Learner):
    """When a task ends, the model as it is becomes the teacher of its own outputs for this task and all before.

    Each step adds to the cross entropy of the new examples, for each earlier task, the cross entropy between what the
    teacher says of them and what the model says, both at temperature 2. No example is kept. A task ends when an example
    of another comes, or with `finish`.

    The outputs of a task are those of its classes, as the stream showed them. A model that takes the task has a softmax
    for each earlier task. All of them are had from one call where they are outputs of one last linear layer, before
    the model masks them; a model with a layer for each task is called for each. A model that does not take the task has
    one softmax, over the classes of all earlier tasks.

    Args:
        model: the predictive model F; if it takes the task, its outputs must come from a linear layer, or one for each
            task.
        learning_rate: of gradient descent.
        strength: λ, how much the outputs of earlier tasks count; 1 as published.
        averaging: `predict` by a moving average of the model over its steps, of which so much stays in each; 0 for the
            model as it is. Not in the paper.

    >>> import recollect as rc
    >>> learner = rc.LwF(rc.models.MLP())
    >>> for task in range(3):
    ...     learner.observe(torch.rand(10, 1, 28, 28), torch.arange(10), task)
    >>> learner.footprint().parameters == 32 * 89_610  # the teacher
    True
    """

    needs_tasks = "acts when a task ends"

    def __init__(
        self, model: nn.Module, *, learning_rate: float = 0.01, strength: float = 1.0, averaging: float = 0.0
    ) -> None:
        super().__init__(model, learning_rate, averaging=averaging)
        self.strength = check_number("strength", strength, above=0, or_equal=True)
        self._teacher: dict[str, torch.Tensor] = {}  # parameters and buffers by name
        self._classes: dict[int, list[int]] = {}  # of each task seen
        self._task: int | None = None
        self._example = 1
        # Whether all tasks have one last linear layer; seen when there is an earlier task.
        self._shares_layer: bool | None = None

    def observe(self, x: torch.Tensor, y: IntegerLike, task: IntegerLike | None = None) -> None:
        """Learn from a batch of the stream, all of one task."""
        x = check_images(x)
        labels, tasks = integers("y", y, len(x)), integers("task", self._for_learner(task), len(x))
        current = one_task(tasks)
        teacher = self._teacher if self._task in {None, current} else copied(self.model)

        earlier = self._earlier(current)
        said = self._said(x, tasks, teacher, earlier)
        self._set_training()
        logits, *outputs = self._outputs(x, tasks, earlier)
        loss = cross_entropy(logits, labels.to(x.device))
        for old, probabilities in zip(outputs, said, strict=True):
            loss = loss + self.strength * F.cross_entropy(old / TEMPERATURE, probabilities)
        trained = self._trained
        self._descend(trained, torch.autograd.grad(loss, trained, materialize_grads=True))

        self._teacher, self._task, self._example = teacher, current, raw_bits(x.shape[1:])
        self._classes[current] = [*dict.fromkeys([*self._classes.get(current, []), *labels.tolist()])]

    def _earlier(self, current: int) -> list[tuple[int, list[int]]]:
        """The classes of each softmax that is asked of earlier tasks, with the task that the model is to be told."""
        earlier = [(task, classes) for task, classes in self._classes.items() if task != current]
        if self._takes_task or not earlier:
            return earlier
        return [(current, [*dict.fromkeys(label for _, classes in earlier for label in classes)])]

    def _said(
        self,
        x: torch.Tensor,
        task: torch.Tensor,
        teacher: dict[str, torch.Tensor],
        earlier: list[tuple[int, list[int]]],
    ) -> list[torch.Tensor]:
        """The teacher's probabilities of these classes, by one softmax for each list of them."""
        if not earlier:
            return []
        with predicting(self.model):
            if self._takes_task and self._shares_layer is None:
                # Whether what the model says of an earlier task, if told it, can be read off its last layer now.
                of, classes = earlier[0]
                told = self._logits(x, torch.full_like(task, of))[:, classes]
                self._shares_layer = torch.equal(told, look(self.model, self._inputs(x, task)).unmasked[:, classes])
            _, *outputs = self._outputs(x, task, earlier, teacher)
        return [(old / TEMPERATURE).softmax(1) for old in outputs]

    def _outputs(
        self,
        x: torch.Tensor,
        task: torch.Tensor,
        earlier: list[tuple[int, list[int]]],
        weights: dict[str, torch.Tensor] | None = None,
    ) -> list[torch.Tensor]:
        """The model's outputs, and those of earlier tasks; by its own weights or others."""
        if self._takes_task and self._shares_layer is not False:
            seen = look(self.model, self._inputs(x, task), weights)
            return [seen.outputs, *(seen.unmasked[:, classes] for _, classes in earlier)]

        def told(task: torch.Tensor) -> torch.Tensor:
            return functional_call(self.model, weights or {}, self._inputs(x, task))

        outputs = told(task)
        if not self._takes_task:
            return [outputs, *(outputs[:, classes] for _, classes in earlier)]
        return [outputs, *(told(torch.full_like(task, of))[:, classes] for of, classes in earlier)]

    def finish(self) -> None:
        """End the current task: the model becomes the teacher."""
        if self._task is not None:
            self._teacher, self._task = copied(self.model), None

    def _state(self) -> tuple[Plain, dict[str, torch.Tensor]]:
        values = {"task": self._task, "classes": [*self._classes.items()], "example": self._example}
        return values, {f"teacher.{name}": tensor for name, tensor in self._teacher.items()}

    def _restore(self, values: Plain, tensors: dict[str, torch.Tensor]) -> None:
        self._task, self._classes, self._example = values["task"], dict(values["classes"]), values["example"]
        # Laid out in memory as the model is, on which it depends how sums are rounded.
        own = copied(self.model) if tensors else {}
        self._teacher = {name: own[name].copy_(tensors[f"teacher.{name}"]) for name in own}

    def footprint(self) -> Bill:
        """The teacher: parameters, and buffers such as running statistics."""
        return Bill(
            codes=0, parameters=8 * sum(tensor.nbytes for tensor in self._teacher.values()), example=self._example
        )
