"""The reduced residual network for Incremental CIFAR-100 and Omniglot."""

from __future__ import annotations

import itertools
from collections.abc import Sequence, Sized

import torch
import torch.nn.functional as F
from torch import nn

from recollect.checks import check_at_least, check_integers
from recollect.rebuild import rebuildable
from recollect.seeding import initial_weights

FILTERS = 20  # of the first stage; each further one has twice as many
STAGES, BLOCKS = 4, 2  # blocks of each stage
FASTEST = torch.channels_last  # of the ways to lay out images and weights; it changes no result but by rounding
MASKED = -1e9  # far below any output, and the cross entropy stays finite; or the least there is in 16 bits


@rebuildable
class ResNet18(nn.Module):
    """ResNet-18 as GEM reduced it, from 64 filters to 20 in the first stage; outputs are masked to the example's task.

    F(x, t) is called as ``model(x, task)``, with a task for each example, in training and in test. The last map is 4x4
    for images of 28 and of 32 pixels and is averaged. Batch normalisation is the usual one, with the statistics of the
    batch in training and running ones in evaluation, as in GEM's code.

    Args:
        tasks: the classes of each task, such as ``[task.classes for task in stream]``.
        classes: outputs.
        channels: of the images.
        seed: fixes the initial weights.

    >>> model = ResNet18([range(5), range(5, 10)], classes=10)
    >>> model(torch.rand(3, 3, 32, 32), torch.tensor([0, 1, 1])).argmax(1) // 5
    tensor([0, 1, 1])
    >>> sum(parameter.numel() for parameter in ResNet18([range(100)]).parameters())
    1109240
    """

    others: torch.Tensor

    def __init__(self, tasks: Sequence[Sequence[int]], *, classes: int = 100, channels: int = 3, seed: int = 0) -> None:
        super().__init__()
        if not isinstance(tasks, Sized):
            raise TypeError(
                f"tasks is {tasks!r}: accepted are the classes of each task, such as [range(5), range(5, 10)]"
            )
        check_at_least("tasks, of which there are", len(tasks), 1)
        others = torch.ones(len(tasks), check_at_least("classes", classes, 1), dtype=torch.bool)
        for number, own in enumerate(tasks):
            name = f"classes of task {number}"
            check_at_least(f"{name}, of which there are", len(own), 1)
            others[number, check_integers(name, list(own), len(own), below=classes)] = False
        self.register_buffer("others", others)  # for each task the classes that are not its own
        with initial_weights(seed, "ResNet18"):
            layers = [*normalised(check_at_least("channels", channels, 1), FILTERS), nn.ReLU()]
            inputs = FILTERS
            for stage, block in itertools.product(range(STAGES), range(BLOCKS)):
                outputs = FILTERS * 2**stage
                layers.append(Block(inputs, outputs, stride=2 if stage and not block else 1))
                inputs = outputs
            self.features = nn.Sequential(*layers).to(memory_format=FASTEST)  # pyright: ignore[reportCallIssue]
            self.outputs = nn.Linear(inputs, classes)

    def forward(self, x: torch.Tensor, task: torch.Tensor) -> torch.Tensor:
        """The logits of all classes; those of other tasks than the example's are far below, without a gradient."""
        logits = self.outputs(self.features(x.contiguous(memory_format=FASTEST)).mean((2, 3)))
        least = max(MASKED, torch.finfo(logits.dtype).min)
        try:
            return logits.masked_fill(self.others.index_select(0, task), least)
        except IndexError as error:
            wrong = task[(task < 0) | (task >= len(self.others))]
            raise ValueError(f"task has the value {wrong[0]}: accepted are 0 to {len(self.others) - 1}") from error


class Block(nn.Module):
    """Two convolutions, added to their input; where its shape changes the input goes through a convolution of 1x1."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.inner = nn.Sequential(
            *normalised(inputs, outputs, stride=stride), nn.ReLU(), *normalised(outputs, outputs)
        )
        same = stride == 1 and inputs == outputs
        self.shortcut = nn.Sequential(*(() if same else normalised(inputs, outputs, size=1, stride=stride)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The sum, rectified."""
        return F.relu(self.inner(x) + self.shortcut(x))


def normalised(inputs: int, outputs: int, *, size: int = 3, stride: int = 1) -> list[nn.Module]:
    """A convolution that keeps the size of an image but for its stride, and its batch normalisation."""
    return [nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False), nn.BatchNorm2d(outputs)]
