"""The demonstration behind ``make demo``: Table 1 in the profile quick, and a picture of what is remembered."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

import torch
from rich.console import Console

import recollect as rc
from recollect.lab import results
from recollect.lab.course import stream_of
from recollect.lab.job import Job
from recollect.lab.picture import draw_recollections
from recollect.lab.progress import Board
from recollect.lab.run import execute
from recollect.lab.show import table
from recollect.lab.table1 import EXPERIMENT

PROFILE = EXPERIMENT.profiles["quick"]


def draw(memory: rc.Memory, stream: list[rc.streams.Task], path: Path) -> None:
    """One memory of every second task, beside what it was made from. Ids count the examples of the stream."""
    held = [memory.sample(1, task=task) for task in range(0, len(stream), 2)]
    images = torch.cat([task.train.x for task in stream])
    originals = images[torch.cat([batch.ids for batch in held])]
    recollections = torch.cat([batch.x for batch in held])
    draw_recollections(originals, recollections, [stream[int(batch.task)].name for batch in held], path)


def main() -> None:
    """Run the rows, show the table, write the runs and the picture."""
    parser = argparse.ArgumentParser(prog="python -m recollect.lab.demo", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="of stream, models, codec and memory (default: 0)")
    parser.add_argument("--out", type=Path, default=Path("recollect-demo"), help="folder for what is written")
    arguments = parser.parse_args()

    console = Console()
    digits = f"{PROFILE.tasks} tasks of {PROFILE.train_examples} digits"
    console.print(f"{digits}, each task turned further than the one before, all seen once.")
    rows = EXPERIMENT.chosen(PROFILE)
    jobs = [
        Job(number=number, experiment=EXPERIMENT, profile=PROFILE, row=row, seed=arguments.seed)
        for number, row in enumerate(rows)
    ]
    found, memory = [], None
    with Board(console, jobs) as board:
        for job, row in zip(jobs, rows, strict=True):
            board.started(job)
            learner, run = execute(EXPERIMENT.course, job, partial(board.advanced, job))
            results.write(arguments.out, run)
            board.finished(job, run.headline, run.seconds)
            found.append(results.Summary(row, [run]))
            if row.codec is rc.DiscreteAutoencoder:
                memory = learner.memory
    assert memory is not None
    picture = arguments.out / "recollections.png"
    draw(memory, stream_of(EXPERIMENT.course, PROFILE, arguments.seed, validation=False), picture)

    console.print(table(EXPERIMENT, PROFILE, found))
    for note in EXPERIMENT.notes:
        console.print(note, highlight=False)
    console.print(f"Originals above their recollections: {picture}\nEvery number: {arguments.out / EXPERIMENT.name}")


if __name__ == "__main__":
    main()
