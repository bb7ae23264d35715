"""Bit arrays, against a plain string of bits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.memory.index import BitArray, PackedIndex


def bits_of(array: BitArray, length: int) -> list[str]:
    """What the buffer holds, cut into fields by hand."""
    text = "".join(f"{byte:08b}" for byte in array.buffer)
    return [text[slot * array.width : (slot + 1) * array.width] for slot in range(length)]


@settings(max_examples=200)
@given(st.integers(1, 40), st.integers(1, 70), st.integers(0, 2**32), st.integers(1, 6))
def test_writing_changes_the_named_fields_and_no_other_bit(length: int, width: int, seed: int, writes: int):
    rng = np.random.default_rng(seed)
    array, model = BitArray(length, width), ["0" * width] * length
    for _ in range(writes):
        slots = rng.permutation(length)[: rng.integers(0, length + 1)]
        fields = ["".join(map(str, rng.integers(0, 2, width))) for _ in slots]
        numbers = (int(text.ljust(8 * array.row_bytes, "0"), 2) for text in fields)
        rows = b"".join(number.to_bytes(array.row_bytes, "big") for number in numbers)
        array.write(slots, np.frombuffer(rows, np.uint8).reshape(len(slots), array.row_bytes))
        for slot, text in zip(slots, fields, strict=True):
            model[slot] = text
    assert bits_of(array, length) == model
    asked = rng.integers(0, length, 10)
    read = [f"{int.from_bytes(row.tobytes(), 'big'):0{8 * array.row_bytes}b}" for row in array.read(asked)]
    assert read == [model[slot].ljust(8 * array.row_bytes, "0") for slot in asked]


@given(st.integers(0, 64), st.integers(0, 2**32))
def test_integers_of_every_width(width: int, seed: int):
    rng = np.random.default_rng(seed)
    array, slots = BitArray(20, width), rng.permutation(20)
    values = rng.integers(0, 2 ** min(width, 63), 20)
    array.write_integers(slots, values)
    assert np.array_equal(array.read_integers(slots), values if width else np.zeros(20))


@pytest.mark.parametrize(("length", "width"), [(5000, 983), (3000, 208), (7, 3), (1, 1), (10, 0)])
def test_nothing_but_the_last_byte_is_filled_up(length: int, width: int):
    array = BitArray(length, width)
    assert array.nbytes == array.buffer.nbytes == -(-length * width // 8)


def test_5000_items_of_983_bits_fit_200_cifar_images_and_of_984_do_not():
    room = 200 * 24_576
    assert 8 * BitArray(5000, 983).nbytes <= room < 8 * BitArray(5000, 984).nbytes


def test_records_move_whole_even_when_sources_and_targets_overlap():
    index = PackedIndex(10, code_bits=13, label_bits=4, task_bits=3)
    slots = np.arange(10)
    index.codes.write_integers(slots, slots * 700)
    index.labels.write_integers(slots, slots)
    index.tasks.write_integers(slots, slots % 7)
    index.ids.write_integers(slots, slots + 1000)
    index.move(np.arange(1, 10), np.arange(9))
    assert index.ids.read_integers(slots).tolist() == [*range(1001, 1010), 1009]
    assert index.codes.read_integers(slots).tolist() == [*range(700, 7000, 700), 6300]
    assert index.labels.read_integers(slots).tolist() == [*range(1, 10), 9]
    assert index.tasks.read_integers(slots).tolist() == [slot % 7 for slot in [*range(1, 10), 9]]


def one_more(index: PackedIndex, slot: int) -> None:
    index.clear(np.array([slot]))


def test_a_patch_is_kept_from_one_commit_to_the_next_while_few_slots_are_touched():
    index = PackedIndex(6400, code_bits=13, label_bits=4, task_bits=3)
    one_more(index, 0)
    assert index.patch() is None  # there is nothing yet that it could be a patch of
    for _ in range(2):
        index.committed(folded=True)
        assert index.patch() == b""
        for slot in range(100):
            one_more(index, slot)
        patch = index.patch()
        assert patch is not None
        assert np.frombuffer(patch, "<i8", 100).tolist() == [*range(100)]
        one_more(index, 100)
        assert index.patch() is None


def test_a_write_costs_the_same_however_many_came_before():
    class Asked(np.ndarray[tuple[int], np.dtype[np.int64]]):
        times = 0

        def __len__(self) -> int:
            Asked.times += 1
            return super().__len__()

    index, times = PackedIndex(6400, code_bits=13, label_bits=4, task_bits=3), []
    index.committed(folded=True)
    for slot in range(50):
        Asked.times = 0
        index.clear(np.array([slot]).view(Asked))
        times.append(Asked.times)
    assert len(set(times)) == 1
