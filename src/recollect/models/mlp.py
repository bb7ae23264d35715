"""The multilayer perceptron for MNIST-Rotations."""

from __future__ import annotations

import itertools

from torch import nn

from recollect.checks import check_at_least
from recollect.rebuild import rebuildable
from recollect.seeding import initial_weights


@rebuildable
class MLP(nn.Sequential):
    """784-100-100-10 by default, 89,610 parameters: the paper's "two layer MLP with 200 hidden units".

    >>> sum(parameter.numel() for parameter in MLP().parameters())
    89610
    """

    def __init__(
        self, inputs: int = 784, hidden: tuple[int, ...] = (100, 100), classes: int = 10, *, seed: int = 0
    ) -> None:
        sizes = [check_at_least("inputs", inputs, 1), *hidden, check_at_least("classes", classes, 1)]
        layers: list[nn.Module] = [nn.Flatten()]
        with initial_weights(seed, "MLP"):
            for before, after in itertools.pairwise(sizes):
                layers += [nn.Linear(before, after), nn.ReLU()]
        super().__init__(*layers[:-1])
