"""A stream of your own images, from a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from PIL import Image

from recollect.checks import IntegerLike, check_image_shape
from recollect.streams.division import Division, are_groups
from recollect.streams.pixels import MODES, from_picture
from recollect.streams.progress import counted
from recollect.streams.task import Examples

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    import numpy.typing as npt

    from recollect.streams.division import Tasks
    from recollect.streams.task import Task

# What a file may be, whatever its name says. All of these are decoded without another program.
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP", "PPM")
SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm", ".pbm"}
LISTED = 5  # files that an error names


def from_folder(
    path: str | PathLike[str],
    *,
    shape: Sequence[int] = (3, 32, 32),
    tasks: Tasks | Sequence[Sequence[str]] | None = None,
    test: str | PathLike[str] | None = None,
    test_tasks: IntegerLike | None = None,
    test_share: float = 0.2,
    seed: int = 0,
    shuffle: bool | None = None,
) -> list[Task]:
    """The tasks of a folder that has a folder of images for each class.

    Labels number the classes from 0, in the order of the names of their folders; `class_names` gives the names. Files
    come in the order of their names, class after class. They are decoded once, to 8 bits a channel; whatever size and
    mode they have, they are scaled to ``shape``, without a regard to their proportions.

    Args:
        path: the folder. PNG, JPEG, BMP, GIF, TIFF, WebP and PPM files are read; others in it do not matter.
        shape: channels, 1 for grey or 3 for colour, height and width.
        tasks: as in `from_arrays`; groups may have the names of classes.
        test: another folder of classes, to test on.
        test_tasks: as in `from_arrays`, like all that follows.
        test_share: held out of each class.
        seed: draws what is held out, and the order.
        shuffle: whether the order is drawn.

    With a folder of photographs, ``birds/heron/1.jpg`` and so on::

        stream = rc.streams.from_folder("birds", shape=(3, 64, 64), tasks=[["heron", "stork"], ["crane", "egret"]])
    """
    sizes, names = check_image_shape(shape), class_names(path)
    if sizes[0] not in MODES:
        raise ValueError(f"shape={sizes}: accepted are 1 or 3 channels")
    division = Division(
        tasks=_with_numbers(tasks, names), test_tasks=test_tasks, test_share=test_share, seed=seed, shuffle=shuffle
    )
    pool = _decoded(Path(path), names, sizes)
    return division.stream(pool, None if test is None else _decoded(Path(test), names, sizes), names)


def class_names(path: str | PathLike[str]) -> list[str]:
    """The classes of a folder, in the order of their labels."""
    folder = Path(path)
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is not a folder: accepted is one with a folder of images for each class")
    names = sorted(place.name for place in folder.iterdir() if place.is_dir() and not place.name.startswith("."))
    if not names:
        raise ValueError(f"{folder} has no folders in it: accepted is a folder with a folder of images for each class")
    return names


def image_files(folder: Path) -> list[Path]:
    """The images of one class, by name. An empty folder is an error: it is a mistake more often than a class."""
    found = sorted(
        place
        for place in folder.iterdir()
        if place.suffix.lower() in SUFFIXES and not place.name.startswith(".") and place.is_file()
    )
    if not found:
        kinds = ", ".join(sorted(SUFFIXES))
        raise ValueError(f"{folder} has no images right in it: accepted are files that end in one of {kinds}")
    return found


def decoded(file: Path, shape: tuple[int, int, int]) -> npt.NDArray[np.uint8]:
    """The pixels of an image file, scaled to a shape; of no format that takes another program to be decoded."""
    with Image.open(file, formats=FORMATS) as image:
        image.draft(None, (2 * max(shape), 2 * max(shape)))  # a JPEG is decoded many times as fast at part of its size
        return from_picture(image, shape)


def _decoded(folder: Path, names: list[str], shape: tuple[int, int, int]) -> Examples:
    if unknown := [name for name in class_names(folder) if name not in names]:
        raise ValueError(f"{folder} has the class {unknown[0]!r}: accepted are {', '.join(map(repr, names))}")
    files = [(file, names.index(name)) for name in class_names(folder) for file in image_files(folder / name)]
    pixels, broken = np.empty((len(files), *shape), np.uint8), []
    for number, (file, _) in enumerate(counted(files, f"Reading {folder}")):
        try:
            pixels[number] = decoded(file, shape)
        except Exception as error:  # Pillow has many for a file that is not what it should be
            broken.append(f"{file}: {error}")
    if broken:
        more = f"\nand {len(broken) - LISTED} more" if len(broken) > LISTED else ""
        raise ValueError(f"{len(broken)} of {len(files)} images cannot be read:\n" + "\n".join(broken[:LISTED]) + more)
    return Examples(torch.from_numpy(pixels), torch.tensor([label for _, label in files]))


def _with_numbers(tasks: Tasks | Sequence[Sequence[str]] | None, names: list[str]) -> Tasks | None:
    """The tasks with labels in place of the names of classes."""
    if not are_groups(tasks):
        return cast("Tasks | None", tasks)
    if unknown := {label for group in tasks for label in group if isinstance(label, str)} - {*names}:
        raise ValueError(f"tasks has the class {min(unknown)!r}: accepted are {', '.join(map(repr, names))}")
    return [[names.index(label) if isinstance(label, str) else label for label in group] for group in tasks]
