"""A stream of your own images, from a dataset of PyTorch or of Hugging Face."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch

from recollect.checks import IntegerLike, check_at_least, check_image_shape, check_integers
from recollect.streams.division import MOST, Division
from recollect.streams.pixels import from_anything
from recollect.streams.progress import counted
from recollect.streams.task import Examples

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.streams.division import Tasks
    from recollect.streams.task import Task


class MapStyle(Protocol):
    """What has a length, and an item for each number below it."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Any: ...


def from_dataset(
    dataset: MapStyle,
    *,
    keys: tuple[str, str] = ("image", "label"),
    shape: Sequence[int] | None = None,
    tasks: Tasks | None = None,
    test: MapStyle | None = None,
    test_tasks: IntegerLike | None = None,
    test_share: float = 0.2,
    seed: int = 0,
    shuffle: bool | None = None,
) -> list[Task]:
    """The tasks of a map-style dataset, such as those of torchvision, of Hugging Face, or your own.

    Every item is read once and kept at 8 bits a channel.

    Args:
        dataset: whose items begin with an image and its label, or are dictionaries. Images are pictures of Pillow, or
            tensors or arrays of uint8 or of floats in [0, 1], with their channels first, or last where they are 1 or 3.
        keys: of image and label, where items are dictionaries.
        shape: channels, height and width to scale the images to; by default they must be of one shape already.
        tasks: as in `from_arrays`, like all that follows.
        test: another dataset, to test on.
        test_tasks: the task of each item of ``test``.
        test_share: held out of each class.
        seed: draws what is held out, and the order.
        shuffle: whether the order is drawn.

    >>> dataset = torch.utils.data.TensorDataset(torch.rand(40, 3, 16, 16), torch.arange(40) % 4)
    >>> [task.name for task in from_dataset(dataset, tasks=2)]
    ['classes 0, 1', 'classes 2, 3']
    """
    sizes = None if shape is None else check_image_shape(shape)
    division = Division(tasks=tasks, test_tasks=test_tasks, test_share=test_share, seed=seed, shuffle=shuffle)
    return division.stream(_read(dataset, keys, sizes), None if test is None else _read(test, keys, sizes))


def _read(dataset: MapStyle, keys: tuple[str, str], shape: tuple[int, int, int] | None) -> Examples:
    if not (hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")):
        raise TypeError(f"dataset is {type(dataset).__name__}: accepted is one with a length and items by number")
    count = check_at_least("items of the dataset, of which there", len(dataset), 1)
    pixels, labels = None, []
    for number in counted(range(count), "Reading the dataset"):
        image, label = _pair(dataset[number], keys)
        try:
            own = from_anything(image, shape)
            labels.append(operator.index(label))
        except (TypeError, ValueError, OSError) as error:
            raise ValueError(f"item {number} of the dataset: {error}") from error
        if pixels is None:
            pixels = np.empty((count, *own.shape), np.uint8)
        if own.shape != pixels.shape[1:]:
            raise ValueError(
                f"item {number} of the dataset has shape {own.shape}: accepted is {pixels.shape[1:]}, as item 0 has; "
                f"with shape=... all are scaled"
            )
        pixels[number] = own
    y = check_integers("label", np.array(labels), count, MOST)
    return Examples(torch.from_numpy(pixels), torch.from_numpy(y))


def _pair(item: Any, keys: tuple[str, str]) -> tuple[Any, Any]:
    """Image and label of an item."""
    if isinstance(item, Mapping):
        if missing := [key for key in keys if key not in item]:
            raise ValueError(f"items have no {missing[0]!r}: accepted as keys are two of {', '.join(map(repr, item))}")
        return item[keys[0]], item[keys[1]]
    if not isinstance(item, tuple | list) or len(item) < 2:
        raise TypeError(f"an item is {type(item).__name__}: accepted are pairs of image and label, and dictionaries")
    return item[0], item[1]
