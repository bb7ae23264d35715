"""Omniglot: the characters of one alphabet after the other."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
import torch

from recollect.checks import check_at_least
from recollect.data import omniglot as files
from recollect.seeding import derived
from recollect.streams.task import Examples, Task

if TYPE_CHECKING:
    from recollect.checks import Integers

TASKS = 50
TESTED = 2  # of the 20 images of each character; as many are held out by `validation`


def omniglot(
    seed: int = 0,
    *,
    tasks: int = TASKS,
    train_examples: int = 990,
    test_examples: int = 110,
    validation: bool = False,
) -> list[Task]:
    """The stream of the paper: each of the 50 alphabets is a task, 1,623 characters in all, 28 x 28 pixels, ink bright.

    Of the 20 images of each character 18 are trained on and 2 tested on. Which ones is settled for all seeds, so that
    what is tested on with one seed is never trained on with another. The seed draws the order of the training images
    within each task. A task has ``train_examples`` and ``test_examples`` at most; the largest alphabet, of 55
    characters, has 990 and 110.

    Labels are 0 to 1622, in the order of the tasks; a model with 1623 outputs is masked to the ``classes`` of a task.
    The paper gives no order: alphabets of the background set come first, then those of the evaluation set, by name.

    With ``validation`` 2 of the 18 training images of each character take the place of its test images and are not
    trained on: for choosing settings without a look at the test set.

    With the data at hand::

        stream = omniglot(seed=0)
        model = ResNet18([task.classes for task in stream], classes=1623, channels=1)
    """
    if check_at_least("tasks", tasks, 1) > TASKS:
        raise ValueError(f"tasks={tasks}: accepted are 1 to {TASKS}")
    check_at_least("train_examples", train_examples, 1)
    check_at_least("test_examples", test_examples, 1)
    rng = np.random.default_rng(check_at_least("seed", seed, 0))
    fixed = np.random.default_rng(derived(0, "Omniglot, what is tested on"))
    images, alphabets = files.omniglot()
    groups = [(name, [label for label, _ in group]) for name, group in groupby(enumerate(alphabets), lambda at: at[1])]
    stream = []
    for name, classes in groups[:tasks]:
        drawers = fixed.permuted(np.tile(np.arange(files.DRAWERS), (len(classes), 1)), axis=1)
        tested, drawers = np.split(drawers, [TESTED], axis=1)
        if validation:
            tested, drawers = np.split(drawers, [TESTED], axis=1)
        stream.append(
            Task(
                name=name,
                train=examples(images, classes, drawers, rng.permutation(drawers.size)[:train_examples]),
                test=examples(images, classes, tested, fixed.permutation(tested.size)[:test_examples]),
                classes=tuple(classes),
            )
        )
    return stream


def examples(images: torch.Tensor, classes: list[int], drawers: Integers, order: Integers) -> Examples:
    """What the ``drawers`` in each row drew of each of the ``classes``, counted through and taken in this order."""
    y = np.repeat(classes, drawers.shape[1])[order]
    return Examples(images[y, drawers.ravel()[order], None], torch.from_numpy(y))
