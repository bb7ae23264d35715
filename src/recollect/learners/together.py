"""Gradients of groups that go through a model together, as one batch.

With batch normalisation the loss of a group depends on all examples of the batch, so that its own gradient would take a
pass back over all of them. One pass for all groups gives the gradient of the sum of their losses, which for every layer
is a sum over examples; the part of a group is the sum over its own. Inner products are taken of these parts, which
without batch normalisation are the gradients. A second pass gives the weighted sum that is asked for.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeGuard

import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd.graph import GradientEdge, get_gradient_edge
from torch.nn.grad import conv2d_weight

from recollect.learners.gradients import Matrices

if TYPE_CHECKING:
    from collections.abc import Sequence

Normalisation = nn.BatchNorm1d | nn.BatchNorm2d
Layer = nn.Linear | nn.Conv2d | Normalisation
LAYERS = (nn.Linear, nn.Conv2d, nn.BatchNorm1d, nn.BatchNorm2d)
Call = tuple[Layer, torch.Tensor, GradientEdge]  # what a layer was given, and where its output comes from


class Together:
    """Gradients of the mean cross entropies of groups in one batch; ``inputs`` are the model's, group after group.

    >>> model = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(4), nn.Linear(4, 3))
    >>> gradients = Together(model, [torch.rand(5, 1, 2, 2)], torch.arange(5) % 3, sizes=[2, 3])
    >>> gradients.gram().shape
    torch.Size([2, 2])
    >>> [gradient.shape for gradient in gradients.combined(torch.tensor([1.0, 0.5]))][-1]
    torch.Size([3])
    """

    def __init__(self, model: nn.Module, inputs: Sequence[torch.Tensor], y: torch.Tensor, sizes: Sequence[int]) -> None:
        self.trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self.sizes = list(sizes)
        self.calls: list[Call] = []
        hooks = [layer.register_forward_hook(partial(_called, self.calls)) for layer in check_layers(model)]
        try:
            losses = F.cross_entropy(model(*inputs), y, reduction="none")
        finally:
            for hook in hooks:
                hook.remove()
        self.losses = torch.stack([group.mean() for group in losses.split(self.sizes)])

    def gram(self) -> torch.Tensor:
        """<g_j, g_k> of all pairs, by the parts that groups have in the gradient of the sum of their losses."""
        return self.parts().gram()

    def combined(self, shares: torch.Tensor) -> Sequence[torch.Tensor]:
        """Σ v_k g_k, exactly: a sum of parts so weighed would be the gradient of no loss."""
        loss = shares.to(self.losses.dtype) @ self.losses
        return torch.autograd.grad(loss, self.trained, materialize_grads=True)

    def parts(self) -> Matrices:
        """The parts, for each parameter a matrix, a group a row."""
        edges = [edge for *_, edge in self.calls]
        slopes = torch.autograd.grad(self.losses.sum(), edges, materialize_grads=True, retain_graph=True)
        found: dict[nn.Parameter, torch.Tensor] = {}
        for (layer, x, _), slope in zip(self.calls, slopes, strict=True):
            weighed = _normal(layer, x) if isinstance(layer, Normalisation) else x
            if isinstance(layer, nn.Conv2d) and len(self.sizes) * layer.weight.numel() > x.numel():
                # Weights come in the layout of maps and end as rows: what is smaller is laid out anew.
                weighed, slope = weighed.contiguous(), slope.contiguous()  # noqa: PLW2901
            groups = zip(weighed.split(self.sizes), slope.split(self.sizes), strict=True)
            rows = [_parts(layer, *group) for group in groups]
            for parameter in rows[0]:
                parts = torch.stack([row[parameter] for row in rows])
                again = parameter in found  # of a layer that is there twice
                found[parameter] = found[parameter] + parts if again else parts
        groups = len(self.sizes)
        unused = {each: each.new_zeros(groups, each.numel()) for each in self.trained if each not in found}
        return Matrices([{**unused, **found}[parameter].flatten(1) for parameter in self.trained])


def check_layers(model: nn.Module) -> list[Layer]:
    """The layers that are trained. A model with other parameters, whose gradient has no known parts, is refused."""
    layers = [layer for layer in model.modules() if _has_parts(layer)]
    known = {id(parameter) for layer in layers for parameter in _trained(layer).values()}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad and id(parameter) not in known:
            raise TypeError(
                f"together=True and {name} of a {type(model).__name__}: accepted are parameters of "
                f"{', '.join(layer.__name__ for layer in LAYERS)}, of convolutions with zeros for padding"
            )
    return layers


def _has_parts(layer: nn.Module) -> TypeGuard[Layer]:
    """Whether a layer does no more than its kind does."""
    return (
        type(layer) in LAYERS
        and not (isinstance(layer, nn.Conv2d) and (isinstance(layer.padding, str) or layer.padding_mode != "zeros"))
        and not (layer._forward_hooks or layer._forward_pre_hooks)
        and bool(_trained(layer))
    )


def _trained(layer: nn.Module) -> dict[str, nn.Parameter]:
    own = layer.named_parameters(recurse=False)
    return {name: parameter for name, parameter in own if parameter.requires_grad}


def _called(calls: list[Call], layer: Any, given: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
    """Note a call. What comes later may change the output in place, but not where it came from."""
    calls.append((layer, given[0].detach(), get_gradient_edge(output)))


def _normal(layer: Normalisation, x: torch.Tensor) -> torch.Tensor:
    """What the layer weighs: its input, normalised."""
    if layer.training or layer.running_mean is None:
        return F.batch_norm(x, None, None, training=True, eps=layer.eps)
    return F.batch_norm(x, layer.running_mean, layer.running_var, eps=layer.eps)


def _parts(layer: Layer, x: torch.Tensor, slope: torch.Tensor) -> dict[nn.Parameter, torch.Tensor]:
    """What some examples add to the gradient of each parameter, from what was weighed and the slope at the output."""
    found, trained = {}, _trained(layer)
    others = [dim for dim in range(slope.ndim) if dim != (slope.ndim - 1 if isinstance(layer, nn.Linear) else 1)]
    if "bias" in trained:
        found[trained["bias"]] = slope.sum(others)
    if "weight" not in trained:
        return found
    if isinstance(layer, nn.Linear):
        part = slope.flatten(0, -2).T @ x.flatten(0, -2)
    elif isinstance(layer, nn.Conv2d):
        moved = (layer.stride, layer.padding, layer.dilation, layer.groups)
        part = conv2d_weight(x, layer.weight.shape, slope, *moved)  # pyright: ignore[reportArgumentType] - pairs, too
    else:
        part = (slope * x).sum(others)
    return found | {trained["weight"]: part}
