"""The memory: examples go in, are kept as packed codes, and come out as recollections."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, get_args
from weakref import WeakSet

import numpy as np
import torch

from recollect.budget import Bill, raw_bits
from recollect.checks import (
    IntegerLike,
    Integers,
    TargetLike,
    as_ids,
    check_at_least,
    check_between,
    check_images,
    check_integers,
)
from recollect.codecs.interface import Codec
from recollect.memory.admission import Admission, last_of_each
from recollect.memory.batch import Batch
from recollect.memory.chosen import Chosen
from recollect.memory.coding import Coding, at_once, coder_of, decoded, encoded
from recollect.memory.erasure import Erasure, matching
from recollect.memory.file import reading
from recollect.memory.index import PackedIndex
from recollect.memory.interrupts import uninterrupted
from recollect.memory.keyed import Keyed
from recollect.memory.room import coded_index, items, widths_of
from recollect.memory.rules import BY_CLASS, Rule, keyed_of, rule_of
from recollect.memory.sampling import draw, draw_from_each_task, draw_from_task
from recollect.memory.saved import commit, restored
from recollect.memory.targets import ClassLabels, Targets
from recollect.packing import Scheme, bits_per_item

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Set
    from os import PathLike

    import numpy.typing as npt

    from recollect.memory.coded_index import CodedIndex
    from recollect.memory.file import Home
    from recollect.memory.index import Slots

MOST_EXAMPLES = 2**63  # ids are integers of 64 bits
MOST_TASKS = 2**32


class Watcher(Protocol):
    """What keeps something of the examples beside a memory, and must forget with it."""

    def refresh(self) -> None:
        """Drop all that belongs to items that are not held any more."""
        ...


class Memory:
    """Keeps up to ``capacity`` examples as codes of ``codec``, laid end to end in bits; or as many as fit so many bits.

    What it holds depends on the stream and the seed alone, not on how often it is sampled.

    Args:
        codec: turns images into codes and back.
        capacity: items that are kept at most.
        capacity_bits: in place of ``capacity``, bits that codes, labels, tasks and ids may take together.
        code_bits: in place of both, bits that codes may take; with "entropy" they and the tables that it keeps.
        admission: "reservoir" (every example seen is equally likely to be held), "ring" (the most recent of each task,
            in equal shares; what cannot be shared equally stays free), "balanced" (equally many of each class) or
            "chosen" (what `keep` named last, and balanced what came since).
        classes: labels are 0 to classes - 1, in ceil(log2 classes) bits each; 256 by default.
        targets: in place of ``classes``, `RealTargets` for real numbers or `NoTargets` for a stream without labels.
        tasks: tasks are 0 to tasks - 1, in ceil(log2 tasks) bits each; 1 for a stream without tasks costs nothing.
        examples: of the whole stream at most, so that ids are 0 to examples - 1, in ceil(log2 examples) bits each. By
            default a stream has no end, and an id 64 bits, which can be more than a code.
        scheme: how codes become bits: "radix", the paper's "binary", or "entropy", by which a code takes the fewer bits
            the more often its values come. That is learned from what is held; how many items fit follows from it. It
            needs ``code_bits`` or ``capacity_bits``, and "reservoir" or "balanced".
        seed: of admission and sampling.

    >>> from recollect.codecs.pixels import ResizedPixels
    >>> memory = Memory(ResizedPixels((1, 28, 28), size=(10, 10), bits=1), capacity=50, classes=10, tasks=20)
    >>> ids = memory.write(torch.rand(80, 1, 28, 28), y=torch.arange(80) % 10, task=3)
    >>> len(memory), memory.seen
    (50, 80)
    >>> batch = memory.sample(64)
    >>> batch.x.shape, batch.y.shape
    (torch.Size([64, 1, 28, 28]), torch.Size([64]))
    >>> memory.footprint().codes
    5000
    """

    def __init__(
        self,
        codec: Codec,
        capacity: int | None = None,
        *,
        capacity_bits: int | None = None,
        code_bits: int | None = None,
        admission: Rule = "reservoir",
        classes: int | None = None,
        targets: Targets | None = None,
        tasks: int = 256,
        examples: int | None = None,
        scheme: Coding = "radix",
        seed: int = 0,
    ) -> None:
        if not isinstance(codec, Codec) or isinstance(codec, type):
            kind = f"the class {codec.__name__}" if isinstance(codec, type) else type(codec).__name__
            raise TypeError(f"codec is {kind}: accepted is a Codec, such as a DiscreteAutoencoder")
        self.codec = codec
        if targets is not None and type(targets) not in get_args(Targets):  # a file knows these, and no other
            raise TypeError(f"targets is {type(targets).__name__}: accepted are RealTargets and NoTargets")
        if classes is not None and targets is not None:
            raise ValueError(f"classes={classes} and {type(targets).__name__} are given: accepted is one of them")
        self.targets: Targets = targets or ClassLabels(256 if classes is None else classes)
        self.tasks = check_between("tasks", tasks, 1, MOST_TASKS)
        self.examples = None if examples is None else check_between("examples", examples, 1, MOST_EXAMPLES)
        if admission in BY_CLASS and not self.classes:
            raise ValueError(
                f"admission={admission!r} counts classes, which {type(targets).__name__} are not: "
                f"accepted are 'reservoir' and 'ring'"
            )
        if scheme not in (accepted := [*get_args(Scheme), "entropy"]):
            raise ValueError(f"scheme={scheme!r}: accepted are {', '.join(map(repr, accepted))}")
        self.scheme: Coding = scheme
        self.admission: Rule = admission
        # Two generators, so that sampling does not change what is admitted.
        seeds = np.random.SeedSequence(check_at_least("seed", seed, 0)).spawn(2)
        self._admission_rng, self._sample_rng = (np.random.Generator(np.random.PCG64(child)) for child in seeds)
        widths = widths_of(codec, self.targets, self.tasks, self.examples, scheme)
        room = {"capacity": capacity, "capacity_bits": capacity_bits, "code_bits": code_bits}
        self.capacity = 0  # where it is not known
        self._index: PackedIndex | CodedIndex
        self._admission: Admission | Keyed
        if scheme == "entropy":
            self._index = coded_index(room, coder_of(codec), widths)
            self._admission = keyed_of(admission, self._index, self._admission_rng)
        else:
            self.capacity = items(room, widths)
            try:
                self._index = PackedIndex(self.capacity, **widths)
            except MemoryError:
                size = PackedIndex.bytes_of(self.capacity, widths)
                raise MemoryError(f"{self.capacity:,} items take {size:,} bytes, more than can be had") from None
            self._admission = rule_of(admission, self.capacity, self.classes, self._index)
        self.seen = 0
        self.audit: tuple[Erasure, ...] = ()
        self.watchers: WeakSet[Watcher] = WeakSet()  # are told when items were forgotten
        self._home: Home | None = None  # where it was last committed
        self._tried: Home | None = None  # where it last was to be, though the commit may have been interrupted
        self._seen_at_home = 0

    def __len__(self) -> int:
        return self._admission.held

    @property
    def classes(self) -> int:
        """How many classes labels are of; 0 where targets are no classes."""
        return self.targets.classes

    @property
    def bits_per_item(self) -> int:
        """Bits of one stored code; by entropy the mean over those held, with their tables, rounded up."""
        return self._index.bits_per_item

    @property
    def radix_bits(self) -> int:
        """Bits of one code by the scheme "radix", the fewest that all could have if all had the same."""
        return bits_per_item(variables=self.codec.variables, categories=self.codec.categories)

    @property
    def _slots(self) -> Slots:
        """Where all items are, in the order of ``ids``."""
        return self._admission.slots(np.arange(len(self)))

    @property
    def ids(self) -> torch.Tensor:
        """The ids of all examples held."""
        return torch.from_numpy(self._index.ids.read_integers(self._slots))

    def write(self, x: torch.Tensor, y: TargetLike = None, task: IntegerLike = 0) -> torch.Tensor:
        """Show examples to the memory. Returns an id for each; those that the admission rule keeps are stored.

        Ids count the examples seen, from 0. After an error the memory is as it was before; Ctrl-C that comes while
        records are written is raised when they are.
        """
        return self.write_checked(*self.check(x, y, task))

    def write_checked(self, x: torch.Tensor, targets: npt.NDArray[Any], tasks: Integers) -> torch.Tensor:
        """`write` for what `check` gave back, without another check."""
        rule, ids = self._admission, np.arange(self.seen, self.seen + len(x))
        if isinstance(rule, Keyed):
            rows = rule.wanted(ids, targets)
            codes = encoded(self.codec, x[torch.from_numpy(rows)], self.scheme)
            records = rule.index.records(codes, self.targets.to_rows(targets[rows]), tasks[rows], ids[rows])
            with uninterrupted():
                rule.take(records, ids[rows], targets[rows])
                self.seen += len(x)
            return torch.from_numpy(ids)
        random_state = self._admission_rng.bit_generator.state
        try:
            slots = rule.decide(targets, tasks, self._admission_rng)
            rows = last_of_each(slots)
            records = None  # as most often in a long stream, where few examples are kept
            if len(rows):
                codes = encoded(self.codec, x[torch.from_numpy(rows)], self.scheme)
                records = slots[rows], codes, self.targets.to_rows(targets[rows]), tasks[rows], ids[rows]
        except BaseException:
            self._admission_rng.bit_generator.state = random_state
            raise
        with uninterrupted():
            rule.commit()
            self.seen += len(x)
            if records is not None:
                rule.index.write(*records)
        return torch.from_numpy(ids)

    def check(
        self, x: torch.Tensor, y: TargetLike = None, task: IntegerLike = 0
    ) -> tuple[torch.Tensor, npt.NDArray[Any], Integers]:
        """Make sure that `write` would take these examples, without writing them."""
        x = check_images(x, self.codec.shape)
        if self.examples is not None and self.seen + len(x) > self.examples:
            raise ValueError(
                f"{len(x)} examples after {self.seen}: accepted are {self.examples} in all, for which the memory was "
                f"made (examples={self.examples})"
            )
        targets = self.targets.check(y, len(x))
        tasks = check_integers("task", task, len(x), self.tasks)
        self._admission.check(tasks)
        return x, targets, tasks

    def sample(self, n: int, *, task: int | None = None, replace: bool = True) -> Batch:
        """``n`` recollections drawn evenly from all items, or from those of one task.

        With replacement by default, as soon as there is one item; without it there must be ``n``.
        """
        n = check_at_least("n", n, 1)
        with self._same_draws_after_an_error() as rng:
            if task is None:
                slots = draw(n, self._admission, rng, replace=replace)
            else:
                number = int(check_integers("task", task, 1, self.tasks)[0])
                slots = draw_from_task(n, number, self._admission, self._index.tasks, rng, replace=replace)
            return self._recollect(slots)

    def sample_tasks(self, most: int | None = None, *, but: Collection[int] = ()) -> Batch | None:
        """Recollections of each task held, one task after the other in one batch; None if there are none.

        All items of a task or ``most`` of them, drawn without replacement; tasks in ``but`` are left out.
        """
        if most is not None:
            most = check_at_least("most", most, 1)
        with self._same_draws_after_an_error() as rng:
            slots = draw_from_each_task(most, but, self._admission, self._index.tasks, rng)
            return self._recollect(slots) if len(slots) else None

    def recollections(self) -> Batch | None:
        """All that is held, in the order of ``ids``; None if that is nothing."""
        return self._recollect(self._slots) if len(self) else None

    def shuffled(self, size: int) -> Iterator[Batch]:
        """All that is held, each item once, in an order drawn anew: a few recollections after the other.

        >>> from recollect.codecs.pixels import RawPixels
        >>> memory = Memory(RawPixels((1, 8, 8)), capacity=50)
        >>> ids = memory.write(torch.rand(20, 1, 8, 8), y=torch.arange(20))
        >>> [len(batch.ids) for batch in memory.shuffled(8)]
        [8, 8, 4]
        """
        size = check_at_least("size", size, 1)
        slots = (
            draw(len(self), self._admission, self._sample_rng, replace=False) if len(self) else np.empty(0, np.int64)
        )
        return (self._recollect(slots[start : start + size]) for start in range(0, len(slots), size))

    @contextmanager
    def _same_draws_after_an_error(self) -> Iterator[np.random.Generator]:
        state = self._sample_rng.bit_generator.state
        try:
            yield self._sample_rng
        except BaseException:
            self._sample_rng.bit_generator.state = state
            raise

    def keep(self, ids: IntegerLike) -> None:
        """Choose what stays, with the admission "chosen": these items, in this order, and no others.

        What is written from then on takes the other slots, balanced by class, until the next choice. An item that is
        not held is an error, and changes nothing.

        >>> from recollect.codecs.pixels import RawPixels
        >>> memory = Memory(RawPixels((1, 8, 8)), capacity=50, admission="chosen")
        >>> ids = memory.write(torch.rand(50, 1, 8, 8), y=torch.arange(50) % 10)
        >>> memory.keep([30, 10, 20])
        >>> memory.ids
        tensor([30, 10, 20])
        """
        if not isinstance(self._admission, Chosen):
            raise ValueError(f"admission={self.admission!r}: accepted is 'chosen', the others choose by themselves")
        numbers = as_ids(ids)
        wanted = check_integers("ids", numbers, len(numbers), self.seen).tolist()
        ranks = {held: rank for rank, held in enumerate(self.ids.tolist())}
        if unknown := [number for number in wanted if number not in ranks]:
            raise ValueError(f"ids has the value {unknown[0]}: accepted are ids of items that are held")
        if len(set(wanted)) < len(wanted):
            raise ValueError("ids has a value twice: accepted is each item once")
        with uninterrupted():
            self._admission.keep(np.array([ranks[number] for number in wanted], np.int64))

    def forget(
        self, *, ids: IntegerLike | Set[int] | None = None, task: int | None = None, label: int | None = None
    ) -> int:
        """Erase the items for which all that is given holds, and say how many they were.

        They are gone from this memory at once, and from its file with the next `commit`. Examples that are not held
        any more are no error; ids that were not given out yet are, and nothing is erased then. What the admission rule
        promises holds for all other examples as before. A line in ``audit`` says when, how many and by which rule.

        >>> from recollect.codecs.pixels import RawPixels
        >>> memory = Memory(RawPixels((1, 8, 8)), capacity=50)
        >>> ids = memory.write(torch.rand(50, 1, 8, 8), y=torch.arange(50) % 10)
        >>> memory.forget(ids=[3, 4]), memory.forget(label=7), len(memory)
        (2, 5, 43)
        """
        rules = {"ids": ids, "task": task, "label": label}
        gone = matching(self._index, self._slots, rules, {"ids": self.seen, "task": self.tasks, "label": self.classes})
        with uninterrupted():
            if len(gone):
                self._admission.forget(gone)
            self.audit += (Erasure.now(len(gone), rules),)
        if len(gone):
            for watcher in self.watchers:
                watcher.refresh()
        return len(gone)

    def commit(self, path: str | PathLike[str]) -> None:
        """Make the memory durable: its records, counters, random state and codec, in one transaction.

        A new file takes all of it; in the file that it was last committed to, or opened from, only what changed is
        written. A file has one writer: if another changed it in between, that is an error and nothing is written. A
        learner that was saved in the file stays in it, as long as the memory has seen nothing since.
        """
        commit(self, Path(path), {})

    @classmethod
    def open(cls, path: str | PathLike[str], *, codec: Codec | None = None) -> Self:
        """The memory as it was last committed to a file.

        Args:
            path: the file.
            codec: for a memory with a codec of your own, one made as it was; weights are taken from the file.

        >>> import tempfile
        >>> from recollect.codecs.pixels import RawPixels
        >>> memory = Memory(RawPixels((1, 8, 8)), capacity=50)
        >>> ids = memory.write(torch.rand(20, 1, 8, 8), y=torch.arange(20))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     memory.commit(f"{folder}/memory.rec")
        ...     len(Memory.open(f"{folder}/memory.rec"))
        20
        """
        if not isinstance(codec, Codec | None):
            raise TypeError(f"codec is {type(codec).__name__}: accepted is a Codec, such as DiscreteAutoencoder")
        with reading(Path(path)) as reader:
            return restored(cls, reader, codec)

    def footprint(self) -> Bill:
        """Every bit that is held, by kind. All kinds but the codec's add up to the bytes of the arrays."""
        bits = self._index.bits(len(self))
        return Bill(
            **bits,
            free=8 * self._index.nbytes - sum(bits.values()),
            codec=self.codec.storage_bits,
            example=raw_bits(self.codec.shape),
        )

    def _recollect(self, slots: Slots) -> Batch:
        targets = self.targets.read(self._index.labels, slots)
        tasks, ids = (torch.from_numpy(array.read_integers(slots)) for array in (self._index.tasks, self._index.ids))
        rows, size = self._index.codes.read(slots), at_once(self.codec)
        parts = (rows[start : start + size] for start in range(0, len(rows), size))
        images = [decoded(self.codec, part, self.scheme) for part in parts]
        return Batch(images[0] if len(images) == 1 else torch.cat(images), targets, tasks, ids)


def check_memory(memory: Memory) -> Memory:
    """Refuse what is no memory, such as a module in its place."""
    if not isinstance(memory, Memory):
        raise TypeError(f"memory is {type(memory).__name__}: accepted is a Memory")
    return memory
