"""What comes out of a memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, eq=False)
class Batch:
    """Recollections: images as the codec decodes them now, with what was stored beside their codes.

    ``y`` are labels, or the numbers of `RealTargets`; of `NoTargets` it is n x 0.
    """

    x: torch.Tensor
    y: torch.Tensor
    task: torch.Tensor
    ids: torch.Tensor

    def __len__(self) -> int:
        return len(self.ids)

    def split(self, size: int | list[int]) -> list[Batch]:
        """Batches of ``size``, or of these sizes, one after the other."""
        if size in (len(self), [len(self)]):
            return [self]
        parts = (tensor.split(size) for tensor in (self.x, self.y, self.task, self.ids))
        return [Batch(*part) for part in zip(*parts, strict=True)]

    def to(self, device: torch.device) -> Batch:
        """The same batch on another device."""
        if self.x.device == self.y.device == device:
            return self
        return Batch(*(tensor.to(device) for tensor in (self.x, self.y, self.task, self.ids)))
