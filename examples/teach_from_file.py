"""A new model learns from a memory file and an old model, with none of the data.

Run it with `python examples/teach_from_file.py`. A network learns digits, and a memory keeps them at 196 bits each.
Then the images are gone. Another kind of network is taught from the file: by what the old network says of the
recollections, and, for comparison, by the labels that were kept beside them.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import torch
from torch import nn

import recollect as rc
from recollect.distillation import DecodedSampling, distil

EPISODES, BATCH = 600, 20


def accuracy(model: nn.Module, test: rc.streams.Examples) -> float:
    """The share of the test images that a model gets right."""
    model.eval()
    with torch.no_grad():
        return float((model(test.x).argmax(1) == test.y).float().mean())


def main(folder: Path) -> None:
    """Fill a memory, commit it to ``folder``, and teach from the file."""
    (task,) = rc.streams.mnist_rotations(tasks=1, train_examples=3000, test_examples=1000)
    codec = rc.ResizedPixels((1, 28, 28), size=(14, 14), bits=1)
    memory = rc.Memory(codec, capacity=3000, classes=10, tasks=1)
    teacher = rc.models.LeNet()
    learner = rc.Replay(teacher, rc.RecollectionModule(memory), learning_rate=0.1, batch_size=20)
    for x, y in task.train.batches(10):
        learner.observe(x, y)
    path = folder / "digits.rec"
    memory.commit(path)
    del memory, learner  # and with them the last of the images
    print(f"teacher, a LeNet                 {accuracy(teacher, task.test):.0%}")
    print(f"the file has {path.stat().st_size:,} bytes, the images had {task.train.images.nbytes:,}")

    memory = rc.Memory.open(path)
    for how, of in (("the teacher's outputs", teacher), ("the labels alone", None)):
        student = rc.models.MLP()
        distil(of, student, DecodedSampling(memory, of), episodes=EPISODES, batch_size=BATCH)
        print(f"MLP by {how:25} {accuracy(student, task.test):.0%}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(Path(sys.argv[1] if len(sys.argv) > 1 else temporary))
