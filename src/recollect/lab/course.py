"""What is learned from, how much of it, and the model that learns it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import recollect as rc
from recollect.lab.experiment import Profile

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import nn

    from recollect.streams import Task


@dataclass(frozen=True, kw_only=True)
class Course:
    """A stream of tasks with images of one shape, and the model for it.

    Args:
        stream: makes the tasks of a seed.
        shape: channels, height and width of the images.
        classes: labels are 0 to classes - 1.
        tasks: of the whole stream.
        examples: for training, in a task on average.
        model: makes the model for a stream, from a seed.
        step: seconds that a core takes for a training step, about.
        image: seconds that it takes for each image in it.
    """

    stream: Callable[..., list[Task]]
    shape: tuple[int, int, int]
    classes: int
    tasks: int
    examples: int
    model: Callable[[list[Task], int], nn.Module]
    step: float
    image: float

    def prepare(self) -> None:
        """Make sure that the data of its streams is there, of which the least of them reads something of each set."""
        self.stream(0, tasks=1, train_examples=1, test_examples=1)


@dataclass(frozen=True, kw_only=True)
class StreamProfile(Profile):
    """How much of a stream, and in batches of which size."""

    stream_batch: int = 10
    tasks: int = 20
    train_examples: int
    test_examples: int


@lru_cache(maxsize=1)
def stream_of(course: Course, profile: StreamProfile, seed: int, validation: bool) -> list[Task]:
    """The stream of a seed. The last one is kept, since all rows of a seed are run on it."""
    return course.stream(
        seed,
        tasks=profile.tasks,
        train_examples=profile.train_examples,
        test_examples=profile.test_examples,
        validation=validation,
    )


def mlp(stream: list[Task], seed: int) -> nn.Module:
    """The MLP for MNIST, which is not told the task."""
    return rc.models.MLP(seed=seed)


@dataclass(frozen=True)
class ResNet:
    """The ResNet-18, its outputs masked to the classes of each task of the stream.

    A class, for two of them are equal if all else is, in whatever process: so streams are kept by their course.
    """

    classes: int
    channels: int

    def __call__(self, stream: list[Task], seed: int) -> nn.Module:
        """The model for a stream."""
        tasks = [task.classes for task in stream]
        return rc.models.ResNet18(tasks, classes=self.classes, channels=self.channels, seed=seed)


MNIST_ROTATIONS = Course(
    stream=rc.streams.mnist_rotations,
    shape=(1, 28, 28),
    classes=10,
    tasks=20,
    examples=1000,
    model=mlp,
    step=1e-3,
    image=2e-5,
)
CIFAR100 = Course(
    stream=rc.streams.incremental_cifar100,
    shape=(3, 32, 32),
    classes=100,
    tasks=20,
    examples=2500,
    model=ResNet(classes=100, channels=3),
    step=3e-3,
    image=3e-3,
)
OMNIGLOT = Course(
    stream=rc.streams.omniglot,
    shape=(1, 28, 28),
    classes=1623,
    tasks=50,
    examples=584,
    model=ResNet(classes=1623, channels=1),
    step=3e-3,
    image=2.5e-3,
)
