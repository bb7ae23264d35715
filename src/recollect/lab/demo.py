"""The demonstration behind ``make demo``: MNIST-Rotations with no memory, 100 real images, and recollections.

The settings were chosen on held-out training images (``results/demo/tuning.json``), those of each row separately.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
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
    paper: float  # retention in the paper's Table 1, in percent
    learning_rate: float
    batch_size: int = 0  # recollections in a step
    items: int = 0
    code: tuple[int, int] | None = None  # variables and categories of a learned code; None is raw pixels


ROWS = (
    Row(name="Online, no memory", paper=51.9, learning_rate=0.02),
    Row(name="Replay, real images", paper=63.4, learning_rate=0.1, batch_size=50, items=100),
    Row(name="Replay, recollections", paper=75.6, learning_rate=0.1, batch_size=50, items=3000, code=(104, 4)),
)


def learner_of(row: Row, seed: int) -> rc.Learner:
    """The learner of a row. The codec learns online, without rehearsal, as in the paper's Table 1."""
    model = rc.models.MLP(seed=seed)
    if row.items == 0:
        return rc.Online(model, learning_rate=row.learning_rate)
    codec = rc.RawPixels(SHAPE)
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


def record_of(row: Row, learner: rc.Learner, score: float, seconds: float) -> dict[str, object]:
    """What is recorded of a finished row."""
    record: dict[str, object] = {"name": row.name, "paper": row.paper, "retention": score, "seconds": seconds}
    record |= {"items": row.items, "storage_examples": 0.0, "bits_per_item": 0, "settings": asdict(row)}
    if isinstance(learner, rc.Replay):
        memory, bill = learner.module.memory, learner.module.memory.footprint()
        record |= {"items": len(memory), "storage_examples": bill.examples["codes"]}
        record |= {"bits_per_item": memory.bits_per_item, "bits": bill.bits, "codec_examples": bill.examples["codec"]}
    return record


def draw(memory: rc.Memory, stream: list[rc.streams.Task], path: Path) -> None:
    """One memory of every second task, beside what it was made from. Ids count the examples of the stream."""
    held = [memory.sample(1, task=task) for task in range(0, len(stream), 2)]
    images = torch.cat([task.train.x for task in stream])
    originals = images[torch.cat([batch.ids for batch in held])]
    recollections = torch.cat([batch.x for batch in held])
    draw_recollections(originals, recollections, [stream[int(batch.task)].name for batch in held], path)


def table_of(records: list[dict[str, object]]) -> Table:
    """The table for the terminal."""
    table = Table("Memory", title="MNIST-Rotations: accuracy on all 20 tasks after the last")
    for column in ("Storage, images", "Items", "Bits an item", "Retention %", "Paper %"):
        table.add_column(column, justify="right")
    for r in records:
        cells = (f"{r['storage_examples']:.1f}", f"{r['items']:,}", f"{r['bits_per_item']:,}")
        table.add_row(str(r["name"]), *cells, f"[bold]{r['retention']:.1f}[/]", f"{r['paper']}")
    return table


def main() -> None:
    """Run the rows, show the table, write the records and the picture."""
    parser = argparse.ArgumentParser(prog="python -m recollect.lab.demo", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="of stream, models, codec and memory (default 0)")
    parser.add_argument("--out", type=Path, default=Path("recollect-demo"), help="folder to write to")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)

    console = Console()
    console.print("MNIST-Rotations: 20 tasks of 1,000 digits, each turned further, seen once and never again.")
    stream = rc.streams.mnist_rotations(seed=arguments.seed)
    records, learner = [], None
    columns = (TextColumn("{task.description:22}"), BarColumn(), MofNCompleteColumn(), TextColumn("tasks"))
    with Progress(*columns, TimeRemainingColumn(), console=console) as progress:
        bars = [progress.add_task(row.name, total=len(stream)) for row in ROWS]
        for row, bar in zip(ROWS, bars, strict=True):
            started = time.perf_counter()

            def on_task(bar=bar, row=row) -> None:
                progress.advance(bar)
                if not console.is_terminal:
                    console.print(f"{row.name}: {progress.tasks[bar].completed:.0f} of {len(stream)} tasks")

            learner = learner_of(row, arguments.seed)
            train(learner, stream, on_task)
            records.append(record_of(row, learner, retention(learner, stream), time.perf_counter() - started))
    assert isinstance(learner, rc.Replay)
    picture, results = arguments.out / "recollections.png", arguments.out / f"seed{arguments.seed}.json"
    draw(learner.module.memory, stream, picture)
    run = {"experiment": "demo", "profile": "quick", "seed": arguments.seed, "rows": records}
    results.write_text(json.dumps(run | {"environment": environment()}, indent=2) + "\n")

    console.print(table_of(records))
    console.print(
        f"Storage counts codes, as the paper does. The codec of the last row takes as much as "
        f"{records[-1]['codec_examples']:,.0f} images more;\nit is the paper's with a group norm, SiLU and no sampling "
        f"noise, which learns faster in a single pass."
    )
    console.print(f"Originals and recollections: {picture}\nEvery number: {results}")


if __name__ == "__main__":
    main()
