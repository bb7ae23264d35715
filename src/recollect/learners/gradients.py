"""Gradients of several losses at once, one for each group of examples, and what is asked of them."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Protocol, TypeGuard

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad, vmap

if TYPE_CHECKING:
    from collections.abc import Sequence

# Layers that have no parameters and treat every example by itself.
PLAIN = (nn.Flatten, nn.Identity, nn.ReLU, nn.LeakyReLU, nn.ELU, nn.GELU, nn.SiLU, nn.Sigmoid, nn.Tanh)

OF_BATCHES = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)  # with or without running statistics
MOST_FACTORED = 300  # examples; their pairs are counted, so that with more it is faster to write gradients out


class Gradients(Protocol):
    """The gradients g_k of the groups."""

    def gram(self) -> torch.Tensor:
        """<g_j, g_k> of all pairs."""
        ...

    def combined(self, shares: torch.Tensor) -> Sequence[torch.Tensor]:
        """Σ v_k g_k with the shares v, a tensor for each parameter."""
        ...


def gradients_of_groups(
    model: nn.Module, inputs: Sequence[torch.Tensor], y: torch.Tensor, sizes: Sequence[int]
) -> Gradients:
    """Gradients of the mean cross entropy of each group; ``inputs`` are the model's, the groups one after the other.

    >>> from recollect.models import MLP
    >>> x, y = torch.rand(5, 1, 28, 28), torch.arange(5)
    >>> gradients_of_groups(MLP(), [x], y, sizes=[2, 3]).gram().shape
    torch.Size([2, 2])
    """
    if len(y) <= MOST_FACTORED and _is_chain(model):
        return Factors(model, inputs[0], y, sizes)
    return Matrices(matrices_of_groups(model, inputs, y, sizes))


def _is_chain(model: nn.Module) -> TypeGuard[nn.Sequential]:
    """Whether the model is plain and linear layers in a row, with nothing about them that is out of the ordinary."""
    if not isinstance(model, nn.Sequential) or type(model).forward is not nn.Sequential.forward:
        return False
    layers, parameters = list(model), list(model.parameters())
    return (
        isinstance(layers[0], nn.Flatten)
        and (layers[0].start_dim, layers[0].end_dim) == (1, -1)
        and not (model._forward_hooks or model._forward_pre_hooks)
        and all(map(_is_ordinary, layers))
        and sum(len(list(layer.parameters())) for layer in layers) == len(parameters)  # no layer twice
        and all(parameter.requires_grad for parameter in parameters)
    )


def _is_ordinary(layer: nn.Module) -> bool:
    """Whether a layer only maps examples, one by one, by its weight and bias if it has any."""
    return (
        type(layer) in (nn.Linear, *PLAIN)
        and set(layer._parameters) <= {"weight", "bias"}
        and not getattr(layer, "inplace", False)
        and not (layer._forward_hooks or layer._forward_pre_hooks)
    )


class Factors:
    """Gradients of a chain of linear layers, never written out.

    For a linear layer the gradient of a group is Σ δ aᵀ over its examples, with the layer's input a and the slope δ of
    the loss at its output. Inner products of such sums are products of inner products.
    """

    def __init__(self, model: nn.Sequential, x: torch.Tensor, y: torch.Tensor, sizes: Sequence[int]) -> None:
        lengths = torch.tensor(sizes, device=x.device)
        self.group = torch.arange(len(sizes), device=x.device).repeat_interleave(lengths)
        self.member = F.one_hot(self.group, len(sizes)).T.to(x.dtype)
        self.inputs: list[torch.Tensor] = []
        outputs = []
        for layer in model:
            if isinstance(layer, nn.Linear):
                self.inputs.append(x.detach())
                outputs.append(x := layer(x))
            else:
                x = layer(x)
        loss = (1 / lengths)[self.group] @ F.cross_entropy(x, y, reduction="none")
        self.slopes = torch.autograd.grad(loss, outputs)
        self.biased = [layer.bias is not None for layer in model if isinstance(layer, nn.Linear)]

    def gram(self) -> torch.Tensor:
        """<g_j, g_k> of all pairs."""
        layers = zip(self.inputs, self.slopes, self.biased, strict=True)
        pairs = [(slope @ slope.T) * (seen @ seen.T + biased) for seen, slope, biased in layers]
        return self.member @ functools.reduce(torch.add, pairs) @ self.member.T

    def combined(self, shares: torch.Tensor) -> Sequence[torch.Tensor]:
        """Σ v_k g_k."""
        found = []
        for seen, slope, biased in zip(self.inputs, self.slopes, self.biased, strict=True):
            weighted = slope * shares[self.group, None]
            found += [weighted.T @ seen, weighted.sum(0)] if biased else [weighted.T @ seen]
        return found


class Matrices:
    """Gradients of any model: for each parameter a matrix, a group a row."""

    def __init__(self, matrices: list[torch.Tensor]) -> None:
        self.matrices = matrices

    def gram(self) -> torch.Tensor:
        """<g_j, g_k> of all pairs."""
        return functools.reduce(torch.add, [rows @ rows.T for rows in self.matrices])

    def combined(self, shares: torch.Tensor) -> Sequence[torch.Tensor]:
        """Σ v_k g_k, flat."""
        return [shares @ rows for rows in self.matrices]


def matrices_of_groups(
    model: nn.Module, inputs: Sequence[torch.Tensor], y: torch.Tensor, sizes: Sequence[int]
) -> list[torch.Tensor]:
    """For each parameter that is trained the gradients of all groups, a group a row, computed together.

    A model with buffers, such as running statistics, is taken group by group, since each changes them, as is one whose
    examples see each other, and one that cannot be traced, such as one that looks up a part of itself by the task.
    """
    trained = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    if next(model.buffers(), None) is not None or any(isinstance(layer, OF_BATCHES) for layer in model.modules()):
        return _group_by_group(model, inputs, y, sizes, [*trained.values()])

    def loss(
        parameters: dict[str, torch.Tensor], inputs: list[torch.Tensor], y: torch.Tensor, weight: torch.Tensor
    ) -> torch.Tensor:
        logits = functional_call(model, parameters, tuple(inputs))
        return weight @ F.cross_entropy(logits, y, reduction="none")

    # Smaller groups are filled up with examples that weigh nothing.
    lengths = torch.tensor(sizes, device=y.device)
    places = torch.arange(max(sizes), device=y.device)
    weight = (places < lengths[:, None]) / lengths[:, None]
    rows = (lengths.cumsum(0) - lengths)[:, None] + places.minimum(lengths[:, None] - 1)
    detached = {name: parameter.detach() for name, parameter in trained.items()}
    each = vmap(grad(loss), in_dims=(None, 0, 0, 0), randomness="different")
    try:
        gradients = each(detached, [part[rows] for part in inputs], y[rows], weight)
    except RuntimeError:  # of many kinds; an error of the model itself comes again
        return _group_by_group(model, inputs, y, sizes, [*trained.values()])
    return [gradient.flatten(1) for gradient in gradients.values()]


def _group_by_group(
    model: nn.Module,
    inputs: Sequence[torch.Tensor],
    y: torch.Tensor,
    sizes: Sequence[int],
    trained: Sequence[torch.Tensor],
) -> list[torch.Tensor]:
    groups = zip(*(part.split(list(sizes)) for part in (*inputs, y)), strict=True)
    losses = (F.cross_entropy(model(*group[:-1]), group[-1]) for group in groups)
    found = [torch.autograd.grad(loss, trained, materialize_grads=True) for loss in losses]
    return [torch.stack(gradients).flatten(1) for gradients in zip(*found, strict=True)]
