"""Pictures of what is remembered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib.pyplot as plt

if TYPE_CHECKING:
    from pathlib import Path

    import torch


def draw_recollections(originals: torch.Tensor, recollections: torch.Tensor, titles: list[str], path: Path) -> None:
    """Originals in the upper row, what the memory makes of them below, a column each with its title."""
    columns = len(titles)
    figure, axes = plt.subplots(2, columns, figsize=(1.1 * columns, 2.7), squeeze=False, layout="constrained")
    for row, (name, images) in enumerate((("original", originals), ("recollection", recollections))):
        for axis, image in zip(axes[row], images, strict=True):
            axis.imshow(image.permute(1, 2, 0).squeeze(-1).numpy(), cmap="gray", vmin=0, vmax=1)
            axis.set(xticks=[], yticks=[])
        axes[row, 0].set_ylabel(name)
    for axis, title in zip(axes[0], titles, strict=True):
        axis.set_title(title, fontsize=8)
    figure.savefig(path, dpi=150)
    plt.close(figure)
