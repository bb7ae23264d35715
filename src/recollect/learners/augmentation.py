"""Images moved, turned, scaled and mirrored a little at random: more to learn from a few of them, at no storage."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
import torch.nn.functional as F

from recollect.checks import check_number
from recollect.seeding import derived

KINDS = ("shift", "turn", "scale", "mirror")


class Augmentation:
    """Draws a change for each image of a batch.

    Args:
        changes: how far at most, each evenly drawn: "shift" in pixels, down and across; "turn" in degrees, either way;
            "scale" as a part of the size, larger or smaller; "mirror" the share of images that change left and right.
        seed: of the draws.

    >>> augment = Augmentation({"shift": 2, "mirror": 0.5}, seed=0)
    >>> augment(torch.rand(5, 3, 32, 32)).shape
    torch.Size([5, 3, 32, 32])
    """

    def __init__(self, changes: Mapping[str, float], seed: int) -> None:
        if not isinstance(changes, Mapping):
            raise TypeError(f"augment is {type(changes).__name__}: accepted is a mapping of names to numbers")
        for name, value in changes.items():
            if name not in KINDS:
                raise ValueError(f"augment has {name!r}: accepted are {', '.join(map(repr, KINDS))}")
            most = {"scale": 0.9, "mirror": 1.0}.get(name, math.inf)
            if check_number(f"augment has {name}", value, above=0, or_equal=True) > most:
                raise ValueError(f"augment has {name}={value}: accepted are numbers from 0 to {most}")
        self.shift, self.turn, self.scale, self.mirror = (float(changes.get(name, 0)) for name in KINDS)
        self.generator = torch.Generator().manual_seed(derived(seed, "augmentation"))

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """The images, each changed in its own way. What comes in from beyond the border is mirrored there."""
        n, _, height, width = x.shape
        # Drawn on the CPU whatever the device, so that a seed means the same everywhere.
        down, across, turn, scale = (2 * torch.rand(4, n, generator=self.generator) - 1).unbind()
        mirrored = torch.rand(n, generator=self.generator) < self.mirror
        angle, size = turn * math.radians(self.turn), 1 + scale * self.scale
        cosine, sine = angle.cos() / size, angle.sin() / size
        sign = 1 - 2 * mirrored.float()
        # The grid spans -1 to 1 in both directions, so an image that is not square needs its sides' ratio.
        theta = torch.stack(
            [
                torch.stack([sign * cosine, -sine * height / width, across * self.shift * 2 / width], 1),
                torch.stack([sign * sine * width / height, cosine, down * self.shift * 2 / height], 1),
            ],
            1,
        )
        grid = F.affine_grid(theta.to(x.device), list(x.shape), align_corners=False)
        return F.grid_sample(x, grid, padding_mode="reflection", align_corners=False)
