"""What learners ask of a model, which is otherwise the user's own."""

from __future__ import annotations

import inspect
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from collections.abc import Iterator


def check_model(model: nn.Module) -> nn.Module:
    """``model``, after making sure that it is one."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"model is {type(model).__name__}: accepted is a torch.nn.Module")
    return model


def takes_task(model: nn.Module) -> bool:
    """Whether a model is one of x and t: whether its forward has an argument ``task``, which is the second then."""
    # Compiled and data-parallel models hide the signature of the model that they wrap.
    inner = getattr(model, "_orig_mod", model)
    if isinstance(inner, nn.DataParallel | nn.parallel.DistributedDataParallel):
        inner = inner.module
    parameters = inspect.signature(inner.forward).parameters
    if "task" not in parameters:
        return False
    if [*parameters].index("task") != 1 or parameters["task"].kind is inspect.Parameter.KEYWORD_ONLY:
        raise TypeError(
            f"forward of {type(inner).__name__} is {', '.join(map(str, parameters.values()))}: accepted are (x) and "
            f"(x, task), and what comes behind them with defaults"
        )
    return True


@contextmanager
def predicting(model: nn.Module) -> Iterator[None]:
    """Let a model predict, without gradients, and leave each layer in the mode that it was in."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module in training:
            module.training = True


def dtype_of(model: nn.Module) -> torch.dtype:
    """What a model computes with: images come in 32 bits."""
    return next((weight.dtype for weight in model.parameters() if weight.is_floating_point()), torch.float32)
