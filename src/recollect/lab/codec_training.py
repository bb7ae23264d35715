"""Codecs trained offline: made by a learning rate, an amount of training and a seed, and kept on the shelf."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from recollect.codecs.autoencoder import DiscreteAutoencoder
from recollect.codecs.convolutional import ConvolutionalAutoencoder
from recollect.distillation import reconstruction_distortion
from recollect.lab.shelf import Part
from recollect.lab.training import fit
from recollect.rebuild import described

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from recollect.codecs.interface import Codec
    from recollect.lab.experiment import Report
    from recollect.lab.shelf import Shelf

C = TypeVar("C", bound=ConvolutionalAutoencoder)
BATCH = 50
DISTORTION_BATCH = 5000  # images that are taken out of their 8 bits at once


def trained(
    codec: Any,
    images: torch.Tensor,
    source: str,
    *,
    epochs: int,
    learning_rate: float,
    seed: int,
    shelf: Shelf,
    tell: Callable[[str], object] = lambda state: None,
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
            tell=tell,
        )
        return Part({"distortion": distortion(codec, images), "seconds": seconds}, codec.state_dict())

    part = shelf.part(f"codec-{codec.variables}x{codec.categories}", how, make)
    codec.load_state_dict(part.weights)
    codec.eval()
    return part.facts


def tuned(
    make: Callable[[], C],
    images: torch.Tensor,
    source: str,
    *,
    learning_rates: Sequence[float],
    trial_images: int,
    trial_epochs: int,
    epochs: int,
    seed: int,
    shelf: Shelf,
    report: Report = lambda step, state: None,
) -> tuple[C, dict[str, Any]]:
    """Try each learning rate for a few epochs on some images, and train with the best anew on all, for all epochs.

    Returns the codec and what is known of it: its ``distortion``, ``learning_rate``, ``tried``, which are the
    distortions of the trials by learning rate, and the ``seconds`` of all training.
    """

    def attempt(rate: float, some: torch.Tensor, epochs: int) -> tuple[C, dict[str, Any]]:
        codec, done = make(), len(tried)

        def tell(state: str) -> None:
            report(done, f"learning rate {rate:g}, {state}")

        return codec, trained(codec, some, source, epochs=epochs, learning_rate=rate, seed=seed, shelf=shelf, tell=tell)

    tried: dict[float, dict[str, Any]] = {}
    for number, rate in enumerate(learning_rates, 1):
        tried[rate] = attempt(rate, images[:trial_images], trial_epochs)[1]
        report(number, f"learning rate {rate:g}: distortion {tried[rate]['distortion'] or math.nan:.4f}")
    rate = best(tried)
    codec, known = attempt(rate, images, epochs)
    report(len(tried) + 1, f"distortion {known['distortion'] or math.nan:.4f}")
    seconds = sum(trial["seconds"] for trial in tried.values())
    if known != tried[rate]:  # a training of its own
        seconds += known["seconds"]
    tried_out = {f"{rate:g}": trial["distortion"] for rate, trial in tried.items()}
    return codec, {
        "distortion": known["distortion"],
        "learning_rate": rate,
        "tried": tried_out,
        "seconds": seconds,
    }


def eager(codec: type[Any]) -> dict[str, Any]:
    """Arguments with which a codec of this kind learns in a few epochs what the paper's learns in hundreds."""
    return {"normalised": True} | ({"stochastic": False} if issubclass(codec, DiscreteAutoencoder) else {})


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
