"""MNIST-Rotations: the same digits, turned a little further with each task."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F

from recollect.checks import check_at_least
from recollect.data import Digits, mnist
from recollect.streams.task import Examples, Task

DIGITS = tuple(range(10))
HELD_OUT = 10_000  # training images that `validation` keeps for testing


def mnist_rotations(
    seed: int = 0,
    *,
    tasks: int = 20,
    train_examples: int = 1000,
    test_examples: int = 10_000,
    validation: bool = False,
) -> list[Task]:
    """The stream of the paper: each task turns MNIST by an angle of its own, counter-clockwise.

    Angles are drawn one from each of ``tasks`` equal parts of 0 to 180 degrees, so they grow with the tasks. Each task
    has training images of its own draw, in its own order; different tasks may share images. Every task is tested on all
    test images, or the first ``test_examples`` of them, turned by its angle. Rotated pixels are rounded to 8 bits, as
    they are billed.

    With ``validation`` the last 10,000 training images take the place of the test images and are not trained on: for
    choosing settings without a look at the test set.

    >>> stream = mnist_rotations(seed=0, tasks=2)
    >>> [task.name for task in stream]
    ['57.3 degrees', '164.5 degrees']
    >>> stream[1].train.x.shape, stream[1].test.x.shape
    (torch.Size([1000, 1, 28, 28]), torch.Size([10000, 1, 28, 28]))
    """
    check_at_least("tasks", tasks, 1)
    pool, test = mnist("train"), mnist("test")
    if validation:
        pool, test = (Digits(pool.images[part], pool.y[part]) for part in (slice(-HELD_OUT), slice(-HELD_OUT, None)))
    if check_at_least("train_examples", train_examples, 1) > len(pool.y):
        raise ValueError(f"train_examples={train_examples}: accepted are 1 to {len(pool.y)}, as many as there are")
    if check_at_least("test_examples", test_examples, 1) > len(test.y):
        raise ValueError(f"test_examples={test_examples}: accepted are 1 to {len(test.y)}, as many as there are")
    test = Digits(test.images[:test_examples], test.y[:test_examples])
    rng = np.random.default_rng(check_at_least("seed", seed, 0))
    stream = []
    for number in range(tasks):
        angle = 180 * (number + rng.random()) / tasks
        chosen = torch.from_numpy(rng.choice(len(pool.y), train_examples, replace=False))
        stream.append(
            Task(
                name=f"{angle:.1f} degrees",
                train=Examples(rotate(pool.images[chosen], angle), pool.y[chosen]),
                test=Examples(rotate(test.images, angle), test.y.clone()),
                classes=DIGITS,
            )
        )
    return stream


def rotate(images: torch.Tensor, angle: float) -> torch.Tensor:
    """8-bit images turned counter-clockwise by ``angle`` degrees about their centre, by bilinear interpolation."""
    height, width = images.shape[2:]
    cosine, sine = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    # The grid spans -1 to 1 in both directions, so an image that is not square needs its sides' ratio.
    theta = torch.tensor([[cosine, -sine * height / width, 0], [sine * width / height, cosine, 0]])
    grid = F.affine_grid(theta[None], [1, 1, height, width], align_corners=False).expand(len(images), -1, -1, -1)
    return F.grid_sample(images.float(), grid, align_corners=False).round().clamp(0, 255).byte()
