"""How far a student is from its teacher: what distillation makes small, and what makes an example hard."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F

from recollect.learners.model import predicting, takes_task

if TYPE_CHECKING:
    from torch import nn

    from recollect.distillation.sampling import Recollections


class Divergence:
    """The divergence of Kullback and Leibler from the teacher's probabilities to the student's, for each example.

    It is the cross entropy with the teacher's output as the label, less the teacher's own entropy: its gradient is the
    same, and it is 0 where the student says what the teacher says, even of what the teacher is not sure of.

    Args:
        teacher: whose outputs are logits; None has the stored labels teach.
        student: whose outputs are logits of the same classes.
    """

    def __init__(self, teacher: nn.Module | None, student: nn.Module) -> None:
        self.teacher, self.student = teacher, student
        self._takes_task = {model: takes_task(model) for model in (teacher, student) if model is not None}

    def __call__(self, recollections: Recollections) -> torch.Tensor:
        """One number an example; only the student is differentiated."""
        if self.teacher is None:
            labels = _stored(recollections.y, "label", "there is no teacher")
            return F.cross_entropy(self._logits(self.student, recollections), labels, reduction="none")
        log_p = self._teaching(self.teacher, recollections).log_softmax(-1)
        log_q = self._logits(self.student, recollections).log_softmax(-1)
        if log_p.shape != log_q.shape:
            shapes = tuple(log_p.shape), tuple(log_q.shape)
            raise ValueError(
                f"the teacher has outputs of shape {shapes[0]}, the student {shapes[1]}: accepted are equal"
            )
        p = log_p.exp()
        # Where a mask of the task leaves no probability at all, infinities would meet.
        return torch.where(p > 0, p * (log_p - log_q), 0).sum(-1)

    def _teaching(self, teacher: nn.Module, recollections: Recollections) -> torch.Tensor:
        if recollections.logits is not None:
            if recollections.teacher is None or recollections.teacher() is not teacher:
                raise ValueError(
                    "recollections have the outputs of another teacher: accepted is the one of their sampler"
                )
            return recollections.logits
        with predicting(teacher):
            return self._logits(teacher, recollections)

    def _logits(self, model: nn.Module, recollections: Recollections) -> torch.Tensor:
        return logits(model, recollections, self._takes_task[model])


def logits(model: nn.Module, recollections: Recollections, with_task: bool) -> torch.Tensor:
    """What a model says of recollections, told their tasks if it takes them."""
    if with_task:
        return model(recollections.x, _stored(recollections.task, "task", "a model takes the task"))
    return model(recollections.x)


def _stored(values: torch.Tensor | None, kind: str, reason: str) -> torch.Tensor:
    if values is None:
        raise ValueError(f"{reason}, and recollections have no {kind}: accepted is a sampler of a memory")
    return values
