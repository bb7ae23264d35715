"""What goes into the last linear layer of a model, its features, and what comes out before outputs are masked."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from torch import nn
from torch.func import functional_call

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch


class Seen(NamedTuple):
    """A call of a model, with what its last linear layer was given and gave."""

    features: torch.Tensor
    unmasked: torch.Tensor
    outputs: torch.Tensor


def linear_layers(model: nn.Module) -> list[nn.Linear]:
    """The linear layers of a model, of which there must be one.

    >>> linear_layers(nn.Conv2d(1, 10, 28))
    Traceback (most recent call last):
    TypeError: Conv2d has no linear layer: accepted is a model whose outputs come from one
    """
    if not (layers := [layer for layer in model.modules() if isinstance(layer, nn.Linear)]):
        raise TypeError(f"{type(model).__name__} has no linear layer: accepted is a model whose outputs come from one")
    return layers


def look(model: nn.Module, inputs: tuple[torch.Tensor, ...], weights: Mapping[str, torch.Tensor] | None = None) -> Seen:
    """Call a model, with other ``weights`` than its own if they are given, and look at its last linear layer.

    The last is the one that runs last, wherever the model defines it.

    >>> import torch
    >>> seen = look(nn.Sequential(nn.Flatten(), nn.Linear(784, 30), nn.ReLU(), nn.Linear(30, 5)), (torch.rand(2, 784),))
    >>> seen.features.shape, seen.outputs.shape
    (torch.Size([2, 30]), torch.Size([2, 5]))
    """
    last: list[torch.Tensor] = []

    def note(layer: nn.Module, given: tuple[torch.Tensor, ...], gave: torch.Tensor) -> None:
        last[:] = given[0], gave

    hooks = [layer.register_forward_hook(note) for layer in linear_layers(model)]
    try:
        outputs = functional_call(model, dict(weights or {}), inputs)
    finally:
        for hook in hooks:
            hook.remove()
    if not last or last[1].shape != outputs.shape:
        gave = tuple(last[1].shape) if last else "nothing"
        raise TypeError(
            f"{type(model).__name__} gave outputs of shape {tuple(outputs.shape)}, its last linear layer {gave}: "
            "accepted is a model whose outputs are those of its last linear layer, masked or as they are"
        )
    return Seen(last[0], last[1], outputs)
