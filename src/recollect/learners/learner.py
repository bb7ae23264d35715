"""What all learners share: a model F(x, t), stochastic gradient descent on it, and prediction."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F

from recollect.budget import Bill
from recollect.checks import check_images, check_integers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import nn

    from recollect.checks import IntegerLike


class Learner(ABC):
    """A predictive model that is trained by `observe`, batch by batch as the stream brings them.

    The model is called as ``model(x, task)`` if its forward has an argument of that name, else as ``model(x)``.
    """

    def __init__(self, model: nn.Module, learning_rate: float) -> None:
        self.model = model
        self.learning_rate = learning_rate
        self._trained: list[torch.Tensor] = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self._takes_task = takes_task(model)

    @abstractmethod
    def observe(self, x: torch.Tensor, y: IntegerLike, task: IntegerLike = 0) -> None:
        """Learn from a batch of the stream."""

    def finish(self) -> None:  # noqa: B027
        """Do what waits for the end of the stream; most learners have nothing of the kind."""

    def footprint(self) -> Bill:
        """Every bit that is kept of the stream, by kind: nothing, unless a learner says otherwise."""
        return Bill(codes=0, example=1)

    @torch.no_grad()
    def predict(self, x: torch.Tensor, task: IntegerLike = 0) -> torch.Tensor:
        """The most probable class of each example."""
        x = check_images(x)
        self.model.eval()
        return self._logits(x, integers("task", task, len(x))).argmax(-1)

    def _step(self, x: torch.Tensor, y: torch.Tensor, task: torch.Tensor) -> None:
        """One step of gradient descent on the cross entropy."""
        self._descend(self._gradient(x, y, task))

    def _gradient(self, x: torch.Tensor, y: torch.Tensor, task: torch.Tensor) -> Sequence[torch.Tensor]:
        """The gradient of the cross entropy with respect to every parameter that is trained."""
        self._set_training()
        loss = F.cross_entropy(self._logits(x, task), y.to(x.device))
        return torch.autograd.grad(loss, self._trained, materialize_grads=True)

    @torch.no_grad()
    def _descend(self, gradient: Sequence[torch.Tensor]) -> None:
        """θ ← θ - α g."""
        # One call for all tensors; PyTorch documents it, under this name.
        torch._foreach_add_(self._trained, list(gradient), alpha=-self.learning_rate)  # pyright: ignore[reportPrivateImportUsage]

    def _set_training(self) -> None:
        """Undo what `predict` did; asking first costs less than to set every layer."""
        if not self.model.training:
            self.model.train()

    def _logits(self, x: torch.Tensor, task: torch.Tensor) -> torch.Tensor:
        return self.model(x, task.to(x.device)) if self._takes_task else self.model(x)


def takes_task(model: nn.Module) -> bool:
    """Whether a model is one of x and t: whether its forward has an argument ``task``."""
    # Compiled and data-parallel models hide the signature of the model that they wrap.
    inner = getattr(model, "_orig_mod", getattr(model, "module", model))
    return "task" in inspect.signature(inner.forward).parameters


def integers(name: str, values: IntegerLike, count: int) -> torch.Tensor:
    """Labels or tasks as a tensor, one for each of ``count`` examples."""
    return torch.from_numpy(check_integers(name, values, count, below=2**63 - 1))
