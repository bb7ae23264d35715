"""Elastic Weight Consolidation (Kirkpatrick et al., 2017): weights that mattered to earlier tasks are held in place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from recollect.budget import Bill, raw_bits
from recollect.checks import check_at_least, check_images, check_number
from recollect.learners.gradients import matrices_of_groups
from recollect.learners.learner import Learner, integers, one_task
from recollect.learners.model import predicting
from recollect.rebuild import rebuildable

if TYPE_CHECKING:
    from torch import nn

    from recollect.checks import IntegerLike
    from recollect.rebuild import Plain

CHUNK, MOST_NUMBERS = 50, 10**7  # examples whose gradients are held at once, and how many numbers these may have


@rebuildable
class EWC(Learner):
    """When a task ends, its weights and their Fisher information are kept; later steps pay for moving away from them.

    The Fisher information of a weight is the mean of its squared gradient over examples of the task, one by one, with
    their true labels. A task ends when an example of another comes, or with `finish`.

    Args:
        model: the predictive model F.
        learning_rate: of gradient descent.
        strength: λ, how much moving away costs: λ/2 Σ_k F_k (θ - θ_k)². Where α λ F is large, steps
            diverge: at the default rate 100 did on MNIST-Rotations.
        items: the most recent examples of the current task, kept at 8 bits a channel until its Fisher information is
            taken.
        averaging: `predict` by a moving average of the model over its steps, of which so much stays in each; 0 for the
            model as it is. Not in the paper.

    >>> import recollect as rc
    >>> learner = rc.EWC(rc.models.MLP(), items=50)
    >>> for task in range(20):
    ...     learner.observe(torch.rand(10, 1, 28, 28), torch.arange(10), task)
    >>> learner.finish()
    >>> round(learner.footprint().examples["parameters"])
    18288
    """

    needs_tasks = "acts when a task ends"

    def __init__(
        self,
        model: nn.Module,
        *,
        learning_rate: float = 0.01,
        strength: float = 30.0,
        items: int = 1000,
        averaging: float = 0.0,
    ) -> None:
        super().__init__(model, learning_rate, averaging=averaging)
        self.strength = check_number("strength", strength, above=0, or_equal=True)
        self.items = check_at_least("items", items, 1)
        self._anchors: list[dict[int, torch.Tensor]] = []  # θ_k, by task that ended and number of the parameter
        self._fisher: list[dict[int, torch.Tensor]] = []  # F_k
        self._task: int | None = None
        self._images = torch.empty(0, dtype=torch.uint8)
        self._labels = torch.empty(0, dtype=torch.int64)
        self._example = 1

    def observe(self, x: torch.Tensor, y: IntegerLike, task: IntegerLike | None = None) -> None:
        """Learn from a batch of the stream, all of one task."""
        x = check_images(x)
        labels, tasks = integers("y", y, len(x)), integers("task", self._for_learner(task), len(x))
        current = one_task(tasks)
        # What the past task has to say is asked before the new one moves running statistics.
        ended = self._information(self._task) if self._task is not None and self._task != current else None
        trained = self._trained
        gradient = self._gradient(trained, x, labels, tasks)
        if ended is not None:
            self._end(ended)
        self._descend(trained, [g + self.strength * pull for g, pull in zip(gradient, self._pull(), strict=True)])
        self._keep(x, labels, current)

    def _pull(self) -> list[torch.Tensor]:
        """Σ_k F_k (θ - θ_k), for each parameter."""
        pulls = []
        for number, weight in self._numbered():
            pulls.append(pull := torch.zeros_like(weight))
            for anchors, fishers in zip(self._anchors, self._fisher, strict=True):
                if number in anchors:  # if not, it was frozen then
                    _check_shape(weight, anchors[number])
                    pull.addcmul_(fishers[number], weight.detach() - anchors[number])
        return pulls

    def _numbered(self) -> list[tuple[int, torch.Tensor]]:
        """What is trained, by its number among all parameters."""
        return [(number, weight) for number, weight in enumerate(self.model.parameters()) if weight.requires_grad]

    def _keep(self, x: torch.Tensor, labels: torch.Tensor, task: int) -> None:
        self._task, self._example = task, raw_bits(x.shape[1:])
        images = (x * 255).round().byte()
        # Cut before they are joined: a part of what was joined would keep all of it.
        cut = max(0, len(self._labels) + len(x) - self.items)
        kept = self._images.to(x.device).view(-1, *x.shape[1:])[cut:], self._labels.to(x.device)[cut:]
        self._images = torch.cat([kept[0], images[-self.items :]])
        self._labels = torch.cat([kept[1], labels[-self.items :].to(x.device)])

    def finish(self) -> None:
        """End the current task: keep its weights and their Fisher information, drop its examples."""
        if self._task is not None:
            self._end(self._information(self._task))

    def _information(self, task: int) -> dict[int, torch.Tensor]:
        """The Fisher information of each weight for the examples at hand, which are of this task."""
        fisher = {number: torch.zeros_like(weight) for number, weight in self._numbered()}
        chunk = max(1, min(CHUNK, MOST_NUMBERS // max(1, sum(total.numel() for total in fisher.values()))))
        # Examples are taken one by one, and must not change running statistics.
        with predicting(self.model), torch.enable_grad():
            for images, labels in zip(self._images.split(chunk), self._labels.split(chunk), strict=True):
                inputs = self._inputs(images.float() / 255, torch.full_like(labels, task))
                gradients = matrices_of_groups(self.model, inputs, labels, sizes=[1] * len(labels))
                for total, matrix in zip(fisher.values(), gradients, strict=True):
                    total.add_(matrix.square_().sum(0).view_as(total), alpha=1 / len(self._labels))
        return fisher

    def _end(self, fisher: dict[int, torch.Tensor]) -> None:
        self._fisher.append(fisher)
        self._anchors.append(
            {number: weight.detach().clone() for number, weight in self._numbered() if number in fisher}
        )
        # New ones, since views would keep what is dropped.
        self._task, self._images, self._labels = None, self._images.new_empty(0), self._labels.new_empty(0)

    def _state(self) -> tuple[Plain, dict[str, torch.Tensor]]:
        kept = {"anchor": self._anchors, "fisher": self._fisher}
        tensors = {
            f"{kind}.{task}.{number}": tensor
            for kind, tasks in kept.items()
            for task, parameters in enumerate(tasks)
            for number, tensor in parameters.items()
        }
        values = {"task": self._task, "ended": len(self._anchors), "example": self._example}
        return values, {**tensors, "images": self._images, "labels": self._labels}

    def _restore(self, values: Plain, tensors: dict[str, torch.Tensor]) -> None:
        self._task, self._example = values["task"], values["example"]
        self._images, self._labels = tensors["images"], tensors["labels"]
        numbers = range(len([*self.model.parameters()]))
        self._anchors, self._fisher = (
            [
                {number: tensors[name] for number in numbers if (name := f"{kind}.{task}.{number}") in tensors}
                for task in range(values["ended"])
            ]
            for kind in ("anchor", "fisher")
        )

    def footprint(self) -> Bill:
        """Weights and Fisher information of the tasks that ended, and examples of the current one."""
        kept = [tensor for task in (*self._anchors, *self._fisher) for tensor in task.values()]
        return Bill(
            codes=8 * self._images.nbytes,
            labels=8 * self._labels.nbytes,
            parameters=8 * sum(tensor.nbytes for tensor in kept),
            example=self._example,
        )


def _check_shape(weight: torch.Tensor, anchor: torch.Tensor) -> None:
    if weight.shape != anchor.shape:
        raise ValueError(
            f"a parameter of shape {tuple(weight.shape)} had {tuple(anchor.shape)} when an earlier task ended: "
            "accepted are models that do not grow"
        )
