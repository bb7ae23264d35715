"""Generative distillation: a student learns from recollections what a teacher says of them (the paper's Question 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from recollect.checks import check_at_least
from recollect.distillation.divergence import Divergence
from recollect.memory.memory import Memory

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import nn

    from recollect.distillation.sampling import Sampler


def distil(
    teacher: nn.Module | None,
    student: nn.Module,
    sampler: Sampler,
    episodes: int,
    *,
    learning_rate: float = 1e-3,
    batch_size: int = 1,
    on_episode: Callable[[int], None] = lambda episode: None,
) -> None:
    """Train ``student``, of whatever architecture, to give the outputs of ``teacher`` on what the sampler draws.

    No data is needed but a memory: `BufferSampling` draws from one.

    Args:
        teacher: whose outputs are logits. Without one, None, the labels stored in the memory teach.
        student: whose outputs are logits of the same classes. Models are called with the task of each recollection if
            their forward has an argument ``task``.
        sampler: draws the recollections.
        episodes: steps of training.
        learning_rate: of Adam; the paper takes the better of 1e-3, for few episodes, and 1e-4, for many.
        batch_size: recollections in a step; 1 in the paper, where a step is an episode.
        on_episode: is told after each episode how many there were, for a learning curve.

    >>> import recollect as rc
    >>> memory = rc.Memory(rc.ResizedPixels((1, 28, 28), size=(10, 10), bits=1), capacity=50)
    >>> ids = memory.write(torch.rand(50, 1, 28, 28), y=3)
    >>> teacher, student = rc.models.LeNet(), rc.models.MLP()
    >>> rc.distillation.distil(teacher, student, rc.distillation.BufferSampling(memory), episodes=5)
    """
    if isinstance(sampler, Memory):
        raise TypeError("sampler is a Memory: accepted is one that draws from it, such as BufferSampling(memory)")
    check_at_least("episodes", episodes, 1)
    check_at_least("batch_size", batch_size, 1)
    trained = [parameter for parameter in student.parameters() if parameter.requires_grad]
    optimiser = torch.optim.Adam(trained, lr=learning_rate, fused=True)
    divergence = Divergence(teacher, student)
    for episode in range(1, episodes + 1):
        recollections = sampler.sample(batch_size).to(trained[0].device)
        if not student.training:
            student.train()
        optimiser.zero_grad()
        divergence(recollections).mean().backward()
        optimiser.step()
        on_episode(episode)
