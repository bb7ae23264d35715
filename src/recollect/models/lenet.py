"""LeNet-5 (LeCun et al., 1998), teacher and student of the paper's distillation on MNIST."""

from __future__ import annotations

import torch
from torch import nn

from recollect.checks import check_at_least
from recollect.rebuild import rebuildable
from recollect.seeding import initial_weights


@rebuildable
class LeNet(nn.Sequential):
    """Filters 6 and 16 of 5x5, units 120, 84 and 10, for images of 1x28x28: 61,706 parameters.

    Sizes are as published, with 2 pixels of padding that make 32x32 of the images. Units are rectified, pooling takes
    the maximum, every second filter sees all of the first and the output is linear, as is usual today; the original
    has sigmoids, trained averages, a table of connections and radial basis functions. The paper names no variant.

    >>> sum(parameter.numel() for parameter in LeNet().parameters())
    61706
    """

    def __init__(self, classes: int = 10, *, seed: int = 0) -> None:
        with initial_weights(seed, "LeNet"):
            super().__init__(
                *[nn.Conv2d(1, 6, kernel_size=5, padding=2), nn.MaxPool2d(2), nn.ReLU()],
                *[nn.Conv2d(6, 16, kernel_size=5), nn.MaxPool2d(2), nn.ReLU(), nn.Flatten()],
                *[nn.Linear(16 * 5 * 5, 120), nn.ReLU()],
                *[nn.Linear(120, 84), nn.ReLU()],
                nn.Linear(84, check_at_least("classes", classes, 1)),
            )
        # Faster on CPUs; it changes no result but by rounding.
        self.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
