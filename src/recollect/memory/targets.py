"""What is kept of y beside a code: a class, real numbers, or nothing.

Each kind knows the ``bits`` of a target and how many ``classes`` there are, 0 where targets are none. It can `check`
what is given as y, make fields of it, which are rows of bytes with the highest bit first, and `read` them again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from recollect.checks import check_at_least, check_between, check_integers
from recollect.memory.index import integer_rows
from recollect.packing import bits_for
from recollect.rebuild import described, rebuildable, rebuilt

if TYPE_CHECKING:
    from recollect.checks import Reals, TargetLike
    from recollect.memory.index import BitArray, Rows, Slots
    from recollect.rebuild import Plain

MOST_CLASSES = 2**32
FLOATS = {16: np.dtype(">f2"), 32: np.dtype(">f4")}  # highest byte first, as all fields are written
MOST_BITS = 32
LARGEST = float(np.finfo(np.float32).max)
MOST_SIDES = 8


class ClassLabels:
    """Labels 0 to classes - 1 in ceil(log2 classes) bits: what a memory keeps by default."""

    def __init__(self, classes: int) -> None:
        self.classes = check_between("classes", classes, 1, MOST_CLASSES)
        self.bits = bits_for(self.classes)

    def check(self, y: TargetLike, count: int) -> npt.NDArray[np.int64]:
        """One label for all examples, or one for each."""
        return check_integers("y", y, count, self.classes)

    def to_rows(self, values: npt.NDArray[Any]) -> Rows:
        """The number."""
        return integer_rows(values, self.bits)

    def read(self, fields: BitArray, slots: Slots) -> torch.Tensor:
        """The number."""
        labels = fields.read_integers(slots)
        if labels.max(initial=0) >= self.classes:
            raise ValueError(f"labels of {self.classes} and above")
        return torch.from_numpy(labels)


@rebuildable
class RealTargets:
    """Real numbers, such as what a regression is to predict: one an example, or an array of them.

    Recollections have them as float32. As float32 they are kept exactly, in fewer bits rounded to the nearest number
    that these can hold.

    Args:
        shape: of a target; by default it is a single number, with (2,) a vector of two.
        bits: of each number: 32 or 16, for float32 and float16; with ``between`` 1 to 32.
        between: the least and the largest number that there will be. Kept is then the nearest of 2^bits evenly spaced
            ones from the least to the largest.

    >>> import recollect as rc
    >>> memory = rc.Memory(rc.RawPixels((1, 8, 8)), capacity=50, targets=rc.RealTargets((2,), bits=2, between=(0, 3)))
    >>> ids = memory.write(torch.rand(2, 1, 8, 8), y=torch.tensor([[0.2, 3.0], [1.6, 1.0]]))
    >>> memory.recollections().y
    tensor([[0., 3.],
            [2., 1.]])
    >>> memory.footprint().labels
    8
    """

    classes = 0

    def __init__(
        self, shape: Sequence[int] = (), *, bits: int = 32, between: tuple[float, float] | None = None
    ) -> None:
        if isinstance(shape, int) or len(shape) > MOST_SIDES:
            raise ValueError(f"shape={shape!r}: accepted are up to {MOST_SIDES} whole numbers, such as () and (2,)")
        self.shape = tuple(check_at_least(f"shape={tuple(shape)}, of which one", size, 1) for size in shape)
        self.bits_a_number = check_at_least("bits", bits, 1)
        if between is None and bits not in FLOATS:
            raise ValueError(f"bits={bits}: accepted are 32 and 16, and 1 to 32 if ``between`` is given")
        if between is not None:
            if not isinstance(between, Sequence) or len(between) != 2:
                raise ValueError(f"between={between!r}: accepted are two numbers, the lower one first")
            low, high = map(float, between)
            if bits > MOST_BITS:
                raise ValueError(f"bits={bits}: accepted are 1 to {MOST_BITS}")
            if not -LARGEST <= low < high <= LARGEST:
                raise ValueError(f"between={between}: accepted are two numbers, the lower one first, up to {LARGEST:g}")
            self.between = low, high
        else:
            self.between = None
        self.bits = math.prod(self.shape) * self.bits_a_number

    def check(self, y: TargetLike, count: int) -> Reals:
        """One target for all examples, or one for each."""
        if isinstance(y, torch.Tensor):
            y = (y.float() if y.is_floating_point() else y).detach().cpu().numpy()  # numpy has no bfloat16
        array = np.asarray(y)
        if array.dtype.kind not in "biuf":
            raise TypeError(f"y has type {array.dtype}: accepted are real numbers")
        if array.shape not in {self.shape, (count, *self.shape)}:
            raise ValueError(
                f"y has shape {array.shape}: accepted are {(count, *self.shape)}, one target an example, "
                f"or {self.shape}, one for all"
            )
        values = np.broadcast_to(array, (count, *self.shape)).astype(np.float32)
        low, high = self.between or (-self._largest, self._largest)
        wrong = ~((values >= low) & (values <= high))  # also where there is no number
        if wrong.any():
            raise ValueError(f"y has the value {values[wrong][0]}: accepted are {low:g} to {high:g}")
        return values

    @property
    def _largest(self) -> float:
        return float(np.finfo(FLOATS[self.bits_a_number]).max)

    def to_rows(self, values: npt.NDArray[Any]) -> Rows:
        """Number after number."""
        flat = values.reshape(len(values), math.prod(self.shape))
        if self.between is None:
            return flat.astype(FLOATS[self.bits_a_number]).view(np.uint8)
        low, high = self.between
        levels = ((flat.astype(np.float64) - low) / (high - low) * self._top).round().clip(0, self._top)
        bits = levels.astype(np.uint64)[:, :, None] >> self._places & np.uint64(1)
        return np.packbits(bits.reshape(len(values), self.bits).astype(np.bool_), axis=1)

    def read(self, fields: BitArray, slots: Slots) -> torch.Tensor:
        """The numbers as float32."""
        rows = fields.read(slots)
        if self.between is None:
            values = rows.view(FLOATS[self.bits_a_number]).astype(np.float32)
            if not np.isfinite(values).all():
                raise ValueError("targets that are no finite numbers")
        else:
            low, high = self.between
            bits = np.unpackbits(rows, axis=1, count=self.bits).reshape(len(rows), -1, self.bits_a_number)
            levels = (bits.astype(np.uint64) << self._places).sum(-1)
            values = (low + levels / self._top * (high - low)).astype(np.float32)
        return torch.from_numpy(values.reshape(len(rows), *self.shape))

    @property
    def _top(self) -> int:
        return 2**self.bits_a_number - 1

    @property
    def _places(self) -> npt.NDArray[np.uint64]:
        return np.arange(self.bits_a_number - 1, -1, -1, dtype=np.uint64)


@rebuildable
class NoTargets:
    """Nothing, for a stream without labels: 0 bits, and recollections whose y is n x 0.

    >>> import recollect as rc
    >>> memory = rc.Memory(rc.RawPixels((1, 8, 8)), capacity=50, targets=rc.NoTargets())
    >>> ids = memory.write(torch.rand(20, 1, 8, 8))
    >>> memory.sample(5).y.shape, memory.footprint().labels
    (torch.Size([5, 0]), 0)
    """

    classes = bits = 0

    def __init__(self) -> None: ...  # for a file to see that there are no arguments

    def check(self, y: TargetLike, count: int) -> Reals:
        """There is none."""
        if y is not None:
            raise ValueError(f"y is a {type(y).__name__}: accepted is None, since the memory keeps no targets")
        return np.empty((count, 0), np.float32)

    def to_rows(self, values: npt.NDArray[Any]) -> Rows:
        """No bytes."""
        return np.empty((len(values), 0), np.uint8)

    def read(self, fields: BitArray, slots: Slots) -> torch.Tensor:
        """No numbers."""
        return torch.empty(len(slots), 0)


Targets = ClassLabels | RealTargets | NoTargets
KINDS = {kind.__name__ for kind in (RealTargets, NoTargets)}  # that a file describes; it only counts classes


def targets_described(targets: Targets) -> Plain:
    """What a file says of targets that are no classes: nothing of those that are."""
    return {} if targets.classes else {"targets": described(targets)}


def targets_rebuilt(description: Plain) -> Targets:
    """Targets as a file describes them."""
    if description["class"] not in KINDS:
        raise ValueError(f"targets that are {description['class']}: accepted are {' and '.join(sorted(KINDS))}")
    return rebuilt(description)
