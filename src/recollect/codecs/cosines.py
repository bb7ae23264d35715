"""Photographs as a few waves: the low frequencies of an image, rounded, painted finer by a network that learns."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import torch

from recollect.checks import check_at_least, check_number, check_size
from recollect.codecs.painted import PaintedCodec
from recollect.rebuild import rebuildable

if TYPE_CHECKING:
    from collections.abc import Sequence

# Brightness and two differences of colours, as in television and JPEG: they hardly depend on each other.
COLOURS = ((0.299, 0.587, 0.114), (-0.1687, -0.3313, 0.5), (0.5, -0.4187, -0.0813))
COARSER = 2.0  # the step of the differences of colours, to that of brightness
GREY = 0.5
ZERO = 0.6  # what is below this part of a step is rounded to 0, which takes the fewest bits


@rebuildable
class Cosines(PaintedCodec):
    """A learned codec whose code is the low frequencies of the image's cosine transform, in steps of ``step``.

    Made for photographs. A variable is a frequency of the whole image, of brightness or of a difference of colours.
    Most are 0 in most images, so that a memory with the scheme "entropy" takes few bits for them.

    Args:
        shape: channels, height and width of the images; three channels are red, green and blue.
        size: frequencies that are kept, down and across, (height, width) for all of them. Differences of colours keep
            half as many in each direction.
        step: between two values of a frequency. The transform keeps lengths: an error of a step in one frequency is an
            error of step / sqrt(height width) a pixel. Differences of colours have steps twice as large. Means, which
            are the largest values by far, have larger steps if need be, such that no mean is cut.
        levels: values of a frequency, an odd number up to 255; larger ones are cut.
        filters: of a network that learns to paint what the waves leave out, 32 in our trials; by default there is none,
            and a recollection is the sum of its waves. A painter brings recollections closer to their originals, but
            models kept little or nothing more by it, and it takes room.
        seed: of the initial weights.

    >>> codec = Cosines((3, 32, 32), size=(12, 12), step=1.0)
    >>> codec.variables, codec.categories
    (216, 31)
    >>> codec.decode(codec.encode(torch.rand(5, 3, 32, 32))).shape
    torch.Size([5, 3, 32, 32])
    """

    def __init__(
        self,
        shape: Sequence[int],
        *,
        size: Sequence[int],
        step: float,
        levels: int = 31,
        filters: int = 0,
        seed: int = 0,
    ) -> None:
        super().__init__(shape, filters=filters, seed=seed)
        channels = self.shape[0]
        down, across = self.size = check_size(size, self.shape)
        self.step = check_number("step", step, above=0)
        self.categories = check_at_least("levels", levels, 3)
        if not (levels <= 255 and levels % 2):
            raise ValueError(f"levels={levels}: accepted are odd numbers from 3 to 255")
        self._coloured = channels == len(COLOURS)
        self._half = ((down + 1) // 2, (across + 1) // 2)  # of the differences of colours
        planes = [self.size, self._half, self._half] if self._coloured else [self.size] * channels
        self.variables = sum(map(math.prod, planes))
        coarsest = GREY * math.sqrt(math.prod(self.shape[1:])) / (levels // 2)  # of means: white is the last value
        steps = [
            torch.full(
                (math.prod(plane),), self.step * (COARSER if self._coloured and number else 1), dtype=torch.float32
            )
            for number, plane in enumerate(planes)
        ]
        for part in steps:
            part[0].clamp_(min=coarsest)
        self._steps = torch.cat(steps)

    def _code(self, x: torch.Tensor) -> torch.Tensor:
        down, across = self._waves(x)
        mixed = torch.einsum("oc,nchw->nohw", x.new_tensor(COLOURS), x - GREY) if self._coloured else x - GREY
        kept = down @ mixed @ across.T
        if self._coloured:
            small = kept[:, 1:, : self._half[0], : self._half[1]]
            values = torch.cat([kept[:, 0].flatten(1), small.flatten(1)], 1)
        else:
            values = kept.flatten(1)
        values = values / self._steps.to(x)
        whole = (values.abs() + 1 - ZERO).floor() * values.sign()
        most = self.categories // 2
        return whole.clamp(-most, most).long() + most

    def _coarse(self, codes: torch.Tensor) -> torch.Tensor:
        values = (codes - self.categories // 2) * self._steps.to(codes.device)
        down, across = self._waves(values)
        if not self._coloured:
            return (down.T @ values.reshape(-1, self.shape[0], *self.size) @ across + GREY).clamp_(0, 1)
        large = math.prod(self.size)
        bright = values[:, :large].reshape(-1, 1, *self.size)
        small = values[:, large:].reshape(-1, 2, *self._half)
        differences = down[: self._half[0]].T @ small @ across[: self._half[1]]
        mixed = torch.cat([down.T @ bright @ across, differences], 1)
        back = torch.linalg.inv(values.new_tensor(COLOURS))
        return (torch.einsum("co,nohw->nchw", back, mixed) + GREY).clamp_(0, 1)

    def _waves(self, like: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The frequencies that are kept, down and across. They follow from the arguments, and no file has them."""
        (_, height, width), (down, across) = self.shape, self.size
        return waves(height)[:down].to(like), waves(width)[:across].to(like)


@functools.lru_cache(maxsize=16)
def waves(n: int) -> torch.Tensor:
    """The orthonormal cosine transform of ``n`` values: a frequency a line, the lowest first.

    >>> torch.allclose(waves(5) @ waves(5).T, torch.eye(5), atol=1e-6)
    True
    """
    frequency, place = torch.arange(n, dtype=torch.float64)[:, None], torch.arange(n, dtype=torch.float64) + 0.5
    matrix = torch.cos(math.pi / n * frequency * place) * math.sqrt(2 / n)
    matrix[0] *= math.sqrt(0.5)
    return matrix.float()
