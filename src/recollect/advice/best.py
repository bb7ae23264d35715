"""The best memory for a stream and a budget: `recollect.best_memory`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING

import torch
from torch import nn

from recollect.advice.advice import Advice
from recollect.advice.candidates import candidates
from recollect.advice.contest import Contest
from recollect.advice.trial import REPLAY, classes_of, default_model, divided
from recollect.budget import BudgetError, raw_bits
from recollect.checks import check_at_least
from recollect.streams.task import Task

if TYPE_CHECKING:
    from collections.abc import Callable

FIT = 500  # examples that codecs without learning are fitted to


def best_memory(
    stream_sample: Sequence[Task],
    storage: float,
    *,
    model: Callable[[int], nn.Module] | None = None,
    learning_rate: float = REPLAY["learning_rate"],
    batch_size: int = REPLAY["batch_size"],
    steps: int = REPLAY["steps"],
    seeds: int = 3,
) -> Advice:
    """Try memories on some of your own data, and say which keeps most in a budget.

    Raw pixels, resized pixels of several sizes, JPEG, the paper's autoencoder, and where there is room for their tables
    sketches and cosines are tried, all in the same storage and with the same replay. For each seed a fifth of the
    training examples is held out; the others are streamed once, in order, and the model is then tested on what was held
    out. The test examples of the sample are not looked at. Where a kind has many candidates, a first trial in small
    chooses two of them. A line every five seconds says how far it is.

    Args:
        stream_sample: tasks, as `streams.from_folder` or another stream gives them; a single one for a stream without
            tasks. The advice holds for streams like it: their length counts, too.
        storage: what codes may take, in raw examples at 8 bits a channel. Labels, tasks and ids are not counted, nor is
            the codec: that is the paper's incremental storage. The advice has both bills.
        model: makes the predictive model from a seed; a ResNet-18 by default, on the CPU. Codecs that learn go to where
            it is.
        learning_rate: of `Replay`.
        batch_size: recollections that join the 10 new examples in a step, as in `Replay`.
        steps: on each batch of the stream, as in `Replay`.
        seeds: of the examples held out, the model, the codec and the memory. More make a draw less likely.

    >>> import recollect as rc
    >>> stream = rc.streams.from_arrays(torch.rand(50, 8, 8), torch.arange(50) % 5)
    >>> advice = rc.best_memory(stream, storage=2, model=lambda seed: rc.models.MLP(64, seed=seed), seeds=1)
    >>> advice.chosen.storage <= 2
    True
    >>> memory = advice.build(classes=10).memory
    """
    stream = _checked(stream_sample)
    shape = tuple(stream[0].train.images.shape[1:])
    if isinstance(storage, bool) or not isinstance(storage, Real) or not 0 < storage < math.inf:
        raise ValueError(f"storage={storage!r}: accepted is a positive number of raw examples")
    if isinstance(model, nn.Module) or not (model is None or callable(model)):
        raise TypeError(f"model is {type(model).__name__}: accepted is a function that makes a model from a seed")
    check_at_least("seeds", seeds, 1)
    part = divided(stream, seed=0)  # other seeds hold out others, and as many
    examples, held_out = sum(len(task.train) for task in part), sum(len(task.test) for task in part)
    if not held_out:
        raise ValueError(
            f"stream_sample has {examples} examples, none to be held out: accepted are 3 or more of a class in a task"
        )
    bits = int(storage * raw_bits(shape))
    found = candidates(_some_images(stream), bits, examples)
    if not found:
        raise BudgetError(f"storage={storage} examples are {bits} bits, too little for one item of any memory")
    contest = Contest(
        stream,
        model=partial(default_model, stream) if model is None else model,
        replay={"learning_rate": learning_rate, "batch_size": batch_size, "steps": steps},
        seeds=seeds,
    )
    tried, first, without = contest.results(found)
    return Advice(
        storage=float(storage),
        tried=tuple(sorted(tried, key=lambda each: -each.retention)),
        first=tuple(first),
        without=tuple(without),
        examples=examples,
        held_out=held_out,
        classes=classes_of(stream),
        tasks=len(stream),
    )


def _checked(stream: Sequence[Task]) -> list[Task]:
    """The tasks, after making sure that they are some, with training examples of one shape."""
    if not isinstance(stream, Sequence) or not all(isinstance(task, Task) for task in stream):
        raise TypeError(
            f"stream_sample is {type(stream).__name__}: accepted is a list of tasks, as `recollect.streams` makes them"
        )
    check_at_least("tasks of stream_sample, of which there are", len(stream), 1)
    for task in stream:
        check_at_least(f"training examples of task {task.name!r}, of which there are", len(task.train), 1)
    if len(shapes := {tuple(task.train.images.shape[1:]) for task in stream}) > 1:
        raise ValueError(f"images have the shapes {sorted(shapes)}: accepted is one shape for all tasks")
    return [*stream]


def _some_images(stream: Sequence[Task]) -> torch.Tensor:
    """Images of all tasks, for codecs without learning to be fitted to: their pixels choose a size, no labels do."""
    images = torch.cat([task.train.images for task in stream])
    return images[torch.linspace(0, len(images) - 1, FIT).long().unique()].float() / 255
