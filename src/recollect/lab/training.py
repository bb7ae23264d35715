"""Training with all examples at hand, epoch after epoch: how codecs and teachers are made."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

import torch

from recollect.seeding import derived

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import nn


def fit(
    model: nn.Module,
    loss: Callable[[torch.Tensor], torch.Tensor],
    examples: int,
    *,
    epochs: int,
    learning_rate: float,
    batch_size: int,
    seed: int,
    tell: Callable[[str], object] = lambda state: None,
) -> float:
    """Train a model with Adam and say how many seconds it took.

    The learning rate falls to zero along half a cosine: then a few epochs end about where many with one rate would.

    Args:
        model: is in evaluation mode afterwards.
        loss: of the examples with these numbers.
        examples: how many there are.
        epochs: passes through all of them, each in an order of its own.
        learning_rate: at the start.
        batch_size: examples in a step.
        seed: of the orders.
        tell: is told after each epoch which it was.
    """
    started = time.perf_counter()
    generator = torch.Generator().manual_seed(derived(seed, "order of training"))
    optimiser = torch.optim.Adam(model.parameters(), lr=learning_rate, fused=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs * math.ceil(examples / batch_size))
    model.train()
    for epoch in range(1, epochs + 1):
        for rows in torch.randperm(examples, generator=generator).split(batch_size):
            optimiser.zero_grad()
            loss(rows).backward()
            optimiser.step()
            schedule.step()
        tell(f"epoch {epoch} of {epochs}")
    model.eval()
    return time.perf_counter() - started
