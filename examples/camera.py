"""A camera that never says when anything changes: a stream without tasks.

Run it with `python examples/camera.py`. Synthetic frames show one of three shapes while the light and the colour of the
scene drift slowly. Nothing is told to the learner but frames and labels, one second of frames after another. At the end
it is asked about the light of the beginning.
"""

from __future__ import annotations

import math

import torch

import recollect as rc

FRAMES, SECOND, SIDE = 4000, 10, 16
SHAPES = ("beam", "pillar", "box")


def frames(start: int, count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Frames from a moment on, count x 3 x 16 x 16, and what they show; over the day blue turns into orange."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(len(SHAPES), (count,), generator=generator)
    place = torch.rand(count, 2, 1, 1, generator=generator) * 2 + 7
    rows, columns = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    down, right = (rows - place[:, 0]).abs(), (columns - place[:, 1]).abs()
    masks = torch.stack([down < 2, right < 2, torch.maximum(down, right) < 4])
    shown = masks[y, torch.arange(count)].float()[:, None]
    phase = math.pi * start / FRAMES
    scene = torch.tensor([0.5 - 0.4 * math.cos(phase), 0.4, 0.5 + 0.4 * math.cos(phase)]).view(1, 3, 1, 1)
    contrast = 0.35 * math.cos(phase)  # by day shapes are brighter than the scene, by night they are darker
    noise = 0.08 * torch.randn(count, 3, SIDE, SIDE, generator=generator)
    return (scene + contrast * shown + noise).clamp(0, 1), y


def learned(learner: rc.Learner) -> rc.Learner:
    """The learner after a day of frames."""
    for start in range(0, FRAMES, SECOND):
        learner.observe(*frames(start, SECOND, seed=start))  # no task
    return learner


def main() -> None:
    """A day in front of the camera, without and with a memory."""
    shape = (3, SIDE, SIDE)
    memory = rc.Memory(rc.ResizedPixels(shape, size=(8, 8), bits=2), capacity=500, classes=len(SHAPES), tasks=1)
    learners = {
        "without a memory": rc.Online(model(), learning_rate=0.05),
        "with a memory": rc.Replay(model(), rc.RecollectionModule(memory), learning_rate=0.05, batch_size=20),
    }
    for name, learner in learners.items():
        learned(learner)
        right = {}
        for time, start in (("morning", 0), ("evening", FRAMES - SECOND)):
            x, y = frames(start, 500, seed=FRAMES + start)
            right[time] = float((learner.predict(x) == y).float().mean())
        print(f"{name:17} " + ", ".join(f"{time} light {share:.0%}" for time, share in right.items()))
    held = memory.footprint()
    print(f"{len(memory)} of {memory.seen} frames are kept, in {held.incremental // 8:,} bytes")


def model() -> torch.nn.Module:
    """A small network."""
    return rc.models.MLP(inputs=3 * SIDE * SIDE, hidden=(64,), classes=len(SHAPES))


if __name__ == "__main__":
    main()
