"""Codecs trained offline: made by a learning rate, an amount of training and a seed, and kept on the shelf."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from recollect.distillation import reconstruction_distortion
from recollect.lab.shelf import Part
from recollect.lab.training import fit
from recollect.rebuild import described

if TYPE_CHECKING:
    from recollect.codecs.interface import Codec
    from recollect.lab.shelf import Shelf

BATCH = 50
DISTORTION_BATCH = 5000  # images that are taken out of their 8 bits at once


def trained(
    codec: Any, images: torch.Tensor, source: str, *, epochs: int, learning_rate: float, seed: int, shelf: Shelf
) -> dict[str, Any]:
    """Train a learned codec on 8-bit images of a source, or take its weights from the shelf.

    Returns what is known of it: its ``distortion`` on these images, None if the training diverged, and ``seconds``.
    """
    how = {
        **described(codec),
        "images": f"{source}, the first {len(images)}",
        "epochs": epochs,
        "learning_rate": learning_rate,
        "batch_size": BATCH,
        "seed": seed,
    }

    def make() -> Part:
        device = next(codec.parameters()).device
        seconds = fit(
            codec,
            lambda rows: codec.loss(images[rows].to(device).float() / 255),
            len(images),
            epochs=epochs,
            learning_rate=learning_rate,
            batch_size=BATCH,
            seed=seed,
        )
        return Part({"distortion": distortion(codec, images), "seconds": seconds}, codec.state_dict())

    part = shelf.part(f"codec-{codec.variables}x{codec.categories}", how, make)
    codec.load_state_dict(part.weights)
    codec.eval()
    return part.facts


def distortion(codec: Codec, images: torch.Tensor) -> float | None:
    """The mean absolute error on 8-bit images; None for a codec whose weights are no numbers any more."""
    weights = codec.parameters() if isinstance(codec, torch.nn.Module) else ()
    if not all(bool(weight.isfinite().all()) for weight in weights):
        return None
    parts = images.split(DISTORTION_BATCH)
    errors = [len(part) * reconstruction_distortion(codec, part.float() / 255) for part in parts]
    return sum(errors) / len(images)


def best(tried: dict[float, dict[str, Any]]) -> float:
    """The learning rate of the least distortion.

    >>> best({1e-2: {"distortion": None}, 1e-3: {"distortion": 0.04}, 1e-4: {"distortion": 0.05}})
    0.001
    """
    return min(tried, key=lambda rate: math.inf if tried[rate]["distortion"] is None else tried[rate]["distortion"])
