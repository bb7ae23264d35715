"""Data sets that are not inside the package: where they are looked for, and how they are downloaded."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import pooch

VARIABLE = "RECOLLECT_DATA"
CHUNK = 2**16  # bytes that are written at a time


class Archive(NamedTuple):
    """A file as the authors of a data set publish it, and where it is put: beside the folder that it unpacks to."""

    path: str
    url: str
    md5: str


def cache_folder() -> Path:
    """Where downloads and decoded images are kept. Nothing is written anywhere else."""
    return pooch.os_cache("recollect")


def folders() -> list[Path]:
    """Where data is looked for: the folder that ``RECOLLECT_DATA`` names, if it is set, then the cache folder."""
    named = os.environ.get(VARIABLE)
    if not named:
        return [cache_folder()]
    if not (own := Path(named).expanduser()).is_dir():
        raise ValueError(f"{VARIABLE}={named!r}: accepted is a folder that exists")
    return [own, cache_folder()]


def found(path: str) -> Path | None:
    """The file or folder with this path below the first folder that has it."""
    return next((folder / path for folder in folders() if (folder / path).exists()), None)


def fetched(archive: Archive) -> Path:
    """Where an archive is, downloaded if no folder has it. Its checksum is that of the published file."""
    if (own := found(archive.path)) is None:
        return downloaded(archive)
    if (md5 := pooch.file_hash(str(own), alg="md5")) != archive.md5:
        raise ValueError(f"{own} has the MD5 checksum {md5}: accepted is {archive.md5}, as {archive.url} has it")
    return own


def downloaded(archive: Archive) -> Path:
    """Download to the cache folder. What arrives broken is not kept."""
    from recollect.data import bar  # noqa: PLC0415 - rich takes its time to load

    place = cache_folder() / archive.path
    try:
        with bar.shown(place.name) as moving:
            # pooch takes any bar, and its own downloaders, though its types say otherwise.
            downloader: Any = pooch.HTTPDownloader(moving, CHUNK)  # pyright: ignore[reportArgumentType]
            pooch.retrieve(archive.url, f"md5:{archive.md5}", place.name, place.parent, downloader=downloader)
    except (OSError, ValueError) as error:  # of the connection or the disk; of the checksum
        # What it came from would be pages of a traceback, and says no more.
        looked = " or ".join(map(str, folders()))
        raise FileNotFoundError(
            f"{archive.path} could not be downloaded: {error}\n"
            f"Accepted are {archive.url} as {archive.path}, or unpacked beside it, in {looked}. "
            f"The variable {VARIABLE} names another folder to look in."
        ) from None
    return place
