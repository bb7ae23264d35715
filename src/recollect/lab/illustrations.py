"""The pictures of the docs, from one codec and one memory on a short stream of embedded MNIST: ``make pictures``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from matplotlib import colormaps
from matplotlib.figure import Figure

import recollect as rc
from recollect.lab.data_flow import draw_data_flow
from recollect.lab.demo import draw as draw_recollections
from recollect.lab.table1 import LEARNED_100, PIXELS_100

if TYPE_CHECKING:
    from matplotlib.axes import Axes

IMAGES = Path(__file__).parents[3] / "docs" / "images"
SHAPE = (1, 28, 28)
RAW = rc.RawPixels(SHAPE)
TIMES = (1, 2, 5, 10, 20)  # tasks learned when the memory is looked at


@dataclass(frozen=True)
class Story:
    """A stream, the memory at its end, and all that the memory held after each task."""

    stream: list[rc.streams.Task]
    memory: rc.Memory
    held: list[rc.Batch]

    def original(self, number: int) -> torch.Tensor:
        """The image with this id: ids count the examples of the stream."""
        task, place = divmod(number, len(self.stream[0].train))
        return self.stream[task].train.x[place]


def tell(*, train_examples: int = 400, tasks: int = 20) -> Story:
    """Train the codec of Table 1 on a stream, as replay does but without a model, and look at the memory on the way."""
    stream = rc.streams.mnist_rotations(0, tasks=tasks, train_examples=train_examples, test_examples=1)
    memory = rc.Memory(rc.DiscreteAutoencoder(SHAPE, **LEARNED_100["code"]), capacity=3000, classes=10, tasks=tasks)
    module = rc.RecollectionModule(memory, **LEARNED_100["training"])
    held = []
    for number, task in enumerate(stream):
        for x, y in task.train.batches(10):
            module.rehearse(x, size=10)
            memory.write(x, y, number)
        everything = memory.recollections()
        assert everything is not None
        held.append(everything)
    return Story(stream, memory, held)


def bits_of(codes: torch.Tensor, codec: rc.Codec) -> np.ndarray:
    """The bits of each code, as a memory keeps them."""
    size = rc.bits_per_item(variables=codec.variables, categories=codec.categories)
    return np.unpackbits(rc.pack(codes.numpy(), categories=codec.categories), axis=1)[:, :size]


def draw_code(story: Story) -> Figure:
    """Images, the bits that are kept of them, and what is made of these bits."""
    codec, tasks = story.memory.codec, len(story.stream)
    chosen = ((tasks // 8, 3), (tasks // 2, 0), (tasks - 2, 5))
    x = torch.stack([story.stream[task].train.x[place] for task, place in chosen])
    codes = codec.encode(x)
    bits, recollections = bits_of(codes, codec), codec.decode(codes)
    raw = rc.bits_per_item(variables=RAW.variables, categories=RAW.categories)
    titles = (f"an image\n{raw:,} bits", f"its code\n{bits.shape[1]} bits, all that is kept", "its recollection")
    figure = Figure(figsize=(7, 5.6), layout="constrained")
    axes = figure.subplots(len(x), 5, width_ratios=[3, 1, 3, 1, 3])
    for row, parts in zip(axes, zip(x, bits, recollections, strict=True), strict=True):
        picture(row[0], parts[0])
        row[2].imshow(parts[1].reshape(13, 16), cmap="Blues", vmin=-0.6, vmax=1.6)
        row[2].set_xticks(np.arange(-0.5, 16), minor=True)
        row[2].set_yticks(np.arange(-0.5, 13), minor=True)
        row[2].grid(which="minor", color="white", linewidth=1)
        row[2].tick_params(which="both", length=0, labelbottom=False, labelleft=False)
        picture(row[4], parts[2])
        for axis, word in ((row[1], "encode"), (row[3], "decode")):
            axis.set_axis_off()
            axis.annotate("", (1, 0.5), (0, 0.5), xycoords="axes fraction", arrowprops={"arrowstyle": "->"})
            axis.text(0.5, 0.56, word, ha="center", size=9, transform=axis.transAxes)
    for axis, title in zip(axes[0, ::2], titles, strict=True):
        axis.set_title(title, size=11)
    return figure


def draw_same_storage(story: Story, images: int = 4, columns: int = 32) -> Figure:
    """What fits in the storage of a few images: these images, recollections, or small pixels, of the same examples."""
    held, codec = story.held[-1], story.memory.codec
    order = torch.randperm(len(held), generator=torch.Generator().manual_seed(0))
    originals = torch.stack([story.original(int(number)) for number in held.ids[order[:500]]])
    pixels = rc.ResizedPixels(SHAPE, **PIXELS_100["code"])
    kinds = (
        ("exact images", RAW, originals),
        ("recollections", codec, held.x[order]),
        ("images of 14x14 pixels, black or white", pixels, pixels.decode(pixels.encode(originals))),
    )
    panels = []
    for name, kind, shown in kinds:
        each = rc.bits_per_item(variables=kind.variables, categories=kind.categories)
        count = images * math.prod(SHAPE) * 8 // each
        panels.append((f"{count} {name}: {each:,} bits each, {count * each:,} in all", shown[:count]))
    rows = [-(-len(shown) // columns) for _, shown in panels]
    figure = Figure(figsize=(9, 4), layout="constrained")
    axes = figure.subplots(len(panels), 1, height_ratios=rows)
    for axis, (title, shown) in zip(axes, panels, strict=True):
        picture(axis, mosaic(shown, columns=columns))
        axis.set_frame_on(False)
        axis.set_title(title, size=10, loc="left")
    return figure


def draw_one_memory(story: Story) -> Figure:
    """The same codes, decoded after more and more tasks: what is kept stays, what it is read by goes on learning."""
    times = [time for time in TIMES if time <= len(story.held)]
    chosen = [*lasting(story, 1)[:1], *lasting(story, 1)[-1:], *lasting(story, times[len(times) // 2])[-1:]]
    figure = Figure(figsize=(1.25 * (len(times) + 1), 4.3), layout="constrained")
    axes = figure.subplots(len(chosen), len(times) + 1)
    for row, number in zip(axes, chosen, strict=True):
        picture(row[0], story.original(number))
        task = number // len(story.stream[0].train)
        row[0].set_ylabel(f"written in task {task + 1},\nexample {number:,}", size=8)
        for axis, time in zip(row[1:], times, strict=True):
            held = story.held[time - 1]
            axis.set_axis_off()
            if number in held.ids:
                picture(axis, held.x[held.ids == number][0])
    for axis, title in zip(axes[0], ["original", *(f"after task {time}" for time in times)], strict=True):
        axis.set_title(title, size=9)
    return figure


def lasting(story: Story, tasks: int) -> list[int]:
    """The ids that were held after so many tasks and still are at the end, in order."""
    first, last = story.held[tasks - 1].ids, story.held[-1].ids
    return last[torch.isin(last, first)].sort().values.tolist()


def draw_along_the_stream(story: Story, shown: int = 14) -> Figure:
    """Which tasks the memory holds after each task, and some of its recollections at three times."""
    tasks = len(story.held)
    counts = np.stack([np.bincount(held.task, minlength=tasks) for held in story.held], axis=1)
    figure = Figure(figsize=(8, 5.6), layout="constrained")
    upper, lower = figure.subplots(2, 1, height_ratios=[1.25, 1])
    colours = colormaps["cividis"](np.linspace(0, 1, tasks))
    upper.stackplot(range(1, tasks + 1), counts, colors=colours, edgecolor="white", linewidth=0.4)
    upper.set(xlim=(1, tasks), ylim=(0, story.memory.capacity), xlabel="tasks seen", ylabel="items in the memory")
    upper.set_xticks(range(1, tasks + 1))
    upper.set_title("the memory by the task of its items, the first task lowest", size=10)
    times = [time for time in TIMES if time <= tasks][-3:]
    rows = []
    for time in times:
        held = story.held[time - 1]
        rows.append(held.x[held.ids.argsort()[torch.linspace(0, len(held) - 1, shown).long()]])
    picture(lower, mosaic(torch.cat(rows), columns=shown))
    lower.set_yticks([30 * row + 15 for row in range(len(times))], [f"after task {time}" for time in times], size=9)
    lower.tick_params(length=0)
    lower.set_title("recollections at three times, from the oldest item to the newest", size=10)
    return figure


def picture(axis: Axes, image: torch.Tensor) -> None:
    """A gray image without a scale."""
    axis.imshow(image.squeeze(0).numpy(), cmap="gray", vmin=0, vmax=1)
    axis.set(xticks=[], yticks=[])


def mosaic(images: torch.Tensor, *, columns: int, gap: int = 2) -> torch.Tensor:
    """Images side by side and one below the other, white between them."""
    height, width = images.shape[2:]
    rows = -(-len(images) // columns)
    whole = torch.ones(rows * (height + gap) - gap, columns * (width + gap) - gap)
    for place, image in enumerate(images):
        top, left = (place // columns) * (height + gap), (place % columns) * (width + gap)
        whole[top : top + height, left : left + width] = image[0]
    return whole[None]


def main(folder: Path = IMAGES) -> None:
    """Draw all of them."""
    torch.set_num_threads(1)  # sums are then rounded alike on every machine of a kind
    story = tell()
    for name, draw in DRAWN.items():
        draw(story).savefig(folder / f"{name}.png", dpi=120, pil_kwargs={"optimize": True})
    codec, x = story.memory.codec, story.stream[len(story.stream) // 5].train.x[:6]
    codes = codec.encode(x)
    draw_data_flow(x, codec.decode(codes), bits_of(codes, codec), folder / "data-flow.svg")
    draw_recollections(story.memory, story.stream, folder / "recollections.png")


DRAWN = {
    "code": draw_code,
    "same-storage": draw_same_storage,
    "one-memory": draw_one_memory,
    "along-the-stream": draw_along_the_stream,
}


if __name__ == "__main__":
    main()
