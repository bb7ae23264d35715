"""The memory in your own training loop: ten lines beside a plain one.

Run it with `python examples/own_loop.py`. Digits are turned further with each task; the model sees each image once, and
is tested on all tasks after the last. Without recollections it has forgotten the first.
"""

from __future__ import annotations

import torch
from torch import nn

import recollect as rc

STREAM = rc.streams.mnist_rotations(tasks=8, train_examples=300, test_examples=500)


def trained(memory: rc.Memory | None) -> nn.Module:
    """A model that was shown the stream once, with recollections beside the new images if there is a memory."""
    model = rc.models.MLP()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.2)
    for number, task in enumerate(STREAM):
        for x, y in task.train.batches(10):
            inputs, targets = x, y
            if memory is not None and len(memory):
                old = memory.sample(20)
                inputs, targets = torch.cat([x, old.x]), torch.cat([y, old.y])
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(inputs), targets).backward()
            optimiser.step()
            if memory is not None:
                memory.write(x, y, number)
    return model


def accuracy(model: nn.Module, task: rc.streams.Task) -> float:
    """The share of test images of a task that the model gets right."""
    with torch.no_grad():
        return float((model(task.test.x).argmax(1) == task.test.y).float().mean())


def main() -> None:
    """Train without and with a memory, and compare."""
    codec = rc.ResizedPixels((1, 28, 28), size=(14, 14), bits=1)  # 196 bits an image, in place of 6,272
    memory = rc.Memory(codec, capacity=1000, classes=10, tasks=len(STREAM))
    for name, model in (("without a memory", trained(None)), ("with a memory", trained(memory))):
        each = [accuracy(model, task) for task in STREAM]
        print(f"{name:17} first task {each[0]:.0%}, last task {each[-1]:.0%}, all {sum(each) / len(each):.0%}")
    print(f"{len(memory)} images are kept in the room of {memory.footprint().examples['codes']:.0f}")


if __name__ == "__main__":
    main()
