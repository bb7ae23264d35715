"""What a teacher is taught and a student is tested on: MNIST, or Omniglot with its alphabets as tasks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F

import recollect as rc
from recollect.data import mnist
from recollect.lab.shelf import Part
from recollect.lab.training import fit
from recollect.learners.model import takes_task
from recollect.rebuild import described
from recollect.seeding import derived

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import nn

    from recollect.lab.shelf import Shelf

HELD_OUT = 10_000  # of the training images of MNIST: learning rates are chosen on them, and nothing is trained on them
TESTED = 1000  # images that are predicted at once


@dataclass(frozen=True, eq=False)
class Shown:
    """Images at 8 bits with labels and tasks."""

    images: torch.Tensor
    y: torch.Tensor
    task: torch.Tensor

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, rows: slice | torch.Tensor) -> Shown:
        return Shown(self.images[rows], self.y[rows], self.task[rows])

    @property
    def x(self) -> torch.Tensor:
        """The images as float32 in [0, 1]."""
        return self.images.float() / 255


@dataclass(frozen=True, eq=False)
class Material:
    """Examples to train on, to choose by and to test on, and the classes of each task."""

    train: Shown
    held_out: Shown | None
    test: Shown
    classes: list[tuple[int, ...]]


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """Where examples come from, the teacher for them, and how fast it learns.

    Args:
        name: for the record.
        load: makes the material of so many training examples, test examples and tasks at most; None stands for all.
        model: makes a model of a class for the material, from a seed.
        teacher: its class.
        classes: labels are 0 to classes - 1.
        shape: channels, height and width of the images.
        learning_rate: of the teacher.
        batch_size: of the teacher's training.
    """

    name: str
    load: Callable[[int | None, int | None, int | None], Material]
    model: Callable[[type[nn.Module], Material, int], nn.Module]
    teacher: type[nn.Module]
    classes: int
    shape: tuple[int, int, int] = (1, 28, 28)
    learning_rate: float = 1e-3
    batch_size: int = 50

    def taught(
        self,
        material: Material,
        *,
        epochs: int,
        seed: int,
        device: torch.device,
        shelf: Shelf,
        tell: Callable[[str], object] = lambda state: None,
    ) -> tuple[nn.Module, dict[str, Any]]:
        """The teacher, trained on labels or from the shelf, and its ``accuracy`` and the ``seconds`` that it took."""
        teacher = self.model(self.teacher, material, derived(seed, "teacher")).to(device)
        train = material.train
        how = {
            **described(teacher),
            "lesson": f"{self.name}, {len(train)} examples of {len(material.classes)} tasks",
            "epochs": epochs,
            "learning_rate": self.learning_rate,
            "batch_size": self.batch_size,
            "seed": seed,
        }

        def loss(rows: torch.Tensor) -> torch.Tensor:
            shown = train[rows]
            return F.cross_entropy(outputs(teacher, shown.x.to(device), shown.task), shown.y.to(device))

        def make() -> Part:
            seconds = fit(
                teacher,
                loss,
                len(train),
                epochs=epochs,
                learning_rate=self.learning_rate,
                batch_size=self.batch_size,
                seed=seed,
                tell=tell,
            )
            return Part({"accuracy": accuracy(teacher, material.test), "seconds": seconds}, teacher.state_dict())

        part = shelf.part(f"teacher-{self.name.lower()}", how, make)
        teacher.load_state_dict(part.weights)
        teacher.eval()
        return teacher, part.facts


def outputs(model: nn.Module, x: torch.Tensor, task: torch.Tensor) -> torch.Tensor:
    """The logits of a model, told the tasks if it takes them."""
    return model(x, task.to(x.device)) if takes_task(model) else model(x)


@torch.no_grad()
def accuracy(model: nn.Module, shown: Shown) -> float:
    """Of the model in evaluation mode, in percent."""
    device = next(model.parameters()).device
    model.eval()
    right = 0
    for rows in torch.arange(len(shown)).split(TESTED):
        part = shown[rows]
        right += int((outputs(model, part.x.to(device), part.task).argmax(1).cpu() == part.y).sum())
    return 100 * right / len(shown)


@lru_cache(maxsize=1)
def _mnist(examples: int | None, tested: int | None, tasks: int | None) -> Material:
    """The first 50,000 training images, as many as the paper's buffer holds; the last 10,000 are held out."""

    def shown(images: torch.Tensor, y: torch.Tensor) -> Shown:
        return Shown(images, y, torch.zeros(len(y), dtype=torch.long))

    pool = shown(*mnist("train"))
    held_out, test = pool[-HELD_OUT:][:tested], shown(*mnist("test"))[:tested]
    return Material(pool[:-HELD_OUT][:examples], held_out, test, [tuple(range(10))])


@lru_cache(maxsize=1)
def _omniglot(examples: int | None, tested: int | None, tasks: int | None) -> Material:
    """The training images of all alphabets together, 18 of each character: 29,214."""
    stream = rc.streams.omniglot() if tasks is None else rc.streams.omniglot(tasks=tasks)

    def shown(parts: list[rc.streams.Examples]) -> Shown:
        lengths = torch.tensor([len(part) for part in parts])
        task = torch.arange(len(parts)).repeat_interleave(lengths)
        return Shown(torch.cat([part.images for part in parts]), torch.cat([part.y for part in parts]), task)

    train, test = shown([task.train for task in stream]), shown([task.test for task in stream])
    return Material(train[:examples], None, test[:tested], [task.classes for task in stream])


def _plain(cls: type[nn.Module], material: Material, seed: int) -> nn.Module:
    return cls(seed=seed)


def _masked(cls: type[nn.Module], material: Material, seed: int) -> nn.Module:
    return cls(material.classes, classes=OMNIGLOT.classes, channels=1, seed=seed)


MNIST = Lesson(name="MNIST", load=_mnist, model=_plain, teacher=rc.models.LeNet, classes=10)
OMNIGLOT = Lesson(
    name="Omniglot", load=_omniglot, model=_masked, teacher=rc.models.ResNet18, classes=1623, batch_size=32
)
