"""Losses of a learner by name, so that a file can name them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, get_args

import torch
import torch.nn.functional as F

if TYPE_CHECKING:
    from recollect.memory.memory import Memory

Named = Literal["cross_entropy", "binary_cross_entropy", "mse", "mae"]
Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def loss_of(loss: Named | Loss) -> Loss:
    """A loss by its name, or one of your own: the mean over examples, from a model's outputs and targets.

    >>> loss_of("mse")(torch.tensor([1.0, 3.0]), torch.tensor([1.0, 1.0]))
    tensor(2.)
    """
    match loss:
        case "cross_entropy":
            return cross_entropy
        case "binary_cross_entropy":
            return _of_equal_shapes(F.binary_cross_entropy_with_logits)
        case "mse":
            return _of_equal_shapes(F.mse_loss)
        case "mae":
            return _of_equal_shapes(F.l1_loss)
    if isinstance(loss, str) or not callable(loss):
        names = ", ".join(map(repr, get_args(Named)))
        raise ValueError(f"loss={loss!r}: accepted are {names} and a function of outputs and targets")
    return loss


def cross_entropy(outputs: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """That of PyTorch, which of a label that the model has no output for says only where it looked.

    >>> cross_entropy(torch.zeros(2, 10), torch.tensor([3, 20]))
    Traceback (most recent call last):
    ValueError: y has the value 20: accepted are 0 to 9, for which the model has outputs
    """
    try:
        return F.cross_entropy(outputs, y)
    except IndexError:
        most = outputs.shape[-1] - 1
        raise ValueError(
            f"y has the value {int(y.max())}: accepted are 0 to {most}, for which the model has outputs"
        ) from None


def _of_equal_shapes(loss: Loss) -> Loss:
    """Where PyTorch would stretch n outputs and n x 1 targets to n x n."""

    def checked(outputs: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if outputs.shape != y.shape:
            raise ValueError(f"outputs have shape {tuple(outputs.shape)}, targets {tuple(y.shape)}: accepted are equal")
        return loss(outputs, y)

    return checked


def check_loss(loss: Named | Loss, memory: Memory) -> None:
    """Refuse a memory that does not keep what a named loss is for; with one of your own it is yours to know."""
    if loss == "cross_entropy":
        check_classes("a loss of cross_entropy", memory)
    elif isinstance(loss, str) and memory.classes:
        raise ValueError(f"loss={loss!r} and a memory that keeps classes: accepted is one with targets=RealTargets()")


def check_classes(learner: str, memory: Memory) -> None:
    """Refuse a memory that keeps no classes, for what learns nothing else."""
    if not memory.classes:
        raise ValueError(f"{learner} learns classes, and the memory keeps {type(memory.targets).__name__}")
