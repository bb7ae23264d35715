"""What codecs with codes of a fixed meaning share: a code is a coarse picture, and painting it finer is learned.

A code that an encoder has learned means what the decoder of that day made of it, and ages as the decoder learns on. A
coarse picture means the same for ever: the painter can only get better at it, for old codes as for new ones.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import nn

from recollect.checks import check_at_least, check_codes, check_image_shape, check_images
from recollect.codecs.weighed import Weighed
from recollect.seeding import initial_weights

if TYPE_CHECKING:
    from collections.abc import Sequence

CELL = 4  # the painter sees squares of 4x4 pixels, and paints them, at one place of its maps each
SURE = 0.98  # what a coarse picture can say at most, so that the painter can say otherwise


class PaintedCodec(Weighed, ABC):
    """A fixed coarse picture and three convolutions that learn what it leaves out.

    Before anything is learned a recollection is the coarse picture.

    Args:
        shape: channels, height and width of the images.
        filters: of the painter's layers; with 0 there is no painter, and nothing to learn.
        seed: of the initial weights.
    """

    variables: int
    categories: int

    def __init__(self, shape: Sequence[int], *, filters: int, seed: int) -> None:
        super().__init__()
        self.shape = check_image_shape(shape)
        channels, height, width = self.shape
        self._beyond = (0, -width % CELL, 0, -height % CELL)  # what is missing to whole cells, right and below
        cell = channels * CELL**2
        self.painter: nn.Sequential | None = None
        if check_at_least("filters", filters, 0):
            with initial_weights(seed, type(self).__name__):
                last = nn.Conv2d(filters, cell, 3, padding=1)
                nn.init.zeros_(last.weight)
                nn.init.zeros_(last.bias)  # pyright: ignore[reportArgumentType]
                self.painter = nn.Sequential(
                    nn.Conv2d(cell, filters, 3, padding=1),
                    nn.SiLU(),
                    nn.Conv2d(filters, filters, 3, padding=1),
                    nn.SiLU(),
                    last,
                )

    @property
    def _device(self) -> torch.device | None:
        """Where it is; nowhere if it has nothing to keep there."""
        return next((tensor.device for tensor in itertools.chain(self.parameters(), self.buffers())), None)

    def encode(self, x: torch.Tensor) -> torch.Tensor:
        """Images in [0, 1] to the codes of their coarse pictures."""
        x = check_images(x, self.shape)
        return self._code(x.to(self._device or x.device))

    @torch.no_grad()
    def decode(self, codes: torch.Tensor) -> torch.Tensor:
        """Codes to painted images in [0, 1]."""
        codes = check_codes(codes, self.variables, self.categories)
        coarse = self._coarse(codes.to(self._device or codes.device))
        return coarse if self.painter is None else self._paint(coarse).sigmoid()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits of the images as they are recollected."""
        return self._paint(self._coarse(self._code(x)))

    def loss(self, x: torch.Tensor) -> torch.Tensor:
        """Binary cross entropy between ``x`` and its recollection."""
        logits = self(x)
        return F.binary_cross_entropy_with_logits(logits, x.to(logits.dtype))

    def _paint(self, coarse: torch.Tensor) -> torch.Tensor:
        height, width = self.shape[1:]
        logits = coarse.clamp(1 - SURE, SURE).logit()
        if self.painter is None or not len(logits):
            return logits
        logits = logits.to(next(self.painter.parameters()).dtype)
        cells = F.pixel_unshuffle(F.pad(logits, self._beyond), CELL)
        return logits + F.pixel_shuffle(self.painter(cells), CELL)[..., :height, :width]

    @abstractmethod
    def _code(self, x: torch.Tensor) -> torch.Tensor:
        """Codes of images that were checked."""

    @abstractmethod
    def _coarse(self, codes: torch.Tensor) -> torch.Tensor:
        """Pictures in [0, 1] of codes that were checked."""
