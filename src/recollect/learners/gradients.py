"""Gradients of several losses at once, one for each group of examples."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch.func import functional_call, grad, vmap

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import nn

Gradients = list[torch.Tensor]  # for each parameter a matrix, a group a row


def gradients_of_groups(
    model: nn.Module, inputs: Sequence[torch.Tensor], y: torch.Tensor, sizes: Sequence[int]
) -> Gradients:
    """Gradients of the mean cross entropy of each group; ``inputs`` are the model's, the groups one after the other.

    All groups are computed together. A model with buffers, such as running statistics, is taken group by group, since
    each changes them.

    >>> from recollect.models import MLP
    >>> x, y = torch.rand(5, 1, 28, 28), torch.arange(5)
    >>> [gradient.shape for gradient in gradients_of_groups(MLP(), [x], y, sizes=[2, 3])][:2]
    [torch.Size([2, 78400]), torch.Size([2, 100])]
    """
    trained = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    if next(model.buffers(), None) is not None:
        return _one_by_one(model, list(trained.values()), inputs, y, sizes)

    def loss(
        parameters: dict[str, torch.Tensor], inputs: list[torch.Tensor], y: torch.Tensor, weight: torch.Tensor
    ) -> torch.Tensor:
        logits = functional_call(model, parameters, tuple(inputs))
        return weight @ F.cross_entropy(logits, y, reduction="none")

    # Smaller groups are filled up with examples that weigh nothing.
    lengths = torch.tensor(sizes)
    places = torch.arange(int(lengths.max()))
    weight = (places < lengths[:, None]) / lengths[:, None]
    rows = (lengths.cumsum(0) - lengths)[:, None] + places.minimum(lengths[:, None] - 1)
    weight, rows = weight.to(y.device), rows.to(y.device)
    detached = {name: parameter.detach() for name, parameter in trained.items()}
    each = vmap(grad(loss), in_dims=(None, 0, 0, 0), randomness="different")
    found = each(detached, [part[rows] for part in inputs], y[rows], weight)
    return [gradient.flatten(1) for gradient in found.values()]


def _one_by_one(
    model: nn.Module, trained: list[nn.Parameter], inputs: Sequence[torch.Tensor], y: torch.Tensor, sizes: Sequence[int]
) -> Gradients:
    groups = zip(*(part.split(list(sizes)) for part in (*inputs, y)), strict=True)
    found = [torch.autograd.grad(F.cross_entropy(model(*group[:-1]), group[-1]), trained) for group in groups]
    return [torch.stack(gradients).flatten(1) for gradients in zip(*found, strict=True)]
