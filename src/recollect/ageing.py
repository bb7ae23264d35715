"""Code ageing: how far what a memory holds has come from its originals, which are kept aside only to measure it."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from recollect.checks import as_ids, check_at_least, check_images, check_integers
from recollect.memory.memory import check_memory
from recollect.memory.records import overview

if TYPE_CHECKING:
    from recollect.checks import IntegerLike
    from recollect.memory.batch import Batch
    from recollect.memory.memory import Memory

AT_ONCE = 500  # images that are encoded at once


@dataclass(frozen=True)
class Aged:
    """Mean absolute errors of some items against their originals, values in [0, 1].

    ``held`` is that of the codes in the memory, read by the codec of today; ``fresh`` that of the same images encoded
    anew by it. What they differ by, ``cost``, is what age alone costs.
    """

    items: int
    held: float
    fresh: float

    @property
    def cost(self) -> float:
        """How much less the error would be had the items been written today; below 0 if it would be more."""
        return self.held - self.fresh


class Ageing:
    """Measures the error of what a memory holds by age, for which it keeps the originals of what is held.

    The memory and its random draws stay as they are. The original of an item that gave way to another is dropped with
    the next call, that of an item that was forgotten at once. Originals are no part of the memory: neither its bill nor
    its file has them.

    Args:
        memory: whose items are measured.

    >>> from recollect.codecs.pixels import ResizedPixels
    >>> from recollect.memory.memory import Memory
    >>> memory = Memory(ResizedPixels((1, 8, 8), size=(4, 4), bits=1), capacity=50, tasks=3)
    >>> ageing = Ageing(memory)
    >>> for task in range(3):
    ...     x = torch.rand(30, 1, 8, 8)
    ...     ids = memory.write(x, 0, task)
    ...     ageing.watch(x, ids)
    >>> found = ageing.by_task()
    >>> sum(aged.items for aged in found.values()), found[0].cost  # a codec that does not learn does not age
    (50, 0.0)
    """

    def __init__(self, memory: Memory) -> None:
        self.memory = check_memory(memory)
        self._originals: dict[int, torch.Tensor] = {}
        memory.watchers.add(self)

    def __len__(self) -> int:
        self.refresh()
        return len(self._originals)

    def watch(self, x: torch.Tensor, ids: IntegerLike | None = None) -> None:
        """Take images that were written just now, of which those that are held are kept.

        Args:
            x: the images.
            ids: what `write` gave for them; by default those of the last examples that the memory has seen.
        """
        x, seen = check_images(x, self.memory.codec.shape), self.memory.seen
        if ids is None:
            if len(x) > seen:
                raise ValueError(f"{len(x)} images and no ids: accepted are as many as the memory has seen, {seen}")
            ids = np.arange(seen - len(x), seen)
        numbers = as_ids(ids)
        if len(numbers) != len(x):
            raise ValueError(f"{len(numbers)} ids for {len(x)} images: accepted is one for each")
        numbers = check_integers("ids", numbers, len(x), seen).tolist()
        copies = (image.clone() for image in x.cpu())  # one by one: part of a batch would keep all of it
        self._originals |= zip(numbers, copies, strict=True)
        if len(self._originals) > 2 * max(len(self.memory), len(x)):  # all that is held is looked through
            self.refresh()

    def refresh(self) -> None:
        """Drop the originals of what is not held any more. The memory has this done when it forgets."""
        held = set(self.memory.ids.tolist())
        self._originals = {number: image for number, image in self._originals.items() if number in held}

    def by_age(self, bins: int = 10, *, most: int | None = None) -> dict[range, Aged]:
        """Errors by age, which is how many examples were seen since the item was written; the youngest first.

        Args:
            bins: equal parts of all that was seen; those of which nothing is held are left out.
            most: items that are measured at most, spread evenly over all ages; by default all.
        """
        check_at_least("bins", bins, 1)
        batch, errors = self._measured(most)
        seen = self.memory.seen
        by_bin = _means((seen - 1 - batch.ids) * bins // seen, errors)
        return {range(-(-place * seen // bins), -(-(place + 1) * seen // bins)): aged for place, aged in by_bin.items()}

    def by_task(self, *, most: int | None = None) -> dict[int, Aged]:
        """Errors by the task that items are of, in the order of their numbers.

        Args:
            most: items that are measured at most, spread evenly over all ages; by default all.
        """
        batch, errors = self._measured(most)
        return _means(batch.task, errors)

    @torch.no_grad()
    def _measured(self, most: int | None) -> tuple[Batch, torch.Tensor]:
        """Items, and of each the errors of what is held and of a fresh code, n x 2."""
        most = max(1, len(self.memory)) if most is None else check_at_least("most", most, 1)
        self.refresh()
        if not self._originals:
            raise ValueError("no originals of what the memory holds: accepted is a memory whose images were watched")
        batch = overview(self.memory, most, ids=sorted(self._originals)).to(torch.device("cpu"))
        codec = copy.deepcopy(self.memory.codec)  # a copy, so that what it draws at random changes nothing
        errors = []
        for part in batch.split(AT_ONCE):
            originals = torch.stack([self._originals[number] for number in part.ids.tolist()])
            fresh = codec.decode(codec.encode(originals)).cpu()
            errors.append(torch.stack([_error(part.x, originals), _error(fresh, originals)], dim=1))
        return batch, torch.cat(errors)


def _error(decoded: torch.Tensor, originals: torch.Tensor) -> torch.Tensor:
    """The mean absolute error of each image."""
    return (decoded - originals).abs().flatten(1).double().mean(1)


def _means(keys: torch.Tensor, errors: torch.Tensor) -> dict[int, Aged]:
    """Mean errors of the items of each key, in order."""
    found = {}
    for key in keys.unique().tolist():
        held, fresh = errors[keys == key].mean(0).tolist()
        found[key] = Aged(int((keys == key).sum()), held, fresh)
    return found
