"""The memory in your own training loop: ten lines, six of them new.

Run it with `python examples/own_loop.py`; it takes a minute or two. Digits are turned further with each task; the model
sees each image once, and is tested on all tasks after the last. Without recollections it has forgotten the first.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch

import recollect as rc

Stream = Iterable[tuple[torch.Tensor, torch.Tensor]]


def without_memory(
    model: torch.nn.Module, optimiser: torch.optim.Optimizer, loss: torch.nn.Module, stream: Stream
) -> None:
    """The loop as you have it."""
    for x, y in stream:
        optimiser.zero_grad()
        loss(model(x), y).backward()
        optimiser.step()


def with_memory(
    model: torch.nn.Module, optimiser: torch.optim.Optimizer, loss: torch.nn.Module, stream: Stream
) -> rc.Memory:
    """The same with recollections beside the new images."""
    codec = rc.DiscreteAutoencoder(shape=(1, 28, 28), variables=104, categories=4)
    memory = rc.Memory(codec, capacity=3000, classes=10, tasks=1)
    module = rc.RecollectionModule(memory)
    for x, y in stream:
        old = module.rehearse(x, size=10)  # the codec learns; recollections come back
        inputs, targets = (torch.cat([x, old.x]), torch.cat([y, old.y])) if old else (x, y)
        optimiser.zero_grad()
        loss(model(inputs), targets).backward()
        optimiser.step()
        memory.write(x, y)
    return memory


def accuracy(model: torch.nn.Module, task: rc.streams.Task) -> float:
    """The share of test images of a task that the model gets right."""
    with torch.no_grad():
        return float((model(task.test.x).argmax(1) == task.test.y).float().mean())


def main() -> None:
    """Train without and with a memory, and compare."""
    tasks = rc.streams.mnist_rotations(seed=0)
    for train in (without_memory, with_memory):
        model = rc.models.MLP(classes=10)
        optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
        stream = (batch for task in tasks for batch in task.train.batches(10))
        memory = train(model, optimiser, torch.nn.CrossEntropyLoss(), stream)
        each = [accuracy(model, task) for task in tasks]
        name = train.__name__.replace("_", " ")
        print(f"{name:14} first task {each[0]:.0%}, last task {each[-1]:.0%}, all {sum(each) / len(each):.0%}")
        if memory is not None:
            room = memory.footprint().examples["codes"]
            print(f"{len(memory)} of {memory.seen} images are kept, their codes in the room of {room:.0f}")


if __name__ == "__main__":
    main()
