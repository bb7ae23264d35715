"""Photographs as a few waves: the low frequencies of an image, rounded, painted finer by a network that learns."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from recollect.checks import check_at_least
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
            error of step / sqrt(height width) a pixel.
        levels: values of a frequency, an odd number up to 255; larger ones are cut.
        filters: of the network that paints; with 0 a recollection is the sum of its waves.
        seed: of the initial weights.

    >>> codec = Cosines((3, 32, 32), size=(12, 12), step=1.0)
    >>> codec.variables, codec.categories
    (216, 31)
    >>> codec.decode(codec.encode(torch.rand(5, 3, 32, 32))).shape
    torch.Size([5, 3, 32, 32])
    """

    _kept: torch.Tensor
    _steps: torch.Tensor
    _colours: torch.Tensor
    _back: torch.Tensor
    _down: torch.Tensor
    _across: torch.Tensor

    def __init__(
        self,
        shape: Sequence[int],
        *,
        size: Sequence[int],
        step: float,
        levels: int = 31,
        filters: int = 32,
        seed: int = 0,
    ) -> None:
        super().__init__(shape, filters=filters, seed=seed)
        channels, height, width = self.shape
        if len(size) != 2 or not (1 <= size[0] <= height and 1 <= size[1] <= width):
            raise ValueError(f"size={tuple(size)}: accepted are height and width from (1, 1) to ({height}, {width})")
        down, across = (check_at_least("size", side, 1) for side in size)
        if not 0 < step < math.inf:
            raise ValueError(f"step={step}: accepted is a number above 0")
        if not (3 <= levels <= 255 and levels % 2):
            raise ValueError(f"levels={levels}: accepted are odd numbers from 3 to 255")
        self.categories = levels
        coloured = channels == len(COLOURS)
        kept = torch.ones(channels, down, across, dtype=torch.bool)
        steps = torch.full((channels, 1, 1), float(step))
        if coloured:
            kept[1:, (down + 1) // 2 :] = kept[1:, :, (across + 1) // 2 :] = False
            steps[1:] *= COARSER
        colours = torch.tensor(COLOURS) if coloured else torch.eye(channels)
        # They follow from the arguments, and weigh nothing in a file.
        self.register_buffer("_kept", kept, persistent=False)
        self.register_buffer("_steps", steps, persistent=False)
        self.register_buffer("_colours", colours, persistent=False)
        self.register_buffer("_back", torch.linalg.inv(colours), persistent=False)
        self.register_buffer("_down", waves(height)[:down], persistent=False)
        self.register_buffer("_across", waves(width)[:across], persistent=False)
        self.variables = int(kept.sum())

    def _code(self, x: torch.Tensor) -> torch.Tensor:
        mixed = torch.einsum("oc,nchw->nohw", self._colours, x - GREY)
        values = (self._down @ mixed @ self._across.T / self._steps)[:, self._kept]
        whole = (values.abs() + 1 - ZERO).floor() * values.sign()
        most = self.categories // 2
        return whole.clamp(-most, most).long() + most

    def _coarse(self, codes: torch.Tensor) -> torch.Tensor:
        values = self._steps.new_zeros(len(codes), *self._kept.shape)
        values[:, self._kept] = (codes - self.categories // 2).to(values)
        mixed = self._down.T @ (values * self._steps) @ self._across
        return (torch.einsum("co,nohw->nchw", self._back, mixed) + GREY).clamp_(0, 1)


def waves(n: int) -> torch.Tensor:
    """The orthonormal cosine transform of ``n`` values: a frequency a line, the lowest first.

    >>> torch.allclose(waves(5) @ waves(5).T, torch.eye(5), atol=1e-6)
    True
    """
    frequency, place = torch.arange(n, dtype=torch.float64)[:, None], torch.arange(n, dtype=torch.float64) + 0.5
    matrix = torch.cos(math.pi / n * frequency * place) * math.sqrt(2 / n)
    matrix[0] *= math.sqrt(0.5)
    return matrix.float()
