"""A stream of your own images, from arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from recollect.checks import IntegerLike, check_integers
from recollect.streams.division import MOST, Division, Tasks
from recollect.streams.pixels import as_bytes, channels_first
from recollect.streams.task import Examples

if TYPE_CHECKING:
    import numpy.typing as npt

    from recollect.streams.task import Task

CHUNK = 1000  # images that are converted at once, since floats take four times the room or more


def from_arrays(
    images: torch.Tensor | npt.NDArray[Any],
    labels: IntegerLike,
    *,
    tasks: Tasks | None = None,
    test: tuple[torch.Tensor | npt.NDArray[Any], IntegerLike] | None = None,
    test_tasks: IntegerLike | None = None,
    test_share: float = 0.2,
    seed: int = 0,
    shuffle: bool | None = None,
) -> list[Task]:
    """The tasks of images and labels that are at hand. Images are kept at 8 bits a channel.

    Args:
        images: n x C x H x W or n x H x W, of uint8 or of floats in [0, 1]. With 1 or 3 channels n x H x W x C is
            taken, too.
        labels: n whole numbers from 0 on.
        tasks: none, for a stream without boundaries, given as a single task; a number, for the classes in so many
            groups of about the same size; groups of classes, such as ``[[0, 1], [2, 3]]``, of which those in no group
            are left out; or a task number for each example.
        test: images and labels to test on.
        test_tasks: the task of each of them, where ``tasks`` has a number for each example.
        test_share: held out of each class in each task where no ``test`` is given; 0 for nothing to test on.
        seed: draws what is held out, and the order if it is shuffled.
        shuffle: whether the examples of each task come in an order that the seed draws, or as they are given. By
            default they are shuffled where tasks are groups of classes, since most collections are sorted by class, and
            not elsewhere, since a stream has an order of its own.

    >>> images, labels = np.random.rand(100, 16, 16, 3), np.arange(100) % 10
    >>> stream = from_arrays(images, labels, tasks=5)
    >>> [task.name for task in stream][:2], len(stream[0].train), len(stream[0].test)
    (['classes 0, 1', 'classes 2, 3'], 16, 4)
    >>> (task,) = from_arrays(images, labels, test_share=0)
    >>> task.train.images.shape, task.train.images.dtype
    (torch.Size([100, 3, 16, 16]), torch.uint8)
    """
    if test is not None and not (isinstance(test, tuple | list) and len(test) == 2):
        raise TypeError(f"test is {type(test).__name__}: accepted is a pair, images and labels")
    division = Division(tasks=tasks, test_tasks=test_tasks, test_share=test_share, seed=seed, shuffle=shuffle)
    return division.stream(_examples(images, labels), None if test is None else _examples(*test))


def _examples(images: torch.Tensor | npt.NDArray[Any], labels: IntegerLike) -> Examples:
    given = images if isinstance(images, torch.Tensor) else np.asarray(images)
    array = given[:, None] if given.ndim == 3 else given
    if array.ndim != 4 or 0 in array.shape:
        raise ValueError(
            f"images have shape {tuple(given.shape)}: accepted are n x C x H x W and n x H x W, none of them 0"
        )
    count = len(array)
    y = check_integers("labels", labels, count, MOST)
    pixels = np.empty(channels_first(np.broadcast_to(0, array.shape)).shape, np.uint8)
    for start in range(0, count, CHUNK):
        pixels[start : start + CHUNK] = channels_first(as_bytes(array[start : start + CHUNK]))
    return Examples(torch.from_numpy(pixels), torch.from_numpy(y))
