"""Incremental CIFAR-100, and CIFAR-10 for what comes before or after it."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch

from recollect.checks import check_at_least
from recollect.data import cifar
from recollect.streams.task import Examples, Task

TASKS, CLASSES = 20, 5  # classes of each task
HELD_OUT = 10  # one of so many training images of each class is what `validation` keeps for testing


def incremental_cifar100(
    seed: int = 0,
    *,
    split: Literal["coarse", "fine"] = "coarse",
    tasks: int = TASKS,
    train_examples: int = 2500,
    test_examples: int = 500,
    validation: bool = False,
) -> list[Task]:
    """The stream of the paper: each of the 20 coarse labels of CIFAR-100 is a task, of 5 classes with 500 images each.

    Labels are the fine ones, 0 to 99; a model with 100 outputs is masked to the ``classes`` of a task. Tasks come in
    the order of their labels, whatever the seed: the paper gives no order, and this is that of GEM's code. The seed
    draws the order of the training images within each task. A task has ``train_examples`` and ``test_examples`` at
    most.

    With ``split="fine"`` the tasks are the fine labels five at a time, 0 to 4, 5 to 9 and so on, as in GEM's code. With
    ``validation`` a tenth of the training images of each class takes the place of the test images and is not trained
    on: for choosing settings without a look at the test set.

    With the data at hand::

        stream = incremental_cifar100(seed=0)
        model = ResNet18([task.classes for task in stream], classes=100)
    """
    if split not in ("coarse", "fine"):
        raise ValueError(f"split={split!r}: accepted are 'coarse', 'fine'")
    if check_at_least("tasks", tasks, 1) > TASKS:
        raise ValueError(f"tasks={tasks}: accepted are 1 to {TASKS}")
    draw = Draw(seed, train_examples, test_examples)
    data = cifar.cifar100()
    train, test = pools(data, validation)
    coarse, fine = data.train.labels.T
    coarse_names, fine_names = data.names
    stream = []
    for number in range(tasks):
        if split == "coarse":
            classes, name = fine[coarse == number].unique(), coarse_names[number]
        else:
            classes = torch.arange(CLASSES * number, CLASSES * (number + 1))
            name = ", ".join(fine_names[label] for label in classes)
        stream.append(draw.task(name, classes, train, test))
    return stream


def cifar10(
    seed: int = 0, *, train_examples: int = 50_000, test_examples: int = 10_000, validation: bool = False
) -> Task:
    """CIFAR-10 as a single task, labels 0 to 9: to start a codec from, or to go on with after CIFAR-100.

    The seed draws the order of the training images; for another pass take another seed. Amounts and ``validation`` are
    those of `incremental_cifar100`.
    """
    draw = Draw(seed, train_examples, test_examples)
    return draw.task("CIFAR-10", torch.arange(10), *pools(cifar.cifar10(), validation))


def pools(data: cifar.Cifar, validation: bool) -> tuple[Examples, Examples]:
    """What is trained on and what is tested on, with the fine labels where there are two."""
    train, test = (Examples(part.images, part.labels[:, -1]) for part in (data.train, data.test))
    if not validation:
        return train, test
    held = torch.zeros(len(train), dtype=torch.bool)
    for label in train.y.unique():
        rows = (train.y == label).nonzero()
        held[rows[: len(rows) // HELD_OUT]] = True
    return Examples(train.images[~held], train.y[~held]), Examples(train.images[held], train.y[held])


class Draw:
    """Tasks, one after the other, whose training images come in an order that the seed fixes."""

    def __init__(self, seed: int, train_examples: int, test_examples: int) -> None:
        self.rng = np.random.default_rng(check_at_least("seed", seed, 0))
        self.train_examples = check_at_least("train_examples", train_examples, 1)
        self.test_examples = check_at_least("test_examples", test_examples, 1)

    def task(self, name: str, classes: torch.Tensor, train: Examples, test: Examples) -> Task:
        """The next task, with the examples of these classes."""
        trained, tested = (torch.isin(pool.y, classes).nonzero().flatten() for pool in (train, test))
        trained = trained[torch.from_numpy(self.rng.permutation(len(trained)))][: self.train_examples]
        tested = tested[: self.test_examples]
        return Task(
            name=name,
            train=Examples(train.images[trained], train.y[trained]),
            test=Examples(test.images[tested], test.y[tested]),
            classes=tuple(classes.tolist()),
        )
