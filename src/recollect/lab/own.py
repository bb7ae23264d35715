"""Your own images: what each memory keeps of them in the same storage (``recollect run --stream folder:PATH``)."""

from __future__ import annotations

import hashlib
import math
import shlex
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import torch

import recollect as rc
from recollect.advice.candidates import CODEC_TRAINING
from recollect.advice.fitting import fitted_pixels, jpeg_bits
from recollect.advice.trial import REPLAY, default_model
from recollect.budget import check_autoencoder_shape, raw_bits
from recollect.checks import check_at_least
from recollect.lab.continual import Continual, ContinualProfile, ContinualRow
from recollect.lab.course import Course
from recollect.lab.results import slug
from recollect.streams.folder import image_files
from recollect.streams.task import Examples, Task

if TYPE_CHECKING:
    from pathlib import Path

    from recollect.budget import Plan
    from recollect.lab.continual import ContinualRun
    from recollect.lab.experiment import Settings

TEST_SHARE = 0.2
MOST_TASKS = 5
STORAGE_SHARE = 0.01  # of the training images, by default
COMPRESSION = 50  # recollections for each image of the storage, if there are so many
MOST_BITS = {"quick": 250, "standard": 1000}  # of a code: the parameters of the codec grow with its square
SAMPLE = 500  # training images by which pixels and JPEG are fitted to their bits
JPEG_QUALITY = 10  # at least, of nearly all images
QUICK = 1000  # training images


@dataclass(frozen=True, kw_only=True)
class OwnProfile(ContinualProfile):
    """How much of which images: runs of others are not taken for runs of these."""

    shape: str
    contents: str  # a checksum of images and labels


@dataclass(frozen=True, kw_only=True)
class Own(Continual):
    """Learners on a user's own images, for which there is no paper."""

    path: Path

    @property
    def columns(self) -> tuple[str, ...]:
        """What is kept, and how much is retained."""
        return super().columns[:4]

    def command(self, profile: ContinualProfile) -> str:
        """What is typed to have it run, with all that was chosen for it."""
        assert isinstance(profile, OwnProfile)
        (storage,) = {row.storage for row in self.rows if row.storage}
        chosen = f"--shape {profile.shape} --tasks {profile.tasks} --storage {storage} --profile {profile.name}"
        return f"recollect run --stream {shlex.quote(f'folder:{self.path}')} {chosen}"

    def cells(self, row: ContinualRow, runs: list[ContinualRun]) -> tuple[str, ...]:
        """The cells of a row, in the order of the columns."""
        return super().cells(row, runs)[:4]


@dataclass(frozen=True)
class FolderStream:
    """The streams of a folder, one for each seed: its classes in groups. They are decoded once for all seeds."""

    path: Path
    shape: tuple[int, int, int]
    groups: int

    def __call__(
        self, seed: int, *, tasks: int, train_examples: int, test_examples: int, validation: bool = False
    ) -> list[Task]:
        """The tasks. Nothing is chosen by their test examples, so that validation needs no others."""
        pool, names = decoded(self.path, self.shape), rc.streams.class_names(self.path)
        stream = rc.streams.from_arrays(pool.images, pool.y, tasks=self.groups, test_share=TEST_SHARE, seed=seed)
        return [
            Task(
                name=", ".join(names[label] for label in task.classes),
                train=Examples(task.train.images[:train_examples], task.train.y[:train_examples]),
                test=Examples(task.test.images[:test_examples], task.test.y[:test_examples]),
                classes=task.classes,
            )
            for task in stream[:tasks]
        ]


@lru_cache(maxsize=1)
def decoded(path: Path, shape: tuple[int, int, int]) -> Examples:
    """All images of a folder."""
    return rc.streams.from_folder(path, shape=shape, test_share=0)[0].train


def experiment(
    path: Path,
    *,
    profile: str = "standard",
    shape: tuple[int, int, int] = (3, 32, 32),
    tasks: int | None = None,
    storage: int | None = None,
) -> Own:
    """The experiment on the images of a folder, with a folder for each class.

    Args:
        path: the folder.
        profile: "standard" is all images and three seeds, "quick" a thousand images and one seed.
        shape: that images are scaled to.
        tasks: groups that the classes come in, one after the other; as many as 5 by default.
        storage: in images, what each memory may take; a hundredth of the training images by default, and one for each
            class at least.
    """
    if profile not in ("quick", "standard"):
        raise ValueError(f"profile={profile!r}: accepted are 'quick', 'standard'")
    shape = check_autoencoder_shape(shape)
    classes = rc.streams.class_names(path)
    files = [file for name in classes for file in image_files(path / name)]
    tasks = min(MOST_TASKS, len(classes)) if tasks is None else check_at_least("tasks", tasks, 1)
    stream = FolderStream(path, shape, tasks)
    most = math.ceil(QUICK / tasks) if profile == "quick" else len(files)
    seen = stream(0, tasks=tasks, train_examples=most, test_examples=len(files))
    images = torch.cat([task.train.images for task in seen])
    if storage is None:
        storage = max(len(classes), round(STORAGE_SHARE * len(images)))
    if not 1 <= storage < len(images):
        raise ValueError(f"storage={storage}: accepted are 1 to {len(images) - 1}, fewer than are learned from")
    items = min(COMPRESSION * storage, len(images))
    bits = min(storage * raw_bits(shape) // items, MOST_BITS[profile])
    items = min(storage * raw_bits(shape) // bits, len(images))
    code = rc.plan(shape=shape, storage_examples=items * bits / raw_bits(shape), items=items)
    quick, name = profile == "quick", path.resolve().name
    checksum = contents(decoded(path, shape))
    return Own(
        name=f"own/{slug(name)}-{tasks}-tasks-{checksum}",
        path=path,
        title=f"{name}: {len(files):,} images of {len(classes)} classes, accuracy on all tasks after the last",
        answers="Which memory keeps most of your own images in the same storage?",
        course=Course(
            stream=stream,
            shape=shape,
            classes=len(classes),
            tasks=tasks,
            examples=math.ceil(len(images) / tasks),
            model=default_model,
            step=4e-3,
            image=5e-3 * shape[1] * shape[2] / 32**2,
        ),
        rows=rows(storage, code, images[torch.linspace(0, len(images) - 1, SAMPLE).long().unique()].float() / 255),
        profiles={
            profile: OwnProfile(
                name=profile,
                seeds=1 if quick else 3,
                tasks=tasks,
                train_examples=max(len(task.train) for task in seen),
                test_examples=200 if quick else max(len(task.test) for task in seen),
                matrix_examples=50 if quick else 100,
                shape="x".join(map(str, shape)),
                contents=checksum,
            )
        },
        notes=(
            f"Classes come in {tasks} groups, one after the other, and the model is not told which.",
            f"Storage, in images, is that of codes; the learned codec takes {code.bill.codec / raw_bits(shape):,.0f} "
            f"images more. Bits are those of an item.",
        ),
    )


def rows(storage: int, code: Plan, x: torch.Tensor) -> tuple[ContinualRow, ...]:
    """No memory, and replay from memories that take the same storage; ``x`` are some of the images."""
    bits = storage * raw_bits(code.shape)
    memories: dict[str, Settings] = {"Real Storage": {"codec": rc.RawPixels, "items": storage}}
    if (pixels := fitted_pixels(x, code.bits_per_item)) is not None:
        memories["Resized Pixels"] = {"codec": rc.ResizedPixels, "code": pixels, "items": code.items}
    if (slot := jpeg_bits(x, JPEG_QUALITY)) is not None:
        slot = max(slot, code.bits_per_item)
        if bits // slot > storage:
            memories["JPEG"] = {"codec": rc.JPEG, "code": {"bits": slot}, "items": min(bits // slot, code.items)}
    memories["Recollections"] = {
        "codec": rc.DiscreteAutoencoder,
        "code": {"variables": code.variables, "categories": code.categories},
        "items": code.items,
        "training": CODEC_TRAINING,
    }
    replay = (
        ContinualRow(name=f"Replay {kind} {storage}", storage=storage, learner=rc.Replay, settings=REPLAY, **memory)
        for kind, memory in memories.items()
    )
    online = ContinualRow(name="Online", learner=rc.Online, settings={"learning_rate": REPLAY["learning_rate"]})
    return (online, *replay)


def contents(examples: Examples) -> str:
    """A checksum of images and labels: runs on others are made anew, and kept elsewhere."""
    checksum = hashlib.blake2b(examples.images.numpy().data, digest_size=4)
    checksum.update(examples.y.numpy().data)
    return checksum.hexdigest()
