"""A run that is stopped anywhere goes on as if nothing had happened, to the last bit.

Run it with `python examples/stop_and_resume.py`. One learner sees the whole stream. Another is saved in the middle of
it and thrown away; what is loaded from the file goes on. Both end with the same weights and the same memory.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import torch

import recollect as rc

STREAM = rc.streams.mnist_rotations(tasks=3, train_examples=200, test_examples=1)
BATCHES = [batch for task in STREAM for batch in task.train.batches(10)]
STOPPED = 37  # batches


def learner() -> rc.Replay:
    """A learner with a codec that learns, too."""
    codec = rc.DiscreteAutoencoder(shape=(1, 28, 28), variables=24, categories=4)
    memory = rc.Memory(codec, capacity=200, classes=10, tasks=1)
    return rc.Replay(rc.models.MLP(), rc.RecollectionModule(memory), learning_rate=0.1, batch_size=10)


def main(folder: Path) -> None:
    """Stop, resume and compare; the file is written into ``folder``."""
    whole = learner()
    for x, y in BATCHES:
        whole.observe(x, y)

    stopped = learner()
    for x, y in BATCHES[:STOPPED]:
        stopped.observe(x, y)
    path = folder / "run.rec"
    stopped.save(path, {"batches": STOPPED})
    del stopped  # the machine is switched off
    print(f"Saved after {STOPPED} batches: {path.stat().st_size:,} bytes with model, codec, optimiser and memory.")

    resumed = rc.Replay.load(path)
    for x, y in BATCHES[resumed.progress["batches"] :]:
        resumed.observe(x, y)

    pairs = zip(whole.model.parameters(), resumed.model.parameters(), strict=True)
    print("The same weights:", all(torch.equal(one, other) for one, other in pairs))
    print("The same memory:", torch.equal(whole.memory.sample(50).x, resumed.memory.sample(50).x))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(Path(sys.argv[1] if len(sys.argv) > 1 else temporary))
