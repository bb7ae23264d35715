"""A picture of what a memory recollects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from recollect.memory.records import overview

if TYPE_CHECKING:
    from pathlib import Path

    from recollect.memory.memory import Memory

COLUMNS = 10
COLUMN = 1.15  # inches; it is the unit of all that follows
TITLE = 0.35  # height over an image
GAP = 0.05  # to each side of an image
NUMBERS = 2  # of a target, over an image


def draw_memory(memory: Memory, path: Path, *, items: int, task: int | None = None, label: int | None = None) -> int:
    """Draw up to ``items`` recollections, the oldest first, and say how many there are.

    Over each stand its label or its targets, its task and its age: how many examples of the stream came after it.
    """
    batch = overview(memory, items, task=task, label=label)
    images = batch.x.cpu()
    channels, height, width = images.shape[1:]
    if channels not in {1, 3}:  # gray and colour are all that a picture can show
        images = images.mean(1, keepdim=True)
    columns = min(COLUMNS, len(batch))
    row_height = TITLE + 2 * GAP + (1 - 2 * GAP) * height / width
    total_height = -(-len(batch) // columns) * row_height
    figure = Figure(figsize=(COLUMN * columns, COLUMN * total_height))
    axes = figure.add_axes((0, 0, 1, 1))  # one for all, since a thousand take minutes
    axes.set_axis_off()
    numbers = (
        values.tolist()
        for values in (batch.y.flatten(1) if batch.y.ndim > 1 else batch.y, batch.task, memory.seen - 1 - batch.ids)
    )
    for place, (image, y, t, age) in enumerate(zip(images, *numbers, strict=True)):
        row, column = divmod(place, columns)
        left, top, bottom = column + GAP, row * row_height + TITLE + GAP, (row + 1) * row_height - GAP
        extent = (left, left + 1 - 2 * GAP, bottom, top)
        axes.imshow(image.permute(1, 2, 0).squeeze(-1).numpy(), cmap="gray", vmin=0, vmax=1, extent=extent)
        title = f"{_target(y)}task {t}\nage {age:,}"
        axes.text(column + 0.5, top - 0.03, title, size=7, ha="center", va="bottom")
    axes.set(xlim=(0, columns), ylim=(total_height, 0), aspect="auto")
    figure.savefig(path, dpi=150)
    return len(batch)


def _target(y: float | list[float]) -> str:
    """A label, or as many numbers of a target as there is room for.

    >>> _target(3), _target(0.25), _target([0.5, -2.0, 8.0]), _target([])
    ('label 3, ', 'y 0.25, ', 'y 0.5 -2 ..., ', '')
    """
    if isinstance(y, int):
        return f"label {y}, "
    numbers = y if isinstance(y, list) else [y]
    more = " ..." if len(numbers) > NUMBERS else ""
    return f"y {' '.join(f'{number:.3g}' for number in numbers[:NUMBERS])}{more}, " if numbers else ""
