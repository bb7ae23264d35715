"""A step of GEM with 20 tasks of memories: all gradients at once, against a backward pass for each task in a loop.

In the loop every group is normalised by itself. With ``together`` all groups are normalised as one, which for a model
with batch normalisation is another step, and another way to learn; for any other model it is the same.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F

from benchmarks.harness import Rows, report, seconds
from recollect import GEM, Memory, RawPixels, RecollectionModule
from recollect.learners import gem
from recollect.learners.gradients import Gradients, Matrices, gradients_of_groups
from recollect.models import MLP, ResNet18

TASKS = 20

if TYPE_CHECKING:
    from collections.abc import Callable

    Case = tuple[str, Callable[[], torch.nn.Module], tuple[int, int, int], int, bool]


def resnet() -> ResNet18:
    """For tasks that have all classes."""
    return ResNet18([range(10)] * (TASKS + 1), classes=10)


# A model, the shape of its images, memories of each task, and whether groups go together.
CASES = (
    ("MLP", MLP, (1, 28, 28), 5, False),
    ("MLP", MLP, (1, 28, 28), 10, False),
    ("ResNet-18", resnet, (3, 32, 32), 5, False),
    ("ResNet-18", resnet, (3, 32, 32), 5, True),
)


def loop(model: torch.nn.Module, inputs: list[torch.Tensor], y: torch.Tensor, sizes: list[int]) -> Matrices:
    """What `gradients_of_groups` gives, by a backward pass for each group."""
    parameters = list(model.parameters())
    rows: list[list[torch.Tensor]] = []
    for *given, labels in zip(*(part.split(sizes) for part in (*inputs, y)), strict=True):
        model.zero_grad()
        F.cross_entropy(model(*given), labels).backward()
        rows.append([parameter.grad.flatten() for parameter in parameters if parameter.grad is not None])
    return Matrices([torch.stack(gradients) for gradients in zip(*rows, strict=True)])


def learner_with(model: torch.nn.Module, shape: tuple[int, int, int], memories: int, *, together: bool) -> GEM:
    """A learner that has seen 20 tasks and is about to learn another."""
    memory = Memory(RawPixels(shape), capacity=(TASKS + 1) * memories, admission="ring", classes=10, tasks=TASKS + 1)
    # At this rate the next step is like the first.
    learner = GEM(model, RecollectionModule(memory), learning_rate=1e-3, together=together)
    generator = torch.Generator().manual_seed(0)
    for task in range(TASKS):
        memory.write(torch.rand(memories, *shape, generator=generator), torch.arange(memories) % 10, task)
    shares_of = learner._shares

    def shares_of_a_projection(gradients: Gradients) -> torch.Tensor:
        shares = shares_of(gradients)
        if not shares[1:].any():
            raise RuntimeError("a step was not projected, so that it would be timed in part")
        return shares

    learner._shares = shares_of_a_projection
    return learner


def step(case: Case, *, looping: bool) -> tuple[float, torch.Tensor]:
    """Seconds of a step, in a loop or as it is, and the weights after the first one."""
    _, model, shape, memories, together = case
    # All of one class, which few memories have: to learn it is to lose the others, so that the step is projected.
    x, y = torch.rand(10, *shape, generator=torch.Generator().manual_seed(1)), torch.full((10,), 9)
    gem.gradients_of_groups = loop if looping else gradients_of_groups
    try:
        learner = learner_with(model(), shape, memories, together=together and not looping)
        learner.observe(x, y, TASKS)
        weights = torch.cat([weight.detach().flatten() for weight in learner.model.parameters()])
        learner.learning_rate = 0  # so that every step meets the same gradients, and is projected as the first was
        return seconds(lambda: learner.observe(x, y, TASKS)), weights
    finally:
        gem.gradients_of_groups = gradients_of_groups


def measured() -> Rows:
    rows = []
    for case, threads in itertools.product(CASES, (1, 2)):
        torch.set_num_threads(threads)
        pairs = [(step(case, looping=True), step(case, looping=False)) for _ in range(3)]  # in turns
        together = case[4]
        if not together:
            torch.testing.assert_close(pairs[0][0][1], pairs[0][1][1], rtol=1e-3, atol=1e-6)
        slow, fast = (min(taken for taken, _ in steps) for steps in zip(*pairs, strict=True))
        rows.append(
            {
                "model": case[0],
                "memories_a_task": case[3],
                "together": "yes" if together else "no",
                "threads": threads,
                "loop_milliseconds": 1e3 * slow,
                "our_milliseconds": 1e3 * fast,
                "times_as_fast": slow / fast,
            }
        )
    return rows


if __name__ == "__main__":
    report("gem", measured)
