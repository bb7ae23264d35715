"""A moving average of a model over its training: what it predicts by hangs less on the last few steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import nn


def check_averaging(value: float) -> float:
    """How much of an average stays in each step, 0 for no average.

    >>> check_averaging(1)
    Traceback (most recent call last):
    ValueError: averaging=1: accepted are numbers from 0, for none, to less than 1
    """
    if not 0 <= value < 1:
        raise ValueError(f"averaging={value}: accepted are numbers from 0, for none, to less than 1")
    return float(value)


def copied(model: nn.Module) -> dict[str, torch.Tensor]:
    """A copy of all that a model computes with, parameters and buffers, by name."""
    kept = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    return {name: tensor.detach().clone() for name, tensor in kept.items()}


def stays_of(most: float, steps: int) -> float:
    """How much of an average stays in a step: at first less, since it has far to go, and then ``most``.

    >>> [round(stays_of(0.99, steps), 2) for steps in (1, 10, 100, 1000)]
    [0.18, 0.55, 0.92, 0.99]
    """
    return min(most, (1 + steps) / (10 + steps))


class Average:
    """Parameters and running statistics of a model, averaged over steps, with weights that fall exponentially.

    What is no floating point number, such as a count of batches, is as in the model.

    Args:
        model: that is trained.
        most: how much of the average stays in each step, once it has begun.
    """

    def __init__(self, model: nn.Module, most: float) -> None:
        self._model, self._most = model, most
        self.steps = 0
        self.tensors = copied(model)

    @torch.no_grad()
    def update(self) -> None:
        """Take in the model as it is."""
        self.steps += 1
        now = {**dict(self._model.named_parameters()), **dict(self._model.named_buffers())}
        real = [name for name, tensor in now.items() if tensor.is_floating_point()]
        # One call for all tensors; PyTorch has documented its likes, under such names.
        torch._foreach_lerp_(  # pyright: ignore[reportPrivateImportUsage]
            [self.tensors[name] for name in real],
            [now[name] for name in real],
            weight=1 - stays_of(self._most, self.steps),
        )
        for name in now.keys() - set(real):
            self.tensors[name].copy_(now[name])

    def restore(self, steps: int, tensors: dict[str, torch.Tensor]) -> None:
        """Take over an average that was saved."""
        self.steps = steps
        # Into a copy of the model, since how tensors are laid out in memory decides how sums are rounded.
        for name, tensor in self.tensors.items():
            tensor.copy_(tensors[name])
