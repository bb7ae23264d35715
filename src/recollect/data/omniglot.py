"""Omniglot (Lake et al., 2015), decoded once and averaged down to 28 x 28 pixels."""

from __future__ import annotations

import io
import os
import zipfile
from contextlib import suppress
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from PIL import Image

from recollect.data.download import Archive, cache_folder, fetched, found

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy.typing as npt

SITE = "https://github.com/brendenlake/omniglot/raw/master/python"
ARCHIVES = {
    "images_background": Archive(
        "omniglot/images_background.zip", f"{SITE}/images_background.zip", "68d2efa1b9178cc56df9314c21c6e718"
    ),
    "images_evaluation": Archive(
        "omniglot/images_evaluation.zip", f"{SITE}/images_evaluation.zip", "6b91aef0f799c5bb55b94e3f2daec811"
    ),
}
CHARACTERS = {"images_background": 964, "images_evaluation": 659}
DRAWERS = 20  # people, each of whom drew every character of an alphabet
PUBLISHED, SIDE = 105, 28  # pixels


class Characters(NamedTuple):
    """Images, characters x 20 x 28 x 28 of uint8 with bright ink, and the alphabet of each character."""

    images: torch.Tensor
    alphabets: list[str]


def omniglot() -> Characters:
    """All 1,623 characters, by alphabet: those of the background set, then those of the evaluation set, by name.

    The PNG files take some seconds to decode, so what comes of it is kept in the cache folder, in 25 MB, if it can be
    written to.
    """
    place = cache_folder() / "omniglot-28x28.npz"
    characters = _kept(place)
    if characters is None:
        characters = decoded()
        with suppress(OSError):
            _keep(characters, place)
    return characters


def _kept(place: Path) -> Characters | None:
    """What was decoded before; None if that is nothing, or cannot be read."""
    try:
        with place.open("rb") as file, np.load(file, allow_pickle=False) as kept:
            characters = Characters(torch.from_numpy(kept["images"]), kept["alphabets"].tolist())
    except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile):
        return None
    return characters if characters.images.shape == (sum(CHARACTERS.values()), DRAWERS, SIDE, SIDE) else None


def _keep(characters: Characters, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_name(f"{place.name}.{os.getpid()}.part")
    with part.open("wb") as file:
        np.savez(file, images=characters.images.numpy(), alphabets=characters.alphabets)
    part.replace(place)  # whole or absent, even when two processes do it at once


def decoded() -> Characters:
    """Images and alphabets from the published files."""
    images, alphabets = [], []
    for part, count in CHARACTERS.items():
        before = len(alphabets)
        for (alphabet, character), group in groupby(drawings(part), key=lambda drawing: drawing[0]):
            drawn = [ink(content) for _, content in group]
            if len(drawn) != DRAWERS:
                raise ValueError(f"{part}/{alphabet}/{character} has {len(drawn)} images: accepted are {DRAWERS}")
            images.append(averaged(np.stack(drawn)))
            alphabets.append(alphabet)
        if (characters := len(alphabets) - before) != count:
            raise ValueError(f"{part} has {characters} characters: accepted are {count}")
    return Characters(torch.from_numpy(np.stack(images)), alphabets)


def drawings(part: str) -> Iterator[tuple[tuple[str, str], bytes]]:
    """Alphabet and character, and the PNG file, of every drawing of one of the two sets, in the order of their names.

    They are read from the folder if it is found, else straight from the archive.
    """
    if (place := found(f"omniglot/{part}")) is not None:
        files = {path.relative_to(place).as_posix(): path for path in place.glob("*/*/*.png")}
        for name in sorted(files):
            yield names_in(name), files[name].read_bytes()
        return
    with zipfile.ZipFile(fetched(ARCHIVES[part])) as archive:
        within = f"{part}/"
        for name in sorted(archive.namelist()):
            if name.startswith(within) and name.endswith(".png"):
                yield names_in(name.removeprefix(within)), archive.read(name)


def names_in(path: str) -> tuple[str, str]:
    """Alphabet and character in the path of a drawing.

    >>> names_in("Greek/character07/0402_03.png")
    ('Greek', 'character07')
    """
    alphabet, character, _ = path.split("/")
    return alphabet, character


def ink(content: bytes) -> npt.NDArray[np.bool_]:
    """Where a PNG file is black."""
    with Image.open(io.BytesIO(content), formats=["PNG"]) as image:
        if image.size != (PUBLISHED, PUBLISHED):
            raise ValueError(f"an image of {image.size} pixels: accepted are those of {(PUBLISHED, PUBLISHED)}")
        return np.asarray(image.convert("L")) < 128


def averaged(drawn: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint8]:
    """Ink, n x 105 x 105, as brightness, n x 28 x 28: the share of ink in the area of each pixel.

    >>> averaged(np.ones((1, 105, 105), bool)).shape
    (1, 28, 28)
    """
    # A pixel is 3.75 published ones wide. Each of those is cut in 4, and 15 quarters make a pixel.
    quarters = np.repeat(np.eye(PUBLISHED, dtype=np.float32), 4, axis=0)
    weights = quarters.reshape(SIDE, 15, PUBLISHED).sum(1)
    return (weights @ drawn @ weights.T * (255 / 15**2)).round().astype(np.uint8)
