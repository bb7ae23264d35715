"""Codecs that know other images before a stream begins: trained once on CIFAR-10, then kept in the cache folder."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import torch

import recollect as rc
from recollect.data.download import cache_folder
from recollect.lab.checkpoint import EVERY, Checkpoint
from recollect.lab.shelf import Part, Shelf
from recollect.lab.trainee import Trainee
from recollect.seeding import derived

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from recollect.lab.experiment import Report

SHAPE = (3, 32, 32)


@dataclass(kw_only=True)
class Studied:
    """How far training on a set of images has come, in plain values."""

    passes: int = 0
    batches: int = 0  # of the pass under way
    seconds: float = 0.0


def pass_over(examples: rc.streams.Examples, seed: int, number: int) -> rc.streams.Examples:
    """The examples in an order of their own for each pass."""
    generator = torch.Generator().manual_seed(derived(seed, f"pass {number}"))
    order = torch.randperm(len(examples), generator=generator)
    return rc.streams.Examples(examples.images[order], examples.y[order])


@dataclass(frozen=True, kw_only=True)
class Pretraining:
    """How a codec is trained on the training images of CIFAR-10, without their labels.

    Args:
        variables: of the code, the paper's c.
        categories: of the code, the paper's l.
        passes: over the images.
        examples: how many of them.
        batch: images in a step.
        learning_rate: of Adam.
        seed: of the initial weights, of the draws and of the order of the images.
    """

    variables: int
    categories: int
    passes: int
    examples: int = 50_000
    batch: int = 50
    learning_rate: float = 1e-3
    seed: int = 0

    @property
    def path(self) -> Path:
        """The file with its weights, whether or not it is there."""
        return _shelf().path(self._name, asdict(self))

    @property
    def _name(self) -> str:
        return f"cifar10-{self.variables}x{self.categories}"

    @staticmethod
    def prepare(recipes: Iterable[Pretraining | None]) -> None:
        """Look for CIFAR-10 if one of them has yet to be made."""
        if any(recipe is not None and not recipe.path.exists() for recipe in recipes):
            rc.streams.cifar10(train_examples=1, test_examples=1)

    def start(
        self,
        codec: rc.DiscreteAutoencoder,
        *,
        report: Report = lambda step, state: None,
        every: float = EVERY,
    ) -> None:
        """Give a codec the weights, trained now if they are not there. Its random draws stay its own.

        Whoever comes first trains and the others wait. After a stop it goes on from a checkpoint, made every so many
        seconds, and ends as if it had never been stopped.
        """
        part = _shelf().part(
            self._name, asdict(self), lambda: self._made(next(codec.parameters()).device, report, every)
        )
        codec.load_state_dict({**codec.state_dict(), **part.weights})

    def _made(self, device: torch.device, report: Report, every: float) -> Part:
        report(0, "CIFAR-10 first")
        checkpoint = Checkpoint(self.path.with_suffix(".rec"), {}, every=every)
        weights: dict[str, torch.Tensor] = dict(self._trained(device, report, checkpoint).named_parameters())
        checkpoint.done()
        return Part({}, weights)

    def _trained(self, device: torch.device, report: Report, checkpoint: Checkpoint) -> rc.DiscreteAutoencoder:
        examples = rc.streams.cifar10(self.seed, train_examples=self.examples, test_examples=1).train
        resumed = checkpoint.resumed(lambda path: self._trainee(device).loaded(path))
        trainee, studied = (
            (self._trainee(device), Studied()) if resumed is None else (resumed[0], Studied(**resumed[1]))
        )
        for number in range(studied.passes, self.passes):
            trainee.study(pass_over(examples, self.seed, number), 0, self.batch, studied, checkpoint)
            studied.passes, studied.batches = number + 1, 0
            report(number + 1, f"CIFAR-10, pass {number + 1} of {self.passes}")
        return trainee.codec

    def _trainee(self, device: torch.device) -> Trainee:
        codec = rc.DiscreteAutoencoder(SHAPE, self.variables, self.categories, seed=self.seed).to(device)
        return Trainee(codec, {"learning_rate": self.learning_rate})


def _shelf() -> Shelf:
    return Shelf(cache_folder() / "codecs")
