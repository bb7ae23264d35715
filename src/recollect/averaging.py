"""A moving average of a model over its training: what it predicts by hangs less on the last few steps."""

from __future__ import annotations

import torch
from torch import nn

STATISTICS = {"running_mean", "running_var"}  # buffers that are averaged, as normalisations of PyTorch name them


def named(model: nn.Module) -> dict[str, torch.Tensor]:
    """All that a model computes with, parameters and buffers."""
    return {**dict(model.named_parameters()), **dict(model.named_buffers())}


def copied(model: nn.Module) -> dict[str, torch.Tensor]:
    """A copy of it."""
    return {name: tensor.detach().clone() for name, tensor in named(model).items()}


def stays_of(most: float, steps: int) -> float:
    """How much of an average stays in a step: at first less, since it has far to go, and then ``most``.

    >>> [round(stays_of(0.99, steps), 2) for steps in (1, 10, 100, 1000)]
    [0.18, 0.55, 0.92, 0.99]
    """
    return min(most, (1 + steps) / (10 + steps))


class Average:
    """Parameters and running statistics of a model, averaged over steps with weights that fall exponentially.

    It begins with the model as it is when it is made. Other buffers, such as counts and masks, are those of the model.
    Averages are of 32 bits at least: in fewer, small changes would be lost.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self.kept = {name: _precise(name, tensor).clone() for name, tensor in named(model).items()}
        self.steps = 0

    @torch.no_grad()
    def update(self, most: float) -> None:
        """Take in the model as it is; ``most`` of the average stays, once it has begun."""
        self.steps += 1
        taken = 1 - stays_of(most, self.steps)
        for name, tensor in named(self._model).items():
            now = _precise(name, tensor)
            if _is_averaged(name, tensor) and self._knows(name, tensor):
                # Wherever the model was moved meanwhile, its average comes along.
                self.kept[name] = self.kept[name].to(now).lerp_(now, taken)
            else:
                self.kept[name] = now.clone()

    def _knows(self, name: str, tensor: torch.Tensor) -> bool:
        """Whether it is of this tensor: a layer may have been replaced by one of another size."""
        return name in self.kept and self.kept[name].shape == tensor.shape

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        """What to put in the place of the model's own, as precise as these are."""
        return {
            name: self.kept[name].to(tensor.dtype) if self._knows(name, tensor) else tensor
            for name, tensor in named(self._model).items()
        }

    def restore(self, steps: int, kept: dict[str, torch.Tensor]) -> None:
        """Take over an average that was saved."""
        shapes = [{name: tensor.shape for name, tensor in tensors.items()} for tensors in (kept, self.kept)]
        if shapes[0] != shapes[1]:
            raise ValueError("an average of another model")
        self.steps = steps
        # Into a copy of the model, since how tensors are laid out in memory decides how sums are rounded.
        for name, tensor in self.kept.items():
            tensor.copy_(kept[name])


def _is_averaged(name: str, tensor: torch.Tensor) -> bool:
    return isinstance(tensor, nn.Parameter) or name.rpartition(".")[2] in STATISTICS


def _precise(name: str, tensor: torch.Tensor) -> torch.Tensor:
    """In 32 bits at least, if it is averaged."""
    now = tensor.detach()
    return now.to(torch.promote_types(now.dtype, torch.float32)) if _is_averaged(name, tensor) else now
