"""The same images through several codecs, side by side: what each keeps of them, in how many bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from pathlib import Path

    from recollect.codecs.interface import Codec

COLUMN = 0.9  # inches of an image with the gap beside it
LABEL = 2.4  # inches of the text before a line of images
GAP = 0.06  # around an image, in inches


@dataclass(frozen=True, eq=False)
class Compared:
    """What one codec makes of the images."""

    name: str
    bits: int  # of an item
    distortion: float  # mean absolute error on these images, values in [0, 1]
    images: torch.Tensor

    @property
    def facts(self) -> tuple[str, str, str]:
        """Its name, bits and distortion in words."""
        return self.name, f"{self.bits:,} bits an item", f"distortion {self.distortion:.4f}"


@torch.no_grad()
def compared(name: str, codec: Codec, bits: int, originals: torch.Tensor) -> Compared:
    """Encode and decode the images.

    >>> from recollect.codecs.pixels import RawPixels
    >>> import torch
    >>> compared("raw", RawPixels((1, 28, 28)), 6272, torch.ones(3, 1, 28, 28)).facts
    ('raw', '6,272 bits an item', 'distortion 0.0000')
    """
    images = codec.decode(codec.encode(originals)).cpu()
    return Compared(name, bits, float((images - originals).abs().double().mean()), images)


def draw_comparison(originals: torch.Tensor, found: list[Compared], path: Path) -> None:
    """Originals in the first line, each codec's reconstructions in one of its own, with its bits and distortion."""
    count, channels, height, width = originals.shape
    line = COLUMN * height / width
    size = (LABEL + COLUMN * count, line * (1 + len(found)))
    figure = Figure(figsize=size)
    axes = figure.add_axes((0, 0, 1, 1))  # in inches, from the upper left
    axes.set_axis_off()
    labels = ["original", *("\n".join(each.facts) for each in found)]
    for row, (label, images) in enumerate(zip(labels, [originals, *(each.images for each in found)], strict=True)):
        axes.text(LABEL - 0.1, (row + 0.5) * line, label, size=8, ha="right", va="center")
        shown = images if channels in {1, 3} else images.mean(1, keepdim=True)
        for place, image in enumerate(shown):
            left, top = LABEL + place * COLUMN, row * line
            extent = (left + GAP, left + COLUMN - GAP, top + line - GAP, top + GAP)
            axes.imshow(image.permute(1, 2, 0).squeeze(-1).numpy(), cmap="gray", vmin=0, vmax=1, extent=extent)
    axes.set(xlim=(0, size[0]), ylim=(size[1], 0), aspect="auto")
    figure.savefig(path, dpi=150)
