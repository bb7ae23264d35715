"""Packing, against numbers and bit strings made by plain Python."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.packing import BLOCK, Scheme, bits_for, bits_per_item, pack, unpack

GOLDEN = Path(__file__).parent / "golden"
GOLDEN_SHAPES = [(104, 4), (139, 8), (620, 3), (76, 2), (6, 20), (9, 256), (1, 3), (33, 37), (200, 200)]
SCHEMES: tuple[Scheme, Scheme] = ("binary", "radix")
Codes = npt.NDArray[np.int64]


def slow_pack(codes: Codes, categories: int, scheme: Scheme) -> Codes:
    """The definition: a string of zeros and ones an item, filled up at its end and cut into bytes."""
    rows = []
    for code in codes.tolist():
        if scheme == "binary":
            width = math.ceil(math.log2(categories))
            bits = "".join(f"{value:0{width}b}" for value in code)
        else:
            number = 0
            for value in code:
                number = number * categories + value
            width = len(f"{categories ** len(code) - 1:b}")
            bits = f"{number:0{width}b}"
        bits += "0" * (-len(bits) % 8)
        rows.append([int(bits[at : at + 8], 2) for at in range(0, len(bits), 8)])
    return np.array(rows, np.int64)


@st.composite
def some_codes(draw: st.DrawFn) -> tuple[Codes, int]:
    categories = draw(st.integers(2, 256))
    variables = draw(st.integers(1, 80))
    extremes = draw(st.sampled_from(["low", "high", "any"]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    codes = rng.integers(0, categories, (draw(st.integers(0, 5)), variables))
    if extremes != "any":
        codes[:] = 0 if extremes == "low" else categories - 1
    return codes, categories


@given(some_codes(), st.sampled_from(SCHEMES))
@settings(max_examples=300)
def test_pack_is_its_definition_and_unpack_its_inverse(drawn: tuple[Codes, int], scheme: Scheme):
    codes, categories = drawn
    packed = pack(codes, categories=categories, scheme=scheme)
    assert packed.dtype == np.uint8
    assert packed.tolist() == slow_pack(codes, categories, scheme).tolist()
    back = unpack(packed, variables=codes.shape[1], categories=categories, scheme=scheme)
    assert np.array_equal(back, codes)


# More items than a block, and numbers on both sides of the largest matrix.
LONG = [(BLOCK + 3, 620, 3), (4, 12_288, 2), (4, 2048, 255), (4, 2049, 255), (4, 10_241, 3)]


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(("items", "variables", "categories"), LONG)
def test_more_items_than_a_block_and_long_codes(items: int, variables: int, categories: int, scheme: Scheme):
    codes = np.random.default_rng(0).integers(0, categories, (items, variables))
    packed = pack(codes, categories=categories, scheme=scheme)
    assert np.array_equal(packed[-4:], slow_pack(codes[-4:], categories, scheme))
    assert np.array_equal(unpack(packed, variables=variables, categories=categories, scheme=scheme), codes)


def test_items_so_long_that_a_block_has_few_of_them():
    codes = np.random.default_rng(0).integers(0, 8, (5, 2_000_000))
    packed = pack(codes, categories=8)
    assert np.array_equal(packed, np.concatenate([pack(code[None], categories=8) for code in codes]))
    assert np.array_equal(unpack(packed, variables=2_000_000, categories=8), codes)


@given(st.integers(1, 400), st.integers(2, 256))
def test_bits_are_those_of_the_paper(variables: int, categories: int):
    assert bits_per_item(variables=variables, categories=categories, scheme="binary") == variables * math.ceil(
        math.log2(categories)
    )
    bits = bits_per_item(variables=variables, categories=categories, scheme="radix")
    assert 2 ** (bits - 1) < categories**variables <= 2**bits
    assert bits <= bits_per_item(variables=variables, categories=categories, scheme="binary")


@pytest.mark.parametrize(("variables", "categories"), [(867_958, 251), (3000, 3), (3000, 255), (306, 3), (12, 255)])
def test_bits_are_exact_where_floating_point_is_not(variables: int, categories: int):
    """251^867958 is within 6e-16 of a power of two, relative to its exponent: as near as any up to a million."""
    bits = bits_per_item(variables=variables, categories=categories, scheme="radix")
    assert bits == (categories**variables - 1).bit_length()


def test_620x3_takes_983_bits_and_123_bytes():
    assert bits_per_item(variables=620, categories=3, scheme="radix") == 983
    assert bits_per_item(variables=620, categories=3, scheme="binary") == 1240
    assert pack(np.full((2, 620), 2), categories=3, scheme="radix").shape == (2, 123)


@given(some_codes())
def test_schemes_agree_when_categories_are_a_power_of_two(drawn: tuple[Codes, int]):
    codes, _ = drawn
    for categories in (2, 4, 8, 256):
        codes = codes % categories
        assert np.array_equal(
            pack(codes, categories=categories, scheme="binary"), pack(codes, categories=categories, scheme="radix")
        )


def test_one_bit_a_variable_is_numpy_packbits():
    codes = np.random.default_rng(1).integers(0, 2, (20, 76))
    assert np.array_equal(pack(codes, categories=2), np.packbits(codes.astype(np.uint8), axis=1))


def golden_codes(variables: int, categories: int) -> Codes:
    """Codes by a formula, so that the golden files need no random generator; the first row is the largest code."""
    item, variable = np.mgrid[0:17, 0:variables]
    codes = (item * item * 7 + variable * 13 + item * variable * 3 + (variable >> 3)) % categories
    codes[0] = categories - 1
    return codes


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(("variables", "categories"), GOLDEN_SHAPES)
def test_the_bit_stream_is_the_golden_one(variables: int, categories: int, scheme: Scheme):
    codes = golden_codes(variables, categories)
    golden = (GOLDEN / f"{scheme}-{variables}x{categories}.bin").read_bytes()
    assert pack(codes, categories=categories, scheme=scheme).tobytes() == golden
    packed = np.frombuffer(golden, np.uint8).reshape(len(codes), -1)
    assert np.array_equal(unpack(packed, variables=variables, categories=categories, scheme=scheme), codes)


def test_tensors_give_tensors():
    codes = torch.randint(0, 3, (10, 620))
    packed = pack(codes, categories=3, scheme="radix")
    assert isinstance(packed, torch.Tensor)
    assert packed.dtype == torch.uint8
    assert torch.equal(unpack(packed, variables=620, categories=3, scheme="radix"), codes)


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        (np.array([[0, 3]]), "code value 3: accepted are 0 to 2"),
        (np.array([[-1, 0]]), "code value -1"),
        (np.array([0, 1]), r"shape \(2,\)"),
        (np.empty((2, 0), np.int64), "variables=0"),
    ],
)
def test_pack_refuses(codes: npt.NDArray[np.generic], message: str):
    with pytest.raises(ValueError, match=message):
        pack(codes, categories=3)


def test_pack_refuses_codes_that_are_not_integers():
    with pytest.raises(TypeError, match="codes are float64: accepted are integers"):
        pack(np.array([[0.5, 0.0]]), categories=3)


def test_unpack_refuses_what_pack_cannot_have_made():
    with pytest.raises(ValueError, match="hold the code value 3"):
        unpack(np.array([[0b11000000]], np.uint8), variables=1, categories=3, scheme="binary")
    with pytest.raises(ValueError, match=r"not below 3\^1"):
        unpack(np.array([[0b11000000]], np.uint8), variables=1, categories=3, scheme="radix")
    with pytest.raises(ValueError, match="not below 3"):
        unpack(np.full((1, 123), 255, np.uint8) & np.uint8(254), variables=620, categories=3, scheme="radix")
    with pytest.raises(ValueError, match=r"not below 255\^3072"):
        unpack(np.array([[255] * 3069 + [254]], np.uint8), variables=3072, categories=255, scheme="radix")
    with pytest.raises(ValueError, match="behind the 2 bits"):
        unpack(np.array([[1]], np.uint8), variables=1, categories=3)
    with pytest.raises(ValueError, match="n x 123"):
        unpack(np.zeros((1, 124), np.uint8), variables=620, categories=3)


@pytest.mark.parametrize(
    ("variables", "categories", "scheme", "message"),
    [
        (0, 2, "radix", "variables=0"),
        (5, 1, "radix", "categories=1: accepted is a whole number of at least 2"),
        (5, 257, "binary", "categories=257"),
        (5, 3, "ternary", "scheme='ternary': accepted are 'binary', 'radix'"),
    ],
)
def test_code_shapes_that_do_not_exist(variables: int, categories: int, scheme: Scheme, message: str):
    with pytest.raises(ValueError, match=message):
        bits_per_item(variables=variables, categories=categories, scheme=scheme)


@given(st.integers(1, 10**9))
def test_bits_for_is_the_rounded_up_logarithm(values: int):
    assert 2 ** bits_for(values) >= values > (2 ** bits_for(values)) // 2


def test_a_number_of_numpy_is_as_good_as_one_of_python():
    """Whose powers have no largest: 3^620 is far beyond 64 bits."""
    codes = np.random.default_rng(0).integers(0, 3, (5, 620))
    packed = pack(codes, categories=codes.max() + 1)
    assert np.array_equal(packed, pack(codes, categories=3))
    assert np.array_equal(unpack(packed, variables=np.int32(620), categories=np.int32(3)), codes)  # pyright: ignore
