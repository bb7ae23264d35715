"""MNIST, carried inside the package; LICENSE-MNIST.md beside this file says where it is from."""

from __future__ import annotations

import functools
import lzma
from importlib import resources
from typing import Literal, NamedTuple

import torch

FILES = {"train": "train", "test": "t10k"}


class Digits(NamedTuple):
    """Images, n x 1 x 28 x 28 of uint8, and labels, n of int64."""

    images: torch.Tensor
    y: torch.Tensor


@functools.cache
def mnist(split: Literal["train", "test"]) -> Digits:
    """The 60,000 training or the 10,000 test images of MNIST.

    >>> mnist("test").images.shape
    torch.Size([10000, 1, 28, 28])
    """
    if split not in FILES:
        raise ValueError(f"split={split!r}: accepted are {', '.join(map(repr, FILES))}")
    prefix = FILES[split]
    # The IDX format: two zero bytes, a type, the number of dimensions, each dimension in four bytes, then the values.
    images = torch.frombuffer(bytearray(idx(f"{prefix}-images-idx3-ubyte")), dtype=torch.uint8, offset=16)
    labels = torch.frombuffer(bytearray(idx(f"{prefix}-labels-idx1-ubyte")), dtype=torch.uint8, offset=8)
    return Digits(images.reshape(-1, 1, 28, 28), labels.long())


def idx(name: str) -> bytes:
    """The bytes of one of MNIST's four files, as they were published."""
    return lzma.decompress(resources.files(__name__).joinpath(f"{name}.xz").read_bytes())
