"""One run: a row with a seed, trained on its stream, measured after every task."""

from __future__ import annotations

import copy
import time
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean
from typing import TYPE_CHECKING, Any

import torch

import recollect as rc
from recollect.lab.environment import environment
from recollect.lab.metrics import backward_transfer, forward_transfer

if TYPE_CHECKING:
    from collections.abc import Callable

    from recollect.lab.experiment import Experiment, Profile, Row

DISTORTION_EXAMPLES = 100  # that the codec's distortion is measured on, after every task


@dataclass(frozen=True, kw_only=True)
class Run:
    """What is recorded of a finished run. Accuracies are in percent."""

    experiment: str
    profile: str
    row: str
    seed: int
    validation: bool
    amounts: dict[str, int]  # of the profile
    settings: dict[str, Any]
    retention: float  # accuracy on all test examples of all tasks after the last
    accuracy: list[list[float]]  # after each task (lines), on each task (columns); one line for a learner at the end
    untrained: list[float]  # accuracy before the first task
    backward_transfer: float | None
    forward_transfer: float | None
    distortion: dict[str, list[float]]  # mean absolute error of the codec on "new" and on "held", after each task
    items: int
    bits_per_item: int
    storage_examples: float  # codes, or parameters kept: the paper's incremental storage in raw examples
    bits: dict[str, int]  # by kind, as the learner's footprint bills them
    seconds: float  # of training
    evaluation_seconds: float
    examples_per_second: float
    environment: dict[str, Any]


def execute(
    experiment: Experiment,
    profile: Profile,
    row: Row,
    seed: int,
    *,
    device: torch.device,
    validation: bool = False,
    on_task: Callable[[int, float], None] = lambda number, kept: None,
) -> tuple[rc.Learner, Run]:
    """Train and measure. ``on_task`` is told after each task its number and the accuracy on the tasks so far."""
    stream = stream_of(experiment.stream, profile, seed, validation)
    learner = row.build(seed, device)
    memory = learner.memory
    offline = isinstance(learner, rc.Offline)
    started = time.perf_counter()
    untrained = accuracies(learner, stream, profile.matrix_examples, device)
    accuracy, distortion, training = [], {"new": [], "held": []}, 0.0
    for number, task in enumerate(stream):
        last = number == len(stream) - 1
        began = time.perf_counter()
        for x, y in task.train.batches(profile.stream_batch):
            learner.observe(x.to(device), y, number)
        if last:
            learner.finish()
        training += time.perf_counter() - began
        if last or not offline:
            accuracy.append(accuracies(learner, stream, profile.matrix_examples, device))
        if memory is not None:
            for kind, error in distortions(memory, stream, number).items():
                distortion[kind].append(error)
        on_task(number, fmean(accuracy[-1][: number + 1]) if accuracy else 0.0)
    retention = fmean(accuracies(learner, stream, profile.test_examples, device))
    bill = learner.footprint()
    return learner, Run(
        experiment=experiment.name,
        profile=profile.name,
        row=row.name,
        seed=seed,
        validation=validation,
        amounts=profile.amounts,
        settings=row.described,
        retention=retention,
        accuracy=accuracy,
        untrained=untrained,
        backward_transfer=None if offline else backward_transfer(accuracy),
        forward_transfer=None if offline else forward_transfer(accuracy, untrained),
        distortion=distortion,
        items=len(memory) if memory is not None else row.items,
        bits_per_item=memory.bits_per_item if memory is not None else 0,
        storage_examples=bill.examples["codes"] + bill.examples["parameters"],
        bits=bill.bits,
        seconds=training,
        evaluation_seconds=time.perf_counter() - started - training,
        examples_per_second=sum(len(task.train) for task in stream) / training,
        environment=environment() | {"device": str(device)},
    )


def accuracies(learner: rc.Learner, stream: list[rc.streams.Task], examples: int, device: torch.device) -> list[float]:
    """Test accuracy on each task, in percent."""
    scores = []
    for number, task in enumerate(stream):
        x, y = task.test[:examples]
        right = learner.predict(x.to(device), number).cpu() == y
        scores.append(100 * float(right.double().mean()))
    return scores


def distortions(memory: rc.Memory, stream: list[rc.streams.Task], number: int) -> dict[str, float]:
    """The mean absolute error of the codec on examples of this task that it has not seen, and on what is held.

    A copy is asked, so that what it draws at random changes nothing. Ids count the examples of the stream.
    """
    memory = copy.deepcopy(memory)
    new = stream[number].test[:DISTORTION_EXAMPLES][0]
    decoded = memory.codec.decode(memory.codec.encode(new)).cpu()
    batch = memory.sample(DISTORTION_EXAMPLES).to(torch.device("cpu"))
    originals = torch.cat([task.train.images for task in stream[: number + 1]])[batch.ids].float() / 255
    return {"new": float((decoded - new).abs().mean()), "held": float((batch.x - originals).abs().mean())}


@lru_cache(maxsize=1)
def stream_of(
    make: Callable[..., list[rc.streams.Task]], profile: Profile, seed: int, validation: bool
) -> list[rc.streams.Task]:
    """The stream of a seed. The last one is kept, since all rows of a seed are run on it."""
    return make(
        seed,
        tasks=profile.tasks,
        train_examples=profile.train_examples,
        test_examples=profile.test_examples,
        validation=validation,
    )
