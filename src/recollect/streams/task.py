"""A task of a stream: its training examples in order, and its test examples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch.utils.data import Dataset

from recollect.checks import check_at_least

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, eq=False)
class Examples(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """Images at 8 bits a channel, n x C x H x W, and their labels; a map-style dataset to PyTorch.

    >>> examples = Examples(torch.zeros(25, 1, 28, 28, dtype=torch.uint8), torch.zeros(25, dtype=torch.long))
    >>> [len(x) for x, y in examples.batches(10)]
    [10, 10, 5]
    """

    images: torch.Tensor
    y: torch.Tensor

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, index: int | slice) -> tuple[torch.Tensor, torch.Tensor]:
        return self.images[index].float() / 255, self.y[index]

    @property
    def x(self) -> torch.Tensor:
        """The images as float32 in [0, 1]."""
        return self.images.float() / 255

    def batches(self, size: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Images in [0, 1] and labels, ``size`` at a time, in order; the last batch may be smaller."""
        check_at_least("size", size, 1)
        for start in range(0, len(self), size):
            yield self[start : start + size]


@dataclass(frozen=True, eq=False)
class Task:
    """One task. Its classes are those it may ask for, whether or not its examples have them all."""

    name: str
    train: Examples
    test: Examples
    classes: tuple[int, ...]
