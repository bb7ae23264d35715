"""The memory: bill, sampling, determinism, and what it refuses."""

from __future__ import annotations

import math
import signal
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from recollect import (
    JPEG,
    BudgetError,
    Codec,
    ContinuousAutoencoder,
    DiscreteAutoencoder,
    Memory,
    RawPixels,
    ResizedPixels,
)
from recollect.memory.coding import Coding
from recollect.memory.rules import Rule

SHAPE = (1, 12, 12)
RULES: tuple[Rule, ...] = ("reservoir", "ring", "balanced", "chosen")
CODECS = {
    "raw": lambda: RawPixels(SHAPE),
    "resized": lambda: ResizedPixels(SHAPE, size=(5, 5), bits=1),
    "jpeg": lambda: JPEG(SHAPE, bits=400),
    "autoencoder": lambda: DiscreteAutoencoder(SHAPE, 8, 3),
    "continuous": lambda: ContinuousAutoencoder(SHAPE, 8),
}


def stream(n: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randint(0, 256, (n, *SHAPE), generator=generator) / 255
    y = torch.randint(0, 10, (n,), generator=generator)
    return x, y, torch.arange(n) * 4 // n


def filled(codec: Codec, n: int = 100, **settings: object) -> Memory:
    memory = Memory(codec, **({"capacity": 40, "classes": 10, "tasks": 4} | settings))  # pyright: ignore[reportArgumentType]
    for part in zip(*(tensor.split(7) for tensor in stream(n)), strict=True):
        memory.write(*part)
    return memory


def state(memory: Memory) -> tuple[object, ...]:
    """All that can be seen of a memory, and what it would do next."""
    arrays = [array.buffer.copy().tolist() for array in memory._index.arrays.values()]
    generators = [rng.bit_generator.state for rng in (memory._admission_rng, memory._sample_rng)]
    return (arrays, len(memory), memory.seen, memory.ids.tolist(), generators, memory.footprint())


@pytest.mark.parametrize("rule", RULES)
def test_what_comes_out_is_what_was_put_in(rule: Rule):
    memory = filled(RawPixels(SHAPE), admission=rule)
    x, y, task = stream(100)
    batch = memory.sample(len(memory), replace=False)
    assert torch.equal(batch.x, x[batch.ids])
    assert torch.equal(batch.y, y[batch.ids])
    assert torch.equal(batch.task, task[batch.ids])
    assert sorted(batch.ids.tolist()) == sorted(memory.ids.tolist())
    assert len(memory) == 40
    assert memory.seen == 100


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("codec", CODECS)
def test_the_bill_is_what_is_held(codec: str, rule: Rule):
    for n in (3, 100):
        memory = filled(CODECS[codec](), n=n, admission=rule)
        bill, held = memory.footprint(), len(memory)
        assert bill.codes == held * memory.bits_per_item
        assert bill.labels == held * 4
        assert bill.tasks == held * 2
        assert bill.ids == held * 64
        assert bill.codec == memory.codec.storage_bits
        buffers = [array.buffer.nbytes for array in memory._index.arrays.values()]
        assert bill.incremental == 8 * sum(buffers)
        assert memory._index.codes.nbytes == math.ceil(40 * memory.bits_per_item / 8)
    assert memory.footprint().free < 4 * 8  # full: only the last byte of each array has room


def test_a_memory_of_5000_codes_of_620x3_fits_the_storage_of_200_cifar_images():
    with torch.device("meta"):
        codec = DiscreteAutoencoder((3, 32, 32), 620, 3)
    memory = Memory(codec, capacity=5000)
    assert memory._index.codes.nbytes * 8 <= 200 * 24_576


@settings(max_examples=80)
@given(st.integers(1, 30_000), st.integers(1, 20), st.integers(1, 300), st.integers(1, 300))
def test_a_capacity_in_bits_is_used_up_and_never_exceeded(bits: int, size: int, classes: int, tasks: int):
    codec = ResizedPixels((1, 28, 28), size=(size, size), bits=1)
    smallest = Memory(codec, capacity=1, classes=classes, tasks=tasks)
    if smallest.footprint().incremental > bits:
        with pytest.raises(BudgetError, match="accepted is room for at least one item"):
            Memory(codec, capacity_bits=bits, classes=classes, tasks=tasks)
        return
    memory = Memory(codec, capacity_bits=bits, classes=classes, tasks=tasks)
    assert memory.footprint().incremental <= bits
    larger = Memory(codec, capacity=memory.capacity + 1, classes=classes, tasks=tasks)
    assert larger.footprint().incremental > bits


@pytest.mark.parametrize("rule", RULES)
def test_sampling_is_even(rule: Rule):
    memory = filled(ResizedPixels(SHAPE, size=(2, 2), bits=1), admission=rule)
    ids = memory.sample(20_000).ids
    counts = np.bincount(ids, minlength=100)[memory.ids]
    assert counts.sum() == 20_000
    assert chisquare(counts).pvalue > 1e-3

    members = memory.sample(40, replace=False)
    members = members.ids[members.task == 2]
    counts = np.bincount(memory.sample(5000, task=2).ids, minlength=100)[members]
    assert counts.sum() == 5000
    assert chisquare(counts).pvalue > 1e-3

    pairs = np.concatenate([memory.sample(2, task=2, replace=False).ids for _ in range(2000)])
    assert chisquare(np.bincount(pairs, minlength=100)[members]).pvalue > 1e-3


@pytest.mark.parametrize("task", [None, 1])
def test_without_replacement_nothing_comes_twice(task: int | None):
    memory = filled(RawPixels(SHAPE))
    all_of_them = len(memory) if task is None else int((memory.sample(40, replace=False).task == task).sum())
    for n in (1, all_of_them // 2, all_of_them):
        assert len(set(memory.sample(n, task=task, replace=False).ids.tolist())) == n
    with pytest.raises(ValueError, match=f"n={all_of_them + 1} without replacement: accepted are 1 to {all_of_them}"):
        memory.sample(all_of_them + 1, task=task, replace=False)


@pytest.mark.parametrize("rule", RULES)
def test_everything_follows_from_the_seed_and_sampling_does_not_change_what_is_held(rule: Rule):
    first, second = (filled(RawPixels(SHAPE), admission=rule, seed=5) for _ in range(2))
    assert torch.equal(first.sample(30).ids, second.sample(30).ids)
    first.sample(100)
    for memory in (first, second):
        memory.write(*stream(50, seed=1))
    assert torch.equal(first.ids, second.ids)
    if rule != "ring":  # a ring draws nothing
        assert not torch.equal(filled(RawPixels(SHAPE), admission=rule, seed=6).ids, filled(RawPixels(SHAPE)).ids)


@pytest.mark.parametrize("rule", RULES)
def test_an_empty_memory_is_empty(rule: Rule):
    memory = Memory(RawPixels(SHAPE), capacity=5, admission=rule)
    assert len(memory) == len(memory.ids) == 0


def test_recollections_can_be_written_again():
    memory = Memory(ResizedPixels((1, 28, 28), size=(1, 1), bits=1), capacity=5)
    memory.write(torch.ones(1, 1, 28, 28), 0)
    memory.write(memory.sample(1).x, 0)
    assert len(memory) == 2


def test_a_stream_without_tasks_pays_nothing_for_them():
    memory = Memory(RawPixels(SHAPE), capacity=10, classes=1, tasks=1)
    memory.write(torch.rand(5, *SHAPE), 0)
    bill = memory.footprint()
    assert bill.tasks == bill.labels == 0
    assert memory.sample(5, task=0).task.tolist() == [0] * 5


@pytest.mark.parametrize("scheme", ["radix", "entropy"])
@pytest.mark.parametrize("examples", [100, 128, 129, 2**40])
def test_in_a_stream_of_known_length_ids_are_as_short_as_it_allows(examples: int, scheme: Coding):
    codec = ResizedPixels(SHAPE, size=(3, 3), bits=2)
    room = {"capacity": None, "code_bits": 500, "scheme": scheme}
    endless, short = filled(codec, **room), filled(codec, examples=examples, **room)
    assert short.footprint().ids == math.ceil(math.log2(examples)) * len(short)
    assert endless.footprint().ids == 64 * len(endless)
    for memory in (endless, short):
        memory.forget(ids=range(0, 100, 3))
    assert short.ids.tolist() == endless.ids.tolist()
    assert short.sample(20).ids.tolist() == endless.sample(20).ids.tolist()


def test_short_ids_leave_room_for_more_items():
    codec, most = ResizedPixels(SHAPE, size=(5, 5), bits=1), 10_000
    endless, short = (Memory(codec, capacity_bits=most, classes=10, tasks=4, examples=n) for n in (None, 2**20))
    assert endless.capacity == most // (25 + 4 + 2 + 64)
    assert short.capacity == most // (25 + 4 + 2 + 20)


@pytest.mark.parametrize("rule", RULES)
def test_a_stream_that_is_longer_than_was_said_is_named(rule: Rule):
    memory = filled(RawPixels(SHAPE), n=98, admission=rule, examples=100)
    before = state(memory)
    with pytest.raises(ValueError, match=r"3 examples after 98: accepted are 100 in all, .*\(examples=100\)"):
        memory.write(X, 0, 0)
    assert state(memory) == before
    assert memory.write(X[:2], 0, 0).tolist() == [98, 99]


class Wrong(RawPixels):
    """A codec whose codes are not what it says."""

    def __init__(self, change: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__(SHAPE)
        self.change = change

    def encode(self, x: torch.Tensor) -> torch.Tensor:
        return self.change(super().encode(x))


WRONG: list[tuple[Callable[[torch.Tensor], torch.Tensor], type[Exception], str]] = [
    (lambda codes: codes + 1, ValueError, "code value 256: accepted are 0 to 255"),
    (lambda codes: codes[:, 1:], ValueError, r"codes have shape \(3, 143\): accepted is n x 144"),
    (lambda codes: codes[1:], ValueError, "the codec gave 2 codes: accepted is one for each of 3 images"),
    (lambda codes: codes / 2, TypeError, "codes are torch.float32: accepted are integers"),
]


X = torch.full((3, *SHAPE), 1.0)
BAD = [
    ((torch.rand(3, 1, 12, 11), 0, 0), ValueError, r"x has shape \(3, 1, 12, 11\): accepted is n x 1 x 12 x 12"),
    ((torch.rand(1, 12, 12), 0, 0), ValueError, "x has shape"),
    ((torch.zeros(3, *SHAPE, dtype=torch.uint8), 0, 0), TypeError, "x is torch.uint8: accepted is a floating point"),
    ((np.zeros((3, *SHAPE)), 0, 0), TypeError, "x is ndarray"),
    ((X * 255, 0, 0), ValueError, r"values from 255.0 to 255.0: accepted are values in \[0, 1\]"),
    ((X - 1.5, 0, 0), ValueError, "values from -0.5"),
    ((X * torch.nan, 0, 0), ValueError, "nan to nan: .* no NaN"),
    ((X[:0], 0, 0), ValueError, r"shape \(0, .*: accepted is at least one example"),
    ((X, 10, 0), ValueError, "y has the value 10: accepted are 0 to 9"),
    ((X, [0, -1, 2], 0), ValueError, "y has the value -1"),
    ((X, [0, 1], 0), ValueError, r"y has shape \(2,\): accepted are one integer or 3"),
    ((X, torch.tensor([0.0, 1, 2]), 0), TypeError, "y has type float32: accepted are integers"),
    ((X, 0, 4), ValueError, "task has the value 4: accepted are 0 to 3"),
]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("arguments", "kind", "message"), BAD, ids=[message for _, _, message in BAD])
def test_bad_input_is_named_and_changes_nothing(
    arguments: tuple[object, ...], kind: type[Exception], message: str, rule: Rule
):
    memory = filled(RawPixels(SHAPE), admission=rule)
    before = state(memory)
    with pytest.raises(kind, match=message):
        memory.write(*arguments)  # pyright: ignore[reportArgumentType]
    assert state(memory) == before


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("change", "kind", "message"), WRONG)
def test_a_codec_that_errs_changes_nothing(
    change: Callable[[torch.Tensor], torch.Tensor], kind: type[Exception], message: str, rule: Rule
):
    memory = filled(RawPixels(SHAPE), n=35, admission=rule)  # with room for more, so that every rule keeps the next
    memory.codec = Wrong(change)
    before = state(memory)
    with pytest.raises(kind, match=message):
        memory.write(X, 3, 3)
    assert state(memory) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"capacity": 0}, "capacity=0: accepted is a whole number of at least 1"),
        ({"capacity": None}, "capacity=None, capacity_bits=None, code_bits=None: accepted is one of them"),
        ({"capacity_bits": 5000}, "accepted is one of them"),
        ({"capacity": None, "capacity_bits": 1200}, r"capacity_bits=1200: .* 1226 bits \(1152 code bits, 8 label bits"),
        ({"capacity": None, "capacity_bits": 0}, "capacity_bits=0"),
        ({"admission": "fifo"}, "admission='fifo': accepted are 'reservoir', 'ring', 'balanced', 'chosen'"),
        ({"classes": 0}, "classes=0"),
        ({"tasks": 0}, "tasks=0"),
        ({"tasks": 2**65}, "accepted are 1 to 4294967296"),
        ({"examples": 0}, "examples=0: accepted is a whole number of at least 1"),
        ({"examples": 2**64}, "examples=18446744073709551616: accepted are 1 to 9223372036854775808"),
        ({"seed": -1}, "seed=-1: accepted is a whole number of at least 0"),
        ({"scheme": "gray"}, "scheme='gray'"),
    ],
)
def test_memories_that_cannot_be(arguments: dict[str, object], message: str):
    with pytest.raises(ValueError, match=message):
        Memory(RawPixels(SHAPE), **({"capacity": 40, "tasks": 4} | arguments))  # pyright: ignore[reportArgumentType]


def test_sampling_refuses_what_is_not_there():
    memory = Memory(RawPixels(SHAPE), capacity=10)
    with pytest.raises(ValueError, match="n=1: there are no items held"):
        memory.sample(1)
    with pytest.raises(ValueError, match="there are no items held of task 0"):
        memory.sample(1, task=0)
    memory.write(X, 0, task=2)
    before = state(memory)
    with pytest.raises(ValueError, match="there are no items held of task 3"):
        memory.sample(1, task=3)
    with pytest.raises(ValueError, match="accepted are 1 to 3, the items held of task 2"):
        memory.sample(4, task=2, replace=False)
    assert state(memory) == before
    with pytest.raises(ValueError, match="task has the value 256: accepted are 0 to 255"):
        memory.sample(1, task=256)
    with pytest.raises(ValueError, match="n=0: accepted is a whole number of at least 1"):
        memory.sample(0)


def test_no_ids_are_none():
    memory = Memory(RawPixels((1, 2, 2)), capacity=5, admission="chosen")
    with pytest.raises(ValueError, match="ids has the value 0: accepted is none yet"):
        memory.forget(ids=[0])
    memory.write(torch.rand(3, 1, 2, 2), y=0)
    assert memory.forget(ids=[]) == 0
    memory.keep([])
    assert len(memory) == 0


class Halves:
    """A codec of one's own, whose shape is a list."""

    shape, variables, categories, storage_bits = [1, 4, 4], 8, 2, 0

    def encode(self, x: torch.Tensor) -> torch.Tensor:
        return (x[:, :, :2] > 0.5).long().flatten(1)

    def decode(self, codes: torch.Tensor) -> torch.Tensor:
        upper = codes.float().view(-1, 1, 2, 4)
        return torch.cat([upper, upper], 2)


def test_a_codec_of_ones_own_may_have_a_list_for_a_shape():
    memory = Memory(Halves(), capacity=5)  # pyright: ignore[reportArgumentType]
    memory.write(torch.rand(3, 1, 4, 4), y=0)
    assert memory.sample(2).x.shape == (2, 1, 4, 4)


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
def test_no_codes_are_no_images(codec: Callable[[], Codec]):
    made = codec()
    assert made.decode(torch.empty(0, made.variables, dtype=torch.long)).shape == (0, *made.shape)


class Interrupted:
    """Sends Ctrl-C while records are written."""

    def __init__(self, write: Callable[..., None]) -> None:
        self.write = write

    def __call__(self, *args: object) -> None:
        signal.raise_signal(signal.SIGINT)
        self.write(*args)


@pytest.fixture
def heard() -> Iterator[None]:
    """Ctrl-C is an exception, also where the tests run in the background of a shell, which has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("scheme", ["radix", "entropy"])
def test_an_interrupt_waits_until_records_are_whole(scheme: Coding, monkeypatch: pytest.MonkeyPatch):
    codec = ResizedPixels((1, 8, 8), size=(4, 4), bits=2)
    memory, other = (Memory(codec, code_bits=700, scheme=scheme, seed=3) for _ in range(2))
    x = torch.rand(60, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    for part in (slice(0, 30), slice(30, 60)):
        other.write(x[part], torch.arange(30) % 10)
    memory.write(x[:30], torch.arange(30) % 10)
    with monkeypatch.context() as patched:
        rule = memory._admission
        name = "take" if scheme == "entropy" else "commit"
        patched.setattr(rule, name, Interrupted(getattr(rule, name)))
        with pytest.raises(KeyboardInterrupt):
            memory.write(x[30:], torch.arange(30) % 10)
    assert memory.seen == 60
    one, same = memory.recollections(), other.recollections()
    assert one is not None
    assert same is not None
    assert all(torch.equal(getattr(one, name), getattr(same, name)) for name in ("x", "y", "task", "ids"))
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)  # as ever after it


def test_recollections_of_any_codec_have_no_gradient():
    class Own(torch.nn.Module):
        shape, variables, categories, storage_bits = (1, 2, 2), np.int64(4), np.int64(2), 0

        def __init__(self) -> None:
            super().__init__()
            self.brightness = torch.nn.Parameter(torch.tensor(0.5))

        def encode(self, x: torch.Tensor) -> torch.Tensor:
            return (x * self.brightness > 0.25).long().flatten(1)

        def decode(self, codes: torch.Tensor) -> torch.Tensor:
            return codes.view(-1, 1, 2, 2) * self.brightness

    memory = Memory(Own(), capacity=3)  # pyright: ignore[reportArgumentType]
    memory.write(torch.rand(5, 1, 2, 2), 0)
    assert not memory.sample(4).x.requires_grad


def test_what_a_sample_is_asked_for_may_be_a_small_number_of_numpy():
    memory = Memory(RawPixels((1, 2, 2)), capacity=100, tasks=2)
    memory.write(torch.rand(100, 1, 2, 2), 0, task=torch.arange(100) % 2)
    assert len(memory.sample(np.uint8(64), task=1).x) == 64  # pyright: ignore[reportArgumentType]
