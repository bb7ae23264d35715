"""Entropy coding: exact, close to the entropy that numpy computes, and never much worse than radix."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.memory.blocks import CodedBlocks
from recollect.memory.coder import WORD
from recollect.memory.entropy import Frequencies

Codes = npt.NDArray[np.uint8]
KINDS = ("equal", "uniform", "skewed", "rare")


def drawn(kind: str, items: int, variables: int, categories: int, seed: int) -> Codes:
    rng = np.random.default_rng(seed)
    match kind:
        case "equal":
            codes = np.broadcast_to(rng.integers(0, categories, variables), (items, variables))
        case "uniform":
            codes = rng.integers(0, categories, (items, variables))
        case "skewed":
            chances = rng.dirichlet(np.full(categories, 0.3), variables)
            codes = np.stack([rng.choice(categories, items, p=each) for each in chances], 1)
        case _:
            codes = np.where(rng.random((items, variables)) < 0.01, rng.integers(0, categories, (items, variables)), 0)
    return np.ascontiguousarray(codes, np.uint8)


def entropy(codes: Codes) -> float:
    """Bits of all codes at the frequencies that they have, without what it takes to tell these."""
    bits = 0.0
    for values in codes.T:
        counts = np.unique(values, return_counts=True)[1]
        bits += float((counts * np.log2(len(values) / counts)).sum())
    return bits


shapes = {"items": st.integers(1, 150), "variables": st.integers(1, 40), "categories": st.integers(2, 256)}
kinds = {"kind": st.sampled_from(KINDS), "learned_from": st.sampled_from([None, *KINDS]), "seed": st.integers(0, 2**32)}


@settings(max_examples=150)
@given(**shapes, **kinds)
def test_what_is_coded_is_decoded_whatever_the_table(
    items: int, variables: int, categories: int, kind: str, learned_from: str | None, seed: int
):
    table = Frequencies(variables, categories)
    if learned_from:
        others = drawn(learned_from, 200, variables, categories, seed + 1)
        table = table.learned([others[:50], others[50:]])
    codes = drawn(kind, items, variables, categories, seed)
    words = table.encode(codes)
    again = Frequencies(variables, categories, table.data)  # as another machine makes it from the bytes
    assert np.array_equal(again.decode([words], [items]), codes)
    assert len(words) <= -(-24 * codes.size // WORD) + 1


@settings(max_examples=100)
@given(st.integers(1, 30), st.integers(2, 256), st.integers(1, 300), st.sampled_from(KINDS), st.integers(0, 2**32))
def test_it_takes_no_more_than_radix_but_for_a_constant_a_block(
    variables: int, categories: int, items: int, kind: str, seed: int
):
    codes = drawn(kind, items, variables, categories, seed)
    learned = CodedBlocks.none(Frequencies(variables, categories)).with_more(codes).with_learned()
    blocks = -(-items // Frequencies.block)
    assert 8 * learned.nbytes <= codes.size * math.log2(categories) + blocks * (2 * WORD + 16)
    assert 8 * learned.nbytes >= entropy(codes)
    assert 8 * learned.words.nbytes <= 24 * codes.size + blocks * WORD


@pytest.mark.parametrize(("variables", "categories"), [(36, 16), (100, 2), (104, 4), (12, 100)])
@pytest.mark.parametrize("kind", ["skewed", "rare"])
def test_many_codes_take_little_more_than_their_entropy(variables: int, categories: int, kind: str):
    codes = drawn(kind, 2000, variables, categories, 0)
    learned = CodedBlocks.none(Frequencies(variables, categories)).with_more(codes).with_learned()
    table = 8 * len(learned.coder.data)
    # A few percent for levels of so many bits, a word a block, and its length in the directory.
    assert 8 * learned.nbytes - table <= 1.05 * entropy(codes) + 0.01 * codes.size + len(learned.lengths) * (WORD + 16)
    assert table <= variables * categories * 6 + 16


def test_codes_that_are_all_the_same_take_next_to_nothing():
    codes = drawn("equal", 640, 36, 16, 0)
    learned = CodedBlocks.none(Frequencies(36, 16)).with_more(codes).with_learned()
    assert 8 * learned.nbytes < 0.03 * codes.size * 4


def test_a_table_is_learned_only_where_it_pays():
    few, many = (drawn("skewed", items, 20, 16, 0) for items in (5, 500))
    assert not Frequencies(20, 16).learned([few]).data
    assert Frequencies(20, 16).learned([many]).data
    assert not Frequencies(20, 16).learned([drawn("uniform", 500, 20, 16, 0)]).data
    assert not Frequencies(20, 16).learned([]).data


@pytest.mark.parametrize(
    "data",
    [b"\x00", b"\x10", b"\x70" + bytes(100), bytes([16 * 2 + 5]) + bytes(5), bytes([16 * 2]) + bytes(7)],
)
def test_bytes_that_are_no_table_are_refused(data: bytes):
    with pytest.raises(ValueError, match="bytes that are no frequencies of 4 x 3 values"):
        Frequencies(4, 3, data)
    table = Frequencies(4, 3, bytes([16 * 2]) + b"\xff" * 3)
    with pytest.raises(ValueError, match="frequencies of a value 3: accepted are 0 to 2"):
        table.encode(np.zeros((1, 4), np.uint8))


def test_words_that_cannot_be_are_refused_or_give_codes():
    """Random words mostly decode to something; nothing else may happen, such as a value that there is not."""
    rng, refused = np.random.default_rng(0), 0
    table = Frequencies(20, 5).learned([drawn("rare", 500, 20, 5, 0)])
    for _ in range(200):
        words = rng.choice([0, 2**32 - 1, rng.integers(2**32)], rng.integers(0, 9)).astype(np.uint32)
        try:
            assert table.decode([words], [30]).max() < 5
        except ValueError as error:
            assert "that no 30 codes are coded in" in str(error)  # noqa: PT017
            refused += 1
    assert refused


@settings(max_examples=60)
@given(st.integers(1, 6), st.integers(2, 20), st.integers(0, 2**32))
def test_blocks_against_a_plain_array(variables: int, categories: int, seed: int):
    rng = np.random.default_rng(seed)
    model, blocks = np.empty((0, variables), np.uint8), CodedBlocks.none(Frequencies(variables, categories))
    for _ in range(8):
        more = drawn("skewed", int(rng.integers(1, 100)), variables, categories, int(rng.integers(2**32)))
        model, blocks = np.concatenate([model, more]), blocks.with_more(more)
        if rng.random() < 0.5:
            count = int(rng.integers(0, len(model) + 1))
            slots = rng.permutation(count)[: rng.integers(0, 5)]
            others = drawn("uniform", len(slots), variables, categories, 0)
            model = model[:count].copy()
            model[slots] = others
            before = blocks.read(np.arange(blocks.count))
            blocks, old = blocks.with_others(slots, others, count), blocks
            assert np.array_equal(old.read(np.arange(old.count)), before)  # nothing changes in place
        if rng.random() < 0.5:
            blocks = blocks.with_learned()
        asked = rng.integers(0, len(model), 10) if len(model) else np.empty(0, np.int64)
        assert np.array_equal(blocks.read(asked), model[asked])
        assert (blocks.count, len(blocks.lengths)) == (len(model), -(-len(model) // Frequencies.block))
        assert int(blocks.lengths.sum()) == len(blocks.words)


def test_reading_some_decodes_their_blocks_alone_and_each_once(monkeypatch: pytest.MonkeyPatch):
    codes = drawn("skewed", 640, 8, 4, 0)
    blocks, decoded = CodedBlocks.none(Frequencies(8, 4)).with_more(codes), []
    decode = Frequencies.decode
    monkeypatch.setattr(Frequencies, "decode", lambda self, words, n: decoded.extend(n) or decode(self, words, n))
    slots = np.array([5, 130, 7, 131, 5, 639])
    assert np.array_equal(blocks.read(slots), codes[slots])
    assert len(decoded) == 3


def test_long_codes_have_room_for_long_blocks():
    codes = drawn("uniform", 3, 1400, 256, 0)
    blocks = CodedBlocks.none(Frequencies(1400, 256)).with_more(codes)
    assert blocks.lengths.dtype == np.uint32
    assert np.array_equal(blocks.read(np.arange(3)), codes)
