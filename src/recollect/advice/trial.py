"""One trial: a memory on a stream, with replay that is the same for all, measured on examples that were held out."""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from recollect.learners.online import Online
from recollect.learners.replay import Replay
from recollect.models.resnet import ResNet18
from recollect.seeding import derived
from recollect.streams.task import Examples, Task

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from recollect.advice.candidates import Candidate
    from recollect.learners.learner import Learner

HELD_OUT = 0.2  # of the examples of each class in each task
STREAM_BATCH = 10
AT_ONCE = 500  # images that are predicted or decoded together
REPLAY: dict[str, Any] = {"learning_rate": 0.03, "batch_size": 10, "steps": 1}  # as in Table 2, for every memory


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What was measured on the examples that were held out."""

    retention: float  # accuracy after the last task, averaged over tasks, in percent
    distortion: float  # mean absolute error of the codec, as it is at the end; values in [0, 1]
    held_out: int  # examples that were
    seconds: float


def default_model(stream: Sequence[Task], seed: int) -> nn.Module:
    """The ResNet-18 with all its outputs for every task: nobody will say which of them an image is of."""
    classes = range(classes_of(stream))
    channels = stream[0].train.images.shape[1]
    return ResNet18([classes] * len(stream), classes=len(classes), channels=channels, seed=seed)


def classes_of(stream: Sequence[Task]) -> int:
    """Outputs that a model needs: one more than the highest class."""
    return 1 + max(max([*task.classes, int(task.train.y.max())]) for task in stream)


def divided(stream: Sequence[Task], seed: int) -> list[Task]:
    """The stream without a share of its training examples, which take the place of the test examples.

    A share of each class in each task is drawn. What is left stays in order; a class with few examples keeps them all.
    """
    rng = np.random.default_rng(derived(seed, "held out for advice"))
    parts = []
    for task in stream:
        held = torch.zeros(len(task.train), dtype=torch.bool)
        for label in task.train.y.unique():
            own = (task.train.y == label).nonzero()[:, 0]
            held[own[torch.from_numpy(rng.permutation(len(own))[: round(HELD_OUT * len(own))])]] = True
        train, test = (Examples(task.train.images[rows], task.train.y[rows]) for rows in (~held, held))
        parts.append(Task(name=task.name, train=train, test=test, classes=task.classes))
    return parts


def shortened(stream: Sequence[Task], share: float) -> list[Task]:
    """A share of the examples of each task, a batch at least, in order and from all of it: what comes may change."""
    parts = []
    for task in stream:
        examples = len(task.train)
        count = min(examples, max(STREAM_BATCH, round(share * examples)))
        rows = torch.linspace(0, examples - 1, count).round().long()
        train = Examples(task.train.images[rows], task.train.y[rows])
        parts.append(Task(name=task.name, train=train, test=task.test, classes=task.classes))
    return parts


def trial(
    candidate: Candidate,
    stream: Sequence[Task],
    model: nn.Module,
    *,
    replay: dict[str, Any],
    seed: int,
    items: int,
    observed: Callable[[int], object],
) -> Trial:
    """Stream all examples once, in order, then measure. ``observed`` is told of each batch how many it has."""
    started = time.perf_counter()
    module = candidate.build(classes=classes_of(stream), tasks=len(stream), items=items, seed=seed)
    codec = module.memory.codec
    if isinstance(codec, nn.Module):
        codec.to(device_of(model))
    learner = Replay(model, module, **replay)
    learn(learner, stream, observed)
    errors: list[float] = []
    for task in stream:
        for x, _ in task.test.batches(AT_ONCE):
            decoded = codec.decode(codec.encode(x.to(device_of(model)))).cpu()
            errors += (decoded - x).abs().mean((1, 2, 3)).tolist()
    return Trial(
        retention=retention(learner, stream),
        distortion=fmean(errors),
        held_out=len(errors),
        seconds=time.perf_counter() - started,
    )


def trial_without_memory(
    stream: Sequence[Task], model: nn.Module, *, replay: dict[str, Any], observed: Callable[[int], object]
) -> float:
    """The retention of as many steps on the new examples alone."""
    learner = Online(model, learning_rate=replay["learning_rate"])
    learn(learner, stream, observed, steps=replay["steps"])
    return retention(learner, stream)


def learn(learner: Learner, stream: Sequence[Task], observed: Callable[[int], object], steps: int = 1) -> None:
    """Stream all examples once, in order."""
    for number, task in enumerate(stream):
        for x, y in task.train.batches(STREAM_BATCH):
            for _ in range(steps):
                learner.observe(x.to(device_of(learner.model)), y, number)
            observed(len(x))


def retention(learner: Learner, stream: Sequence[Task]) -> float:
    """Accuracy on the test examples, averaged over the tasks that have some, in percent."""
    shares = []
    for number, task in enumerate(stream):
        batches = task.test.batches(AT_ONCE)
        right = [learner.predict(x.to(device_of(learner.model)), number).cpu() == y for x, y in batches]
        if right:
            shares.append(float(torch.cat(right).double().mean()))
    return 100 * fmean(shares)


def device_of(model: nn.Module) -> torch.device:
    """Where a model is."""
    return next(model.parameters()).device
