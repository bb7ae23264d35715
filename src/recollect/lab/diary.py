"""What TensorBoard shows of a run while it goes on. TensorBoard is loaded only for a run that keeps a diary."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import torch

    from recollect.lab.job import AnyJob

PIXEL = 12  # of an image to each side, for an entry of a matrix


class Diary:
    """Numbers and images by the step that they belong to: how many tasks are done."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def numbers(self, step: int, values: Mapping[str, float]) -> None:
        """A point on each of the curves that are named."""
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def matrix(self, step: int, name: str, lines: Sequence[Sequence[float]], most: float) -> None:
        """A matrix as an image, from 0, dark, to ``most``, bright."""
        import matplotlib as mpl  # noqa: PLC0415 - it takes its time to load

        colours = mpl.colormaps["viridis"](np.array(lines, dtype=float) / most)[..., :3]
        self._writer.add_image(name, colours.repeat(PIXEL, 0).repeat(PIXEL, 1), step, dataformats="HWC")

    def image(self, step: int, name: str, pixels: torch.Tensor) -> None:
        """An image of 8 bits, C x H x W."""
        self._writer.add_image(name, pixels, step)


@contextmanager
def diary_of(job: AnyJob, first: int) -> Iterator[Diary | None]:
    """The diary of a run that goes on behind ``first`` steps, or None if it keeps none."""
    if job.diary is None:
        yield None
        return
    from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415 - it may not be installed

    # What was written behind the checkpoint that the run goes on from is not shown twice.
    with SummaryWriter(job.diary, purge_step=first + 1) as writer:
        yield Diary(writer)
