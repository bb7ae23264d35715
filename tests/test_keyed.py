"""Memories whose items differ in size: what they hold by chance and by class, in which bits, and what they refuse."""

from __future__ import annotations

import copy
import json
from collections import Counter
from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

import recollect as rc
from commands import call
from recollect.memory.blocks import CodedBlocks
from recollect.memory.coded_index import Budget, CodedIndex, Records
from recollect.memory.entropy import Frequencies
from recollect.memory.file import DamagedFileError, commit, home_at
from recollect.memory.index import Slots
from recollect.memory.keyed import MOST, Keyed, keys_of
from recollect.memory.rules import Rule
from recollect.memory.targets import ClassLabels
from torture import coded, coded_bytes, fingerprint, parts_and_segments, write

RULES: tuple[Rule, ...] = ("reservoir", "balanced")
VARIABLES, CATEGORIES = 16, 4


class Rig:
    """A rule with an index, fed with numbered examples of large and small codes as the memory feeds it."""

    def __init__(self, bits: int, *, by_class: bool = False, seed: int = 0) -> None:
        widths = {"code_bits": 32, "label_bits": 4, "task_bits": 0, "id_bits": 64}
        self.index = CodedIndex(Budget(bits, codes_alone=True), Frequencies(VARIABLES, CATEGORIES), **widths)
        self.rng = np.random.default_rng(seed)
        self.rule = Keyed(self.index, int(self.rng.integers(2**64, dtype=np.uint64)), by_class=by_class)
        self.seen = 0

    def show(
        self, labels: np.ndarray[tuple[int], np.dtype[np.int64]], large: np.ndarray[tuple[int], np.dtype[np.bool_]]
    ) -> None:
        ids = np.arange(self.seen, self.seen + len(labels))
        codes = self.rng.integers(0, CATEGORIES, (len(ids), VARIABLES)).astype(np.uint8) * large[:, None]
        rows = self.rule.wanted(ids, labels)
        fields = ClassLabels(16).to_rows(labels[rows])
        records = self.index.records(codes[rows], fields, np.zeros_like(rows), ids[rows])
        self.rule.take(records, ids[rows], labels[rows])
        self.seen += len(ids)

    @property
    def ids(self) -> list[int]:
        return self.index.ids.read_integers(np.arange(self.rule.held)).tolist()

    @property
    def labels(self) -> list[int]:
        return self.index.labels.read_integers(np.arange(self.rule.held)).tolist()


def test_every_example_is_held_with_the_same_probability_whatever_its_size():
    streams, length = 100, 120
    large = np.arange(length) % 3 == 0
    counts, held = np.zeros(length, np.int64), Counter[int]()
    for seed in range(streams):
        rig = Rig(800, seed=seed)
        for start in range(0, length, 8):
            rig.show(np.zeros(8, np.int64), large[start : start + 8])
        assert rig.index.codes.coder.data  # or all would be of one size
        counts[rig.ids] += 1
        held[rig.rule.held] += 1
    share = counts.sum() / length / streams
    assert 0.2 < share < 0.8
    assert len(held) > 10  # it follows from sizes how many there are
    statistic = ((counts - streams * share) ** 2 / (streams * share * (1 - share))).sum()
    assert chi2.sf(statistic, length - 1) > 1e-3
    # But for the room of one item, and for chance.
    assert counts[large].mean() / counts[~large].mean() == pytest.approx(1, abs=0.08)


def test_balanced_holds_as_many_of_each_class_and_all_that_is_rare():
    labels = np.array([0] * 60 + [1, 0, 2, 3] * 30 + [4, 4])
    streams, counts = 60, np.zeros(len(labels), np.int64)
    for seed in range(streams):
        rig = Rig(900, by_class=True, seed=seed)
        for start in range(0, len(labels), 7):
            rig.show(labels[start : start + 7], np.ones(len(labels[start : start + 7]), np.bool_))
        each = Counter(rig.labels)
        assert each[4] == 2
        assert max(each.values()) - min(each[label] for label in range(4)) <= 1
        assert all(labels[number] == label for number, label in zip(rig.ids, rig.labels, strict=True))
        counts[rig.ids] += 1
    zeros = counts[labels == 0]
    share = zeros.mean() / streams
    statistic = ((zeros - streams * share) ** 2 / (streams * share * (1 - share))).sum()
    assert chi2.sf(statistic, len(zeros) - 1) > 1e-3


def test_with_more_classes_than_items_every_class_is_equally_likely_to_be_held():
    streams, counts = 300, np.zeros(16, np.int64)
    labels = np.concatenate([np.arange(16), np.repeat(np.arange(8), 4)])  # some come far more often
    for seed in range(streams):
        rig = Rig(16 + 4 * 32, by_class=True, seed=seed)
        for label in labels:
            rig.show(np.array([label]), np.ones(1, np.bool_))
        assert len(set(rig.labels)) == rig.rule.held >= 2
        counts[rig.labels] += 1
    share = counts.sum() / 16 / streams
    statistic = ((counts - streams * share) ** 2 / (streams * share * (1 - share))).sum()
    assert chi2.sf(statistic, 15) > 1e-3


def test_keys_are_those_of_splitmix64():
    """By whole numbers of Python, for salts and ids of any size."""

    def slowly(salt: int, number: int) -> int:
        mask = 2**64 - 1
        mixed = (salt + (number + 1) * 0x9E3779B97F4A7C15) & mask
        mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & mask
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & mask
        return mixed ^ mixed >> 31

    numbers = np.array([0, 1, 2, 77, 2**40, 2**62, -1])
    for salt in (0, 1, 2**63, MOST):
        assert keys_of(salt, numbers).tolist() == [slowly(salt, int(number) & MOST) for number in numbers]


@settings(max_examples=20)
@given(
    st.integers(230, 3000),
    st.sampled_from(["code_bits", "capacity_bits"]),
    st.sampled_from(RULES),
    st.integers(1, 40),
    st.integers(0, 2**32),
)
def test_the_budget_is_never_exceeded_not_even_inside_write(bits: int, kind: str, rule: Rule, batch: int, seed: int):
    generator = torch.Generator().manual_seed(seed)
    codec = rc.ResizedPixels((1, 6, 6), size=(6, 6), bits=2)
    room = {"code_bits": bits} if kind == "code_bits" else {"capacity_bits": bits}
    memory = rc.Memory(codec, **room, scheme="entropy", admission=rule, classes=4, tasks=2, seed=seed)  # pyright: ignore[reportArgumentType]
    index, held = memory._index, []
    assert isinstance(index, CodedIndex)

    class Watched(CodedIndex):
        """Looks at the codes each time that they change."""

        def __setattr__(self, name: str, value: object) -> None:
            super().__setattr__(name, value)
            if name == "codes" and isinstance(value, CodedBlocks):
                held.append(value.count)
                assert 8 * value.nbytes <= bits

    index.__class__ = Watched
    for number in range(12):
        sharpness = torch.rand(batch, 1, 1, 1, generator=generator) ** 2
        x = (torch.rand(batch, 1, 6, 6, generator=generator) * sharpness).clamp(0, 1)
        memory.write(x, torch.randint(0, 4, (batch,), generator=generator), number % 2)
        bill = memory.footprint()
        counted = bill.codes + bill.tables
        counted += 8 * sum(array.nbytes for array in index.arrays.values()) if kind == "capacity_bits" else 0
        assert counted <= bits
        assert bill.incremental == 8 * index.nbytes
        assert index.codes.read(np.arange(len(memory))).max(initial=0) < 4
        if number == 7:
            memory.forget(ids=memory.ids[::2])
    assert held


def test_a_budget_is_used_up():
    memory = coded(4000)
    write(memory, 2000, Random(0))
    bill = memory.footprint()
    assert 4000 - 40 < bill.codes + bill.tables <= 4000
    assert memory.bits_per_item < memory.radix_bits == 16
    assert memory.bits_per_item == -(-(bill.codes + bill.tables) // len(memory))
    assert len(memory) > 1.1 * 4000 / 16


@pytest.mark.parametrize("scheme", ["radix", "binary"])
def test_code_bits_say_how_many_items_of_fixed_size_there_are(scheme: str):
    codec = rc.DiscreteAutoencoder((1, 12, 12), 8, 3)
    memory = rc.Memory(codec, code_bits=1000, scheme=scheme)  # pyright: ignore[reportArgumentType]
    width = rc.bits_per_item(variables=8, categories=3, scheme=scheme)  # pyright: ignore[reportArgumentType]
    assert (memory.capacity, memory.bits_per_item) == (1000 // width, width)
    assert 8 * memory._index.codes.nbytes <= 1000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"capacity": 9}, "capacity=9 and scheme='entropy', with which items differ in size: accepted are code_bits"),
        ({}, "capacity=None, capacity_bits=None, code_bits=None: accepted is one of them"),
        ({"code_bits": 900, "capacity_bits": 900}, "accepted is one of them"),
        ({"code_bits": 79}, "code_bits=79: accepted is room for at least one item, 80 bits"),
        ({"capacity_bits": 159}, "capacity_bits=159: accepted is room for at least one item, 160 bits"),
        ({"code_bits": 900, "admission": "ring"}, "admission='ring' with scheme='entropy': accepted are 'reservoir'"),
        ({"code_bits": 900, "admission": "chosen"}, "accepted are 'reservoir' and 'balanced'"),
        ({"code_bits": 900, "scheme": "gray"}, "scheme='gray': accepted are 'binary', 'radix', 'entropy'"),
    ],
)
def test_memories_that_cannot_be(arguments: dict[str, object], message: str):
    codec = rc.ResizedPixels((1, 8, 8), size=(2, 2), bits=4)
    with pytest.raises(ValueError, match=message):
        rc.Memory(codec, **{"scheme": "entropy", "classes": 10, "tasks": 4, **arguments})


@pytest.mark.parametrize("bits", [80, 112, 400])
def test_the_smallest_budgets_hold_something(bits: int):
    memory = coded(bits)
    write(memory, 300, Random(0))
    assert len(memory) >= 1
    assert memory.footprint().codes + memory.footprint().tables <= bits


class Broken(rc.RawPixels):
    """A codec that fails when it is told to."""

    fails = False

    def encode(self, x: torch.Tensor) -> torch.Tensor:
        codes = super().encode(x)
        return codes[:-1] if self.fails else codes


def test_an_error_leaves_the_memory_as_it_was():
    memory = rc.Memory(codec := Broken((1, 8, 8)), code_bits=20_000, scheme="entropy", classes=10, tasks=4)
    write(memory, 100, Random(0))
    before, codec.fails = fingerprint(memory), True
    with pytest.raises(ValueError, match="the codec gave"):
        memory.write(torch.rand(50, 1, 8, 8), 0, 0)
    assert fingerprint(memory) == before


def test_a_copy_goes_on_as_the_original():
    memory = coded()
    write(memory, 200, Random(0))
    other = copy.deepcopy(memory)
    for each in (memory, other):
        write(each, 200, Random(1))
    assert fingerprint(other) == fingerprint(memory)


def test_what_is_held_does_not_depend_on_sampling():
    one, other = coded(), coded()
    for seed in range(20):
        write(one, 30, Random(seed))
        write(other, 30, Random(seed))
        other.sample(5)
        other.sample_tasks(2)
    assert one.ids.tolist() == other.ids.tolist()
    assert isinstance(one._index, CodedIndex)
    assert isinstance(other._index, CodedIndex)
    assert coded_bytes(one._index) == coded_bytes(other._index)


def test_frequencies_tell_nothing_of_what_was_forgotten():
    """They are the same as if there had only been what is left."""
    memory = coded(100_000)
    write(memory, 400, Random(0))
    assert isinstance(memory._index, CodedIndex)
    gone = memory.ids[150:]
    memory.forget(ids=gone)
    left = memory._index.codes.read(np.arange(len(memory)))
    fresh = CodedBlocks.none(Frequencies(4, 16)).with_more(left).with_learned()
    assert memory._index.codes.coder.data == fresh.coder.data
    assert np.array_equal(memory._index.codes.words, fresh.words)


def test_what_is_forgotten_leaves_no_bytes_in_the_file(path: Path):
    memory = rc.Memory(rc.RawPixels((1, 8, 8)), code_bits=60_000, scheme="entropy", classes=10, tasks=4)
    write(memory, 200, Random(0))
    memory.commit(path)
    assert isinstance(memory._index, CodedIndex)
    words = memory._index.codes.words.astype("<u4").tobytes()
    chunks = {words[place : place + 16] for place in range(0, len(words) - 16, 64)}
    assert sum(chunk in path.read_bytes() for chunk in chunks) > 0.9 * len(chunks)  # a chunk may lie on two pages
    memory.forget(ids=[*range(200)])
    memory.commit(path)
    assert not any(chunk in path.read_bytes() for chunk in chunks)
    assert len(rc.Memory.open(path)) == 0
    write(memory, 30, Random(1))
    memory.commit(path)
    assert fingerprint(rc.Memory.open(path)) == fingerprint(memory)


@pytest.mark.parametrize("rule", RULES)
def test_a_stopped_memory_ends_as_one_never_stopped(rule: Rule, path: Path):
    whole, stopped = coded(rule=rule, seed=3), coded(rule=rule, seed=3)
    for seed in range(12):
        for memory in (whole, stopped):
            write(memory, 40, Random(seed))
            memory.sample(3)
        stopped.commit(path)
        stopped = rc.Memory.open(path)
    assert fingerprint(stopped) == fingerprint(whole)
    assert torch.equal(stopped.sample(9).x, whole.sample(9).x)


@pytest.mark.parametrize(
    ("targets", "y"),
    [(rc.RealTargets((2,), bits=16), torch.tensor([0.5, 1.0])), (rc.NoTargets(), None)],
)
def test_other_targets(targets: rc.RealTargets | rc.NoTargets, y: torch.Tensor | None, path: Path):
    codec = rc.ResizedPixels((1, 8, 8), size=(2, 2), bits=4)
    memory = rc.Memory(codec, capacity_bits=9000, scheme="entropy", targets=targets)
    memory.write(torch.rand(200, 1, 8, 8), y)
    memory.commit(path)
    opened = rc.Memory.open(path)
    assert fingerprint(opened) == fingerprint(memory)
    assert (opened.sample(5).y == (torch.empty(5, 0) if y is None else y)).all()


CONTRADICTIONS = {
    "more records than the budget allows": lambda state: state["budget"].update(code_bits=500),
    "items above the limit": lambda state: state["counts"].update(limits=[[0, 5]]),
    "another number of items": lambda state: state["counts"].update(held=3),
    "a salt that is none": lambda state: state["counts"].update(salt=-1),
    "no budget": lambda state: state.pop("budget"),
    "two budgets": lambda state: state["budget"].update(capacity_bits=500),
    "another scheme": lambda state: state.update(scheme="radix", capacity=1),
}


@pytest.mark.parametrize("what", CONTRADICTIONS)
def test_a_state_that_contradicts_the_records_is_damage(what: str, path: Path, tmp_path: Path):
    memory = coded()
    write(memory, 400, Random(0))
    memory.commit(path)
    change = parts_and_segments(path)
    state = json.loads(change.parts["memory"])
    CONTRADICTIONS[what](state)
    forged = tmp_path / "forged.rec"
    parts = {**change.parts, "memory": json.dumps(state).encode()}
    commit(home_at(forged), type(change)(parts=parts, segments=change.segments, format=3))
    with pytest.raises(DamagedFileError, match="its state cannot be read"):
        rc.Memory.open(forged)
    commit(home_at(tmp_path / "same.rec"), type(change)(parts=change.parts, segments=change.segments, format=3))
    assert fingerprint(rc.Memory.open(tmp_path / "same.rec")) == fingerprint(memory)


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("cut", [0, 3, 4, 40, -4])
def test_segments_that_are_cut_are_damage(number: int, cut: int, path: Path, tmp_path: Path):
    memory = coded(8000)
    write(memory, 2000, Random(0))
    memory.commit(path)
    change = parts_and_segments(path)
    assert len(change.segments) > 1
    segments = {**change.segments, number: change.segments[number][:cut]}
    forged = tmp_path / "forged.rec"
    commit(home_at(forged), type(change)(parts=change.parts, segments=segments, format=3))
    with pytest.raises(DamagedFileError, match="its state cannot be read"):
        rc.Memory.open(forged)


def test_commands_on_its_file(path: Path, tmp_path: Path):
    memory = coded()
    write(memory, 300, Random(0))
    memory.commit(path)
    printed = call("info", path)[0]
    assert f"reservoir: {len(memory)} items held, 300 examples seen" in printed
    assert f"codes of {memory.bits_per_item} bits (entropy, by radix 16)" in printed
    found = json.loads(call("info", path, "--json")[0])
    assert found["memory"]["bits_per_item"] < found["memory"]["radix_bits"] == 16
    assert found["bill"]["bits"] == memory.footprint().bits
    assert call("verify", path)[0].startswith("ok:")
    call("show", path, "--out", tmp_path / "picture.png")
    assert (tmp_path / "picture.png").exists()
    call("forget", path, "--label", "3", "--yes")
    assert 3 not in rc.Memory.open(path).recollections().y  # pyright: ignore[reportOptionalMemberAccess]


def test_a_write_that_fails_half_way_changes_nothing(monkeypatch: pytest.MonkeyPatch, path: Path):
    memory = rc.Memory(rc.ResizedPixels((1, 8, 8), size=(4, 4), bits=1), code_bits=2000, scheme="entropy")
    memory.write(torch.rand(300, 1, 8, 8), y=1)
    memory.commit(path)
    before, replace = fingerprint(memory), CodedIndex.replace

    def interrupted(index: CodedIndex, slots: Slots, records: Records) -> bool:
        if replace(index, slots, records):
            raise KeyboardInterrupt
        return False

    monkeypatch.setattr(CodedIndex, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        memory.write(torch.rand(300, 1, 8, 8), y=2)
    assert fingerprint(memory) == before
    monkeypatch.undo()
    again = rc.Memory.open(path)
    for each in (memory, again):
        each.write(torch.linspace(0, 1, 64).view(1, 1, 8, 8).expand(200, -1, -1, -1), y=3)
    assert fingerprint(memory) == fingerprint(again)
