"""CIFAR-10 and CIFAR-100, read from the binary version that their authors publish."""

from __future__ import annotations

import hashlib
import tarfile
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from recollect.data.download import Archive, fetched, found

if TYPE_CHECKING:
    from collections.abc import Sequence

SITE = "https://www.cs.toronto.edu/~kriz"
CIFAR10 = Archive("cifar-10-binary.tar.gz", f"{SITE}/cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530")
CIFAR100 = Archive("cifar-100-binary.tar.gz", f"{SITE}/cifar-100-binary.tar.gz", "03b5dce01913d631647c71ecec9e9cb8")
TRAIN, TEST = 50_000, 10_000  # images, in both sets
SHAPE = (3, 32, 32)  # red, green and blue, a row of pixels after the other


class Pictures(NamedTuple):
    """Images, n x 3 x 32 x 32 of uint8, and labels, n x 1 or (coarse and fine) n x 2 of int64."""

    images: torch.Tensor
    labels: torch.Tensor


class Cifar(NamedTuple):
    """A whole set. ``names`` are those of the coarse and of the fine labels, for CIFAR-100."""

    train: Pictures
    test: Pictures
    names: tuple[list[str], ...] = ()


def cifar10() -> Cifar:
    """All of CIFAR-10."""
    names = [*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"]
    *train, test = contents(CIFAR10, "cifar-10-batches-bin", names)
    return Cifar(pictures("CIFAR-10, training", train, TRAIN, 1), pictures("CIFAR-10, test", [test], TEST, 1))


def cifar100() -> Cifar:
    """All of CIFAR-100."""
    names = ["train.bin", "test.bin", "coarse_label_names.txt", "fine_label_names.txt"]
    train, test, *labels = contents(CIFAR100, "cifar-100-binary", names)
    return Cifar(
        pictures("CIFAR-100, training", [train], TRAIN, 2),
        pictures("CIFAR-100, test", [test], TEST, 2),
        tuple(text.decode().split() for text in labels),
    )


def contents(archive: Archive, folder: str, names: Sequence[str]) -> list[bytes]:
    """The files with these names: from the folder if it is found, else straight from the archive."""
    if (place := found(folder)) is not None:
        return [(place / name).read_bytes() for name in names]
    files = {}
    with tarfile.open(fetched(archive), "r|gz") as tar:  # in one go, since going back would decompress anew
        for member in tar:
            if (name := PurePosixPath(member.name).name) in names and (file := tar.extractfile(member)) is not None:
                files[name] = file.read()
    return [files[name] for name in names]


def pictures(title: str, files: Sequence[bytes], count: int, label_bytes: int) -> Pictures:
    """The rows of all files. A row is its labels and then its pixels, a byte each.

    Rows are put in the order of their hashes. It has no meaning, so that the first of them are a fair sample, and it is
    the same for every copy of the set, however its rows are arranged.
    """
    width = label_bytes + int(np.prod(SHAPE))
    if (size := sum(map(len, files))) != count * width:
        raise ValueError(f"{title}: {size} bytes: accepted are {count * width}, {count} rows of {width}")
    rows = [row for file in files for row in np.frombuffer(file, np.uint8).reshape(-1, width)]
    rows.sort(key=lambda row: hashlib.blake2b(row.tobytes()).digest())
    table = np.stack(rows)
    labels, pixels = torch.from_numpy(table).split([label_bytes, width - label_bytes], dim=1)
    return Pictures(pixels.view(-1, *SHAPE), labels.long())
