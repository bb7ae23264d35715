"""A student on its way: distilled with one learning rate, tested after 10, 30, 100 and so on episodes."""

from __future__ import annotations

import itertools
import math
import time
from typing import TYPE_CHECKING, Any

import recollect as rc
from recollect.distillation import ActiveSampling, CodeSampling, DiverseSampling, distil, k_dpp
from recollect.lab.lesson import accuracy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import nn

    from recollect.distillation import Sampler
    from recollect.lab.lesson import Shown

FIRST = 10


def marks(episodes: int) -> list[int]:
    """After how many episodes a student is tested.

    >>> marks(3000)
    [10, 30, 100, 300, 1000, 3000]
    """
    powers = (FIRST * 10**power for power in itertools.count())
    every = itertools.chain.from_iterable((power, 3 * power) for power in powers)
    return [*itertools.takewhile(lambda mark: mark <= episodes, every)]


def around(
    sampling: Sequence[str],
    buffer: Sampler | None,
    codec: Any,
    teacher: nn.Module | None,
    student: nn.Module,
    *,
    seed: int,
) -> Sampler:
    """The samplers by their names, each around the one before."""
    sampler = buffer
    for name in sampling:
        if name == "code":
            sampler = CodeSampling(codec, seed=seed)
            continue
        assert sampler is not None
        match name:
            case "active":
                sampler = ActiveSampling(sampler, teacher, student)
            case "diverse":
                sampler = DiverseSampling(sampler, seed=seed)
            case "diverse (DPP)":
                sampler = DiverseSampling(sampler, select=k_dpp, seed=seed)
            case _:
                raise ValueError(f"sampling={name!r}: accepted are 'code', 'active', 'diverse' and 'diverse (DPP)'")
    assert sampler is not None
    return sampler


def curve(
    teacher: nn.Module | None,
    student: nn.Module,
    sampler: Sampler,
    tests: dict[str, Shown],
    *,
    episodes: int,
    batch_size: int,
    learning_rate: float,
    report: Callable[[int, float], object],
) -> dict[str, Any]:
    """Accuracies on each of ``tests`` at the marks, and seconds of training. An episode is one recollection.

    ``report`` is told the episodes and the accuracy on the last of the tests.
    """
    at = marks(episodes)
    accuracies: dict[str, list[float]] = {name: [] for name in tests}
    seconds, started = 0.0, time.perf_counter()

    def test(step: int) -> None:
        nonlocal seconds, started
        done = step * batch_size
        # A batch may step over a mark; the last step is at the last mark or behind it.
        reached = sum(done - batch_size < mark <= done for mark in at)
        if not reached:
            return
        seconds += time.perf_counter() - started
        for name, shown in tests.items():
            accuracies[name] += [accuracy(student, shown)] * reached
        report(done, [*accuracies.values()][-1][-1])
        started = time.perf_counter()

    steps = -(-at[-1] // batch_size)
    distil(teacher, student, sampler, steps, learning_rate=learning_rate, batch_size=batch_size, on_episode=test)
    return {"episodes": at, "accuracy": accuracies, "seconds": seconds}


STEP = {rc.models.LeNet: 1.3e-3, rc.models.MLP: 6e-4, rc.models.ResNet18: 8e-3}  # seconds of one core, about
IMAGE = {rc.models.LeNet: 1.4e-4, rc.models.MLP: 1e-5, rc.models.ResNet18: 4e-3}  # and for each image in a step
DIVERSE, DIVERSE_DPP, CODE, FORWARD = 6e-4, 2.5e-3, 3e-4, 1 / 3  # for a choice of ten; of the time of training
CANDIDATES = 10


def core_seconds(student: type[nn.Module], sampling: Sequence[str], episodes: int, batch_size: int) -> float:
    """About how many seconds of one core a student takes, without its tests."""
    image = IMAGE[student]
    if "active" in sampling:
        image += CANDIDATES * FORWARD * IMAGE[student]
    for name, choice in (("diverse", DIVERSE), ("diverse (DPP)", DIVERSE_DPP)):
        if name in sampling:
            drawn = batch_size * (CANDIDATES if "active" in sampling else 1)
            image += choice * math.ceil(drawn / CANDIDATES) / batch_size  # whole groups are chosen of
    if "code" in sampling:
        image += CODE
    return episodes * (STEP[student] / batch_size + image)
