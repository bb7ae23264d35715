"""What every entrance checks: the error names the value it got and what is accepted."""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

Integers = npt.NDArray[np.int64]
Reals = npt.NDArray[np.float32]
IntegerLike = int | Sequence[int] | npt.NDArray[np.integer] | torch.Tensor
TargetLike = IntegerLike | float | Sequence[Any] | npt.NDArray[Any] | None  # labels, other targets, or none


def check_image_shape(shape: Sequence[int]) -> tuple[int, int, int]:
    """``shape`` as channels, height and width, all of them at least 1."""
    if not isinstance(shape, Sequence) or len(shape) != 3:
        raise ValueError(f"shape={shape!r}: accepted are three whole numbers: channels, height, width")
    channels, height, width = (check_at_least(f"shape={tuple(shape)}, of which one", size, 1) for size in shape)
    return channels, height, width


def check_size(size: Sequence[int], shape: tuple[int, int, int]) -> tuple[int, int]:
    """``size`` as height and width of a picture that is no larger than images of ``shape``."""
    _, height, width = shape
    if not isinstance(size, Sequence):
        raise TypeError(f"size={size!r}: accepted are height and width, two whole numbers")
    if len(size) != 2 or not (1 <= size[0] <= height and 1 <= size[1] <= width):
        raise ValueError(f"size={tuple(size)}: accepted are height and width from (1, 1) to ({height}, {width})")
    return check_at_least("size", size[0], 1), check_at_least("size", size[1], 1)


def check_images(x: torch.Tensor, shape: tuple[int, int, int] | None = None) -> torch.Tensor:
    """``x`` as float32, after making sure that it is a batch of images, of ``shape`` if given, and in [0, 1]."""
    if not isinstance(x, torch.Tensor) or not x.is_floating_point():
        kind = x.dtype if isinstance(x, torch.Tensor) else type(x).__name__
        raise TypeError(f"x is {kind}: accepted is a floating point tensor with values in [0, 1]")
    if x.ndim != 4 or (shape is not None and tuple(x.shape[1:]) != tuple(shape)):
        expected = " x ".join(map(str, shape or ("channels", "height", "width")))
        raise ValueError(f"x has shape {tuple(x.shape)}: accepted is n x {expected}")
    if x.numel() == 0:
        raise ValueError(f"x has shape {tuple(x.shape)}: accepted is at least one example, of at least one pixel")
    low, high = x.detach().aminmax()
    low, high = low.item(), high.item()
    if not (low >= 0.0 and high <= 1.0):  # also true of NaN
        raise ValueError(f"x has values from {low} to {high}: accepted are values in [0, 1] and no NaN")
    return x.detach().float()


def check_codes(codes: torch.Tensor | npt.NDArray[np.integer], variables: int, categories: int) -> torch.Tensor:
    """``codes`` as an int64 tensor, after making sure that they are n x variables with values below categories."""
    codes = torch.as_tensor(codes)
    if codes.is_floating_point() or codes.is_complex() or codes.dtype == torch.bool:
        raise TypeError(f"codes are {codes.dtype}: accepted are integers")
    if codes.ndim != 2 or codes.shape[1] != variables:
        raise ValueError(f"codes have shape {tuple(codes.shape)}: accepted is n x {variables}")
    if len(codes):
        low, high = (int(value) for value in codes.aminmax())
        if low < 0 or high >= categories:
            raise ValueError(f"code value {high if high >= categories else low}: accepted are 0 to {categories - 1}")
    return codes.long()


def check_integers(name: str, values: TargetLike, count: int, below: int) -> Integers:
    """``values`` as ``count`` integers in 0..below-1; a single integer stands for all of them."""
    if values is None:
        raise TypeError(f"{name} is missing: accepted are integers")
    array = values.detach().cpu().numpy() if isinstance(values, torch.Tensor) else np.asarray(values)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} has type {array.dtype}: accepted are integers")
    if array.shape not in {(), (count,)}:
        raise ValueError(f"{name} has shape {array.shape}: accepted are one integer or {count}, one an example")
    numbers = array.astype(np.int64)
    # Read without a sign a negative number is larger than any that is accepted, so one comparison is enough.
    if numbers.size and int(numbers.view(np.uint64).max()) >= below:
        wrong = array[(array < 0) | (array >= below)]
        accepted = f"are 0 to {below - 1}" if below else "is none yet"
        raise ValueError(f"{name} has the value {wrong.flat[0]}: accepted {accepted}")
    return numbers if numbers.ndim else np.full(count, numbers)


def check_at_least(name: str, value: int, least: int) -> int:
    """``value``, after making sure that it is a whole number of at least ``least``."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        raise TypeError(f"{name}={value!r}: accepted is a whole number")
    if value < least:
        raise ValueError(f"{name}={value}: accepted is a whole number of at least {least}")
    return int(value)


def check_between(name: str, value: int, least: int, most: int) -> int:
    """``value``, after making sure that it is a whole number from ``least`` to ``most``."""
    if check_at_least(name, value, least) > most:
        raise ValueError(f"{name}={value}: accepted are {least} to {most}")
    return int(value)


def check_flag(name: str, value: bool) -> bool:
    """``value``, after making sure that it is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name}={value!r}: accepted are True and False")
    return bool(value)


def check_number(name: str, value: float, *, above: float, or_equal: bool = False) -> float:
    """``value``, after making sure that it is a finite number above a bound."""
    accepted = f"accepted is a number {'of at least' if or_equal else 'above'} {above}"
    if not isinstance(value, int | float | np.number) or isinstance(value, bool):
        raise TypeError(f"{name}={value!r}: {accepted}")
    if not (above < value < math.inf or (or_equal and value == above)):  # also false of NaN
        raise ValueError(f"{name}={value}: {accepted}")
    return float(value)


def check_averaging(value: float) -> float:
    """How much of an average stays in each step, 0 for no average."""
    accepted = "accepted are numbers from 0, for none, to less than 1"
    if not isinstance(value, int | float | np.number) or isinstance(value, bool):
        raise TypeError(f"averaging={value!r}: {accepted}")
    if not 0 <= value < 1:
        raise ValueError(f"averaging={value}: {accepted}")
    return float(value)


def as_ids(values: IntegerLike | Set[int]) -> npt.NDArray[Any]:
    """One id or several as an array of one dimension; no ids at all are integers, too."""
    listed = [*values] if isinstance(values, Set) else values
    array = np.atleast_1d(listed.cpu().numpy() if isinstance(listed, torch.Tensor) else np.asarray(listed))
    return array if array.size else array.astype(np.int64)
