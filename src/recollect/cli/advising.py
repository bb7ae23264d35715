"""Which memory for a stream and a budget: `recollect advise`."""

from __future__ import annotations

import json
import math
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

import recollect as rc
from recollect.cli.common import AsJson, app, folder_of, say, sizes
from recollect.lab.course import CIFAR100, MNIST_ROTATIONS, OMNIGLOT, Course
from recollect.lab.own import MOST_TASKS
from recollect.lab.table1 import SAME_BATCH, SAME_STEPS
from recollect.streams.task import Examples, Task

if TYPE_CHECKING:
    from pathlib import Path

# Streams of the lab with their models, and the settings of replay where these are other than by default.
STREAMS: dict[str, tuple[Course, dict[str, Any]]] = {
    "mnist_rotations": (MNIST_ROTATIONS, {"learning_rate": 0.2, "batch_size": SAME_BATCH, "steps": SAME_STEPS}),
    "incremental_cifar100": (CIFAR100, {}),
    "omniglot": (OMNIGLOT, {}),
}


@app.command()
def advise(
    *,
    stream: Annotated[
        str,
        typer.Option(help=f"folder:PATH, your own images in a folder for each class, or one of {', '.join(STREAMS)}"),
    ],
    storage: Annotated[float, typer.Option(help="what codes may take, in raw images; the codec is not counted")],
    shape: Annotated[str | None, typer.Option(help="with folder:PATH: what images are scaled to (3x32x32)")] = None,
    tasks: Annotated[int | None, typer.Option(min=1, help="groups that classes come in (5), or tasks (all)")] = None,
    examples: Annotated[int, typer.Option(min=1, help="images of the sample at most, of all tasks alike")] = 2000,
    seeds: Annotated[int, typer.Option(min=1, help="how many seeds, from 0")] = 3,
    as_json_object: AsJson = False,
) -> None:
    """Try memories on a sample of a stream, and say which keeps most in a budget, and what it costs.

    A fifth of the sample is held out to measure on. Images of a folder are learned by a ResNet-18 that is not told the
    task, those of other streams by their model of the lab.
    """
    try:
        folder = folder_of(stream)
        if folder is not None:
            sample = _of_folder(folder, sizes(shape or "3x32x32"), tasks, examples)
            advice = rc.best_memory(sample, storage, seeds=seeds)
        elif stream in STREAMS and shape is None:
            course, replay = STREAMS[stream]
            tasks = tasks or course.tasks
            each = min(math.ceil(examples / tasks), course.examples)
            sample = course.stream(0, tasks=tasks, train_examples=each, test_examples=1)
            advice = rc.best_memory(sample, storage, model=partial(course.model, sample), seeds=seeds, **replay)
        else:
            raise ValueError(f"--stream {stream}: accepted are folder:PATH, and without --shape {', '.join(STREAMS)}")
    except (MemoryError, OSError, ValueError) as error:
        raise typer.BadParameter(str(error)) from None
    if as_json_object:
        print(json.dumps(advice.as_json()))
    else:
        say(str(advice))


def _of_folder(path: Path, shape: tuple[int, ...], tasks: int | None, examples: int) -> list[Task]:
    """The classes of a folder in groups, as `recollect run --stream` has them."""
    groups = tasks or min(MOST_TASKS, len(rc.streams.class_names(path)))
    stream = rc.streams.from_folder(path, shape=shape, tasks=groups, test_share=0)
    return [
        Task(
            name=task.name,
            train=Examples(*(part[: math.ceil(examples / groups)] for part in (task.train.images, task.train.y))),
            test=task.test,
            classes=task.classes,
        )
        for task in stream
    ]
