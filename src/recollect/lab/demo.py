"""The demonstration behind ``make demo``: MNIST-Rotations with no memory, 100 real images, and as many bits of others.

The settings were chosen on held-out training images (``results/demo/tuning.json``), those of each row separately.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table

import recollect as rc
from recollect.lab.environment import environment
from recollect.lab.picture import draw_recollections

if TYPE_CHECKING:
    from collections.abc import Callable

SHAPE, CLASSES, TASKS, STREAM_BATCH = (1, 28, 28), 10, 20, 10


@dataclass(frozen=True, kw_only=True)
class Row:
    """A line of the table."""

    name: str
    paper: float | None  # retention in the paper's Table 1, in percent
    learning_rate: float
    batch_size: int = 0  # recollections in a step
    items: int = 0
    code: tuple[int, int] | None = None  # variables and categories of a learned code
    size: tuple[int, int] | None = None  # height and width of pixels at 1 bit; with neither, pixels are raw


ROWS = (
    Row(name="Online, no memory", paper=51.9, learning_rate=0.005),
    Row(name="Replay, real images", paper=63.4, learning_rate=0.2, batch_size=10, items=100),
    Row(name="Replay, small pixels", paper=None, learning_rate=0.4, batch_size=50, items=3000, size=(14, 14)),
    Row(name="Replay, recollections", paper=75.6, learning_rate=0.4, batch_size=25, items=3000, code=(104, 4)),
)


def learner_of(row: Row, seed: int) -> rc.Learner:
    """The learner of a row. The codec learns online, without rehearsal, as in the paper's Table 1."""
    model = rc.models.MLP(seed=seed)
    if row.items == 0:
        return rc.Online(model, learning_rate=row.learning_rate)
    codec: rc.Codec = rc.RawPixels(SHAPE)
    if row.size is not None:
        codec = rc.ResizedPixels(SHAPE, size=row.size, bits=1)
    if row.code is not None:
        codec = rc.DiscreteAutoencoder(SHAPE, *row.code, stochastic=False, normalised=True, seed=seed)
    memory = rc.Memory(codec, capacity=row.items, classes=CLASSES, tasks=TASKS, seed=seed)
    module = rc.RecollectionModule(memory, rehearse="none")
    return rc.Replay(model, module, learning_rate=row.learning_rate, batch_size=row.batch_size)


def train(learner: rc.Learner, stream: list[rc.streams.Task], on_task: Callable[[], None]) -> None:
    """One pass over the stream."""
    for number, task in enumerate(stream):
        for x, y in task.train.batches(STREAM_BATCH):
            learner.observe(x, y, number)
        on_task()


def retention(learner: rc.Learner, stream: list[rc.streams.Task]) -> float:
    """Test accuracy in percent, averaged over all tasks."""
    right = [(learner.predict(task.test.x, t) == task.test.y).float().mean() for t, task in enumerate(stream)]
    return 100 * float(torch.stack(right).mean())


@dataclass(frozen=True, kw_only=True)
class Record:
    """What is recorded of a finished row."""

    name: str
    retention: float
    paper: float | None
    items: int
    bits_per_item: int
    storage_examples: float  # codes alone, in raw examples: the paper's incremental storage
    codec_examples: float
    bits: dict[str, int]  # by kind, as `footprint` bills them
    seconds: float
    settings: Row


def run(row: Row, seed: int, stream: list[rc.streams.Task], on_task: Callable[[], None]) -> tuple[rc.Learner, Record]:
    """Train a row on the stream and test it."""
    started = time.perf_counter()
    learner = learner_of(row, seed)
    train(learner, stream, on_task)
    memory = learner.module.memory if isinstance(learner, rc.Replay) else None
    bill = memory.footprint() if memory is not None else rc.Bill(codes=0, example=1)
    return learner, Record(
        name=row.name,
        retention=retention(learner, stream),
        paper=row.paper,
        items=len(memory) if memory is not None else 0,
        bits_per_item=memory.bits_per_item if memory is not None else 0,
        storage_examples=bill.examples["codes"],
        codec_examples=bill.examples["codec"],
        bits=bill.bits,
        seconds=time.perf_counter() - started,
        settings=row,
    )


def draw(memory: rc.Memory, stream: list[rc.streams.Task], path: Path) -> None:
    """One memory of every second task, beside what it was made from. Ids count the examples of the stream."""
    held = [memory.sample(1, task=task) for task in range(0, len(stream), 2)]
    images = torch.cat([task.train.x for task in stream])
    originals = images[torch.cat([batch.ids for batch in held])]
    recollections = torch.cat([batch.x for batch in held])
    draw_recollections(originals, recollections, [stream[int(batch.task)].name for batch in held], path)


def table_of(records: list[Record]) -> Table:
    """The table for the terminal."""
    table = Table(title="MNIST-Rotations, accuracy on all 20 tasks after the last")
    table.add_column(no_wrap=True)
    for column in ("Storage, images", "Items", "Bits an item", "Retention", "Paper"):
        table.add_column(column, justify="right")
    for r in records:
        cells = (f"{r.storage_examples:.1f}", f"{r.items:,}", f"{r.bits_per_item:,}")
        table.add_row(r.name, *cells, f"[bold]{r.retention:.1f} %[/]", f"{r.paper} %" if r.paper else "-")
    return table


def advance(progress: Progress, bar: TaskID) -> None:
    """Move a bar on by a task of the stream; where there is no terminal for bars, say it in lines."""
    progress.advance(bar)
    row = progress.tasks[bar]
    if not progress.console.is_terminal and row.completed % 5 == 0:
        progress.console.print(f"{row.description}: {row.completed:.0f} of {row.total:.0f} tasks")


def main() -> None:
    """Run the rows, show the table, write the records and the picture."""
    parser = argparse.ArgumentParser(prog="python -m recollect.lab.demo", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="of stream, models, codec and memory (default: 0)")
    parser.add_argument("--out", type=Path, default=Path("recollect-demo"), help="folder for what is written")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)

    started = time.perf_counter()
    console = Console()
    console.print("20 tasks of 1,000 digits, each task turned further than the one before, all seen once.")
    stream = rc.streams.mnist_rotations(seed=arguments.seed)
    columns = (TextColumn("{task.description:21}"), BarColumn(), MofNCompleteColumn(), TextColumn("tasks"))
    records, learner = [], None
    with Progress(*columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal) as progress:
        for row in ROWS:
            bar = progress.add_task(row.name, total=len(stream))
            learner, record = run(row, arguments.seed, stream, partial(advance, progress, bar))
            records.append(record)
    assert isinstance(learner, rc.Replay)
    picture, results = arguments.out / "recollections.png", arguments.out / f"seed{arguments.seed}.json"
    draw(learner.module.memory, stream, picture)
    rows = [asdict(record) for record in records]
    written = {"experiment": "demo", "profile": "quick", "seed": arguments.seed, "rows": rows}
    written |= {"seconds": time.perf_counter() - started, "environment": environment()}
    results.write_text(json.dumps(written, indent=2) + "\n")

    console.print(table_of(records))
    console.print(
        f"Storage is that of the codes, as in the paper; the learned codec takes as much as "
        f"{records[-1].codec_examples:,.0f} images more. It is the paper's with a group norm, SiLU and no sampling "
        f"noise, and learns online, without rehearsal. Small pixels, 14x14 of 1 bit, are a control without learning."
    )
    console.print(f"Originals above their recollections: {picture}\nEvery number: {results}")


if __name__ == "__main__":
    main()
