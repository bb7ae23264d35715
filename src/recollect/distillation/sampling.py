"""Where recollections come from: the codes that a memory holds, or any codes at all (the paper's Question 6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import torch

from recollect.checks import check_at_least
from recollect.codecs.interface import Codec
from recollect.seeding import derived

if TYPE_CHECKING:
    from collections.abc import Callable
    from weakref import ref

    from torch import nn

    from recollect.memory.memory import Memory


@dataclass(frozen=True, eq=False)
class Recollections:
    """Images as a codec decodes them, with the labels and tasks stored beside their codes, if these were stored.

    ``logits`` are what ``teacher`` says of them, where it was asked before.
    """

    x: torch.Tensor
    y: torch.Tensor | None = None
    task: torch.Tensor | None = None
    logits: torch.Tensor | None = None
    teacher: ref[nn.Module] | None = None  # weak, so that a copy has the same one

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, rows: torch.Tensor) -> Recollections:
        return self._each(lambda part: part[rows.to(part.device)])

    def to(self, device: torch.device) -> Recollections:
        """The same recollections on another device."""
        return self._each(lambda part: part.to(device))

    def _each(self, change: Callable[[torch.Tensor], torch.Tensor]) -> Recollections:
        others = (None if part is None else change(part) for part in (self.y, self.task, self.logits))
        return Recollections(change(self.x), *others, teacher=self.teacher)


class Sampler(Protocol):
    """Draws what a student learns from. Samplers that choose are put around samplers that draw."""

    def sample(self, size: int) -> Recollections:
        """``size`` recollections."""
        ...


class BufferSampling:
    """Recollections of what a memory holds, drawn evenly and with replacement: the paper's buffer sampling.

    With the codec `RawPixels` in the memory these are real examples.

    >>> import recollect as rc
    >>> memory = rc.Memory(rc.ResizedPixels((1, 28, 28), size=(10, 10), bits=1), capacity=50)
    >>> ids = memory.write(torch.rand(50, 1, 28, 28), y=3)
    >>> BufferSampling(memory).sample(7).x.shape
    torch.Size([7, 1, 28, 28])
    """

    def __init__(self, memory: Memory) -> None:
        self.memory = memory

    def sample(self, size: int) -> Recollections:
        """``size`` recollections, with their tasks and, if the memory keeps classes, their labels."""
        batch = self.memory.sample(size)
        return Recollections(batch.x, batch.y if self.memory.classes else None, batch.task)


class CodeSampling:
    """Images decoded from codes that were never stored, each variable drawn evenly: the paper's code sampling.

    It needs no memory, and so knows no labels and no tasks. `JPEG` and `ContinuousAutoencoder` are refused, as
    is a codec of your own with ``codes_are_bytes``: of such codes most mean nothing.

    >>> import recollect as rc
    >>> CodeSampling(rc.DiscreteAutoencoder((1, 28, 28), 38, 2)).sample(7).x.shape
    torch.Size([7, 1, 28, 28])
    """

    def __init__(self, codec: Codec, *, seed: int = 0) -> None:
        if not isinstance(codec, Codec) or getattr(codec, "codes_are_bytes", False):
            raise TypeError(f"codec is {type(codec).__name__}: accepted is a codec that can decode any code")
        self.codec = codec
        self._generator = torch.Generator().manual_seed(derived(seed, "CodeSampling"))

    def sample(self, size: int) -> Recollections:
        """``size`` images."""
        shape = (check_at_least("size", size, 1), self.codec.variables)
        return Recollections(self.codec.decode(torch.randint(self.codec.categories, shape, generator=self._generator)))
