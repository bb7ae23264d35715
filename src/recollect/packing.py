"""Codes to bytes and back, in exactly the bits that are billed.

A code is ``c`` variables of ``l`` categories each. Two schemes turn it into bits:

- ``binary``, the paper's: every variable takes ceil(log2 l) bits, so an item takes ``c * ceil(log2 l)``.
- ``radix``: the whole code is one number in base ``l``, so an item takes ``ceil(c * log2 l)`` bits. It is
  the smallest fixed size there is, and the only one in which 5000 items of 620x3 fit 200 CIFAR images.

In both the first variable is the most significant and the first bit is the highest bit of the first byte;
an item is filled up with zero bits to whole bytes. For an ``l`` that is a power of two both give the same bits.
The bit stream is a format: golden files in the tests keep it as it is.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Literal, NoReturn, get_args, overload

import numpy as np
import numpy.typing as npt
import torch

from recollect.checks import check_between

Scheme = Literal["binary", "radix"]
Bytes = npt.NDArray[np.uint8]

MOST_VARIABLES = 2**28  # far beyond any image
LIMB = 16  # bits: words and limbs below 2^16 keep every sum of products exact in float64
WORD = 62  # bits of a word where numbers are Python's own
MOST_WORDS = 1024  # of 16 bits, in a matrix: it grows with their square, and what it takes to make one with their cube
BLOCK, BLOCK_BYTES = 4096, 1 << 22  # items converted at once, and bytes: what is needed on the way is many times these


def bits_per_item(*, variables: int, categories: int, scheme: Scheme = "radix") -> int:
    """Bits that one code of ``variables`` variables with ``categories`` values each takes.

    >>> bits_per_item(variables=620, categories=3, scheme="radix")
    983
    >>> bits_per_item(variables=620, categories=3, scheme="binary")
    1240
    """
    variables, categories = check_code_shape(variables, categories)
    check_scheme(scheme)
    if _fields_suffice(categories, scheme):
        return variables * bits_for(categories)
    estimate = variables * math.log2(categories)
    if abs(estimate - round(estimate)) > 1e-15 * estimate + 1e-12:
        return math.ceil(estimate)
    return (categories**variables - 1).bit_length()  # too close to a whole number for floating point


@overload
def pack(codes: torch.Tensor, *, categories: int, scheme: Scheme = "radix") -> torch.Tensor: ...
@overload
def pack(codes: npt.NDArray[Any], *, categories: int, scheme: Scheme = "radix") -> Bytes: ...
def pack(codes: torch.Tensor | npt.NDArray[Any], *, categories: int, scheme: Scheme = "radix") -> torch.Tensor | Bytes:
    """Integer codes, n x c, to bytes, n x ceil(bits / 8); arrays give arrays and tensors give tensors.

    >>> pack(np.array([[2, 0, 1], [1, 1, 1]]), categories=3)  # 19 and 13 in five bits each
    array([[152],
           [104]], dtype=uint8)
    """
    check_scheme(scheme)
    digits = _checked_codes(codes, categories)
    variables, categories = check_code_shape(digits.shape[1], categories)
    size = -(-bits_per_item(variables=variables, categories=categories, scheme=scheme) // 8)
    packed = np.empty((len(digits), size), np.uint8)
    to_bytes = _binary_to_bytes if _fields_suffice(categories, scheme) else _radix_to_bytes
    for block in blocks(*digits.shape):
        packed[block] = to_bytes(digits[block], categories, size)
    return torch.from_numpy(packed).to(codes.device) if isinstance(codes, torch.Tensor) else packed


@overload
def unpack(packed: torch.Tensor, *, variables: int, categories: int, scheme: Scheme = "radix") -> torch.Tensor: ...
@overload
def unpack(packed: Bytes, *, variables: int, categories: int, scheme: Scheme = "radix") -> npt.NDArray[np.int64]: ...
def unpack(
    packed: torch.Tensor | Bytes, *, variables: int, categories: int, scheme: Scheme = "radix"
) -> torch.Tensor | npt.NDArray[np.int64]:
    """Bytes that ``pack`` made, back to int64 codes, n x c. Bytes that it cannot have made are refused.

    >>> unpack(np.array([[152], [104]], np.uint8), variables=3, categories=3)
    array([[2, 0, 1],
           [1, 1, 1]])
    """
    variables, categories = check_code_shape(variables, categories)
    bits = bits_per_item(variables=variables, categories=categories, scheme=scheme)
    codes = unpack_checked(_checked_bytes(packed, bits), variables, categories, scheme)
    return torch.from_numpy(codes).to(packed.device) if isinstance(packed, torch.Tensor) else codes


def unpack_checked(rows: Bytes, variables: int, categories: int, scheme: Scheme) -> npt.NDArray[np.int64]:
    """`unpack` for rows of the right size with nothing behind their bits."""
    codes = np.empty((len(rows), variables), np.int64)
    to_codes = _binary_to_codes if _fields_suffice(categories, scheme) else _radix_to_codes
    for block in blocks(len(rows), variables):
        codes[block] = to_codes(rows[block], variables, categories)
    return codes


def bits_for(values: int) -> int:
    """Bits that tell ``values`` values apart: ceil(log2 values).

    >>> [bits_for(n) for n in (1, 2, 3, 10, 256)]
    [0, 1, 2, 4, 8]
    """
    return (values - 1).bit_length()


def blocks(items: int, size: int) -> list[slice]:
    """Slices of so many items of ``size`` bytes as are converted at once, one after the other.

    >>> len(blocks(10_000, 620)), len(blocks(64, 3 * 256 * 256))
    (3, 4)
    """
    step = max(1, min(BLOCK, BLOCK_BYTES // max(size, 1)))
    return [slice(start, start + step) for start in range(0, items, step)]


def _fields_suffice(categories: int, scheme: Scheme) -> bool:
    """Whether every variable has a field of bits to itself: a number in base 2^b is its fields in a row."""
    return scheme == "binary" or categories.bit_count() == 1


# Fields: eight codes of b bits are exactly b bytes. They are squeezed together eight at a time inside a
# 64-bit word, by joining neighbours: bytes to pairs, pairs to fours, fours to eight.


@functools.cache
def _joins(bits: int) -> tuple[tuple[np.uint64, np.uint64, np.uint64], ...]:
    """For each of the three joins: shift, mask of the lower fields, mask of the upper ones."""
    steps = []
    for lane in (8, 16, 32):
        field = bits * lane // 8
        lower = sum(((1 << field) - 1) << at for at in range(0, 64, 2 * lane))
        steps.append((np.uint64(lane - field), np.uint64(lower), np.uint64(lower << field)))
    return tuple(steps)


def _binary_to_bytes(codes: Bytes, categories: int, size: int) -> Bytes:
    bits = bits_for(categories)
    if bits == 8:
        return codes
    padded = np.zeros((len(codes), -(-codes.shape[1] // 8) * 8), np.uint8)
    padded[:, : codes.shape[1]] = codes
    words = padded.view(">u8").astype(np.uint64)
    for shift, lower, upper in _joins(bits):
        words = (words & lower) | ((words >> shift) & upper)
    squeezed = words.astype(">u8").view(np.uint8).reshape(len(codes), -1, 8)[:, :, 8 - bits :]
    return squeezed.reshape(len(codes), -1)[:, :size]


def _binary_to_codes(rows: Bytes, variables: int, categories: int) -> Bytes:
    bits = bits_for(categories)
    codes = rows if bits == 8 else _spread(rows, -(-variables // 8), bits)[:, :variables]
    if categories < 1 << bits and codes.max(initial=0) >= categories:
        raise ValueError(f"packed bytes hold the code value {codes.max()}: accepted are 0 to {categories - 1}")
    return codes


def _spread(rows: Bytes, groups: int, bits: int) -> Bytes:
    padded = np.zeros((len(rows), groups * bits), np.uint8)
    padded[:, : rows.shape[1]] = rows
    spread = np.zeros((len(rows), groups, 8), np.uint8)
    spread[:, :, 8 - bits :] = padded.reshape(len(rows), groups, bits)
    words = spread.reshape(len(rows), -1).view(">u8").astype(np.uint64)
    for shift, lower, upper in reversed(_joins(bits)):
        words = (words & lower) | ((words & upper) << shift)
    return words.astype(">u8").view(np.uint8)


# Radix: both ways are one change of base. A number with digits d_i in base p is the sum of d_i p^i; with each
# p^i written in base q that sum is one matrix product, and what is left to do is to carry. Digits are taken
# together to words below 2^16 first, and bits to limbs of 16, which keeps the matrix small.


def _digits_a_word(categories: int, bits: int = LIMB) -> int:
    return max(g for g in range(1, bits + 1) if categories**g <= 1 << bits)


@functools.lru_cache(maxsize=4)
def _powers(base: int, count: int, to_base: int, places: int, scale: int) -> npt.NDArray[np.float64]:
    """``scale * base^i`` in base ``to_base``, a column for each i, most significant first in both directions."""
    columns = np.zeros((places, count))
    columns[:, -1] = _digits(scale, to_base, places)
    known = 1
    while known < count:  # the powers known so far, times base^known, are the next ones
        more = min(known, count - known)
        factor = np.concatenate([np.zeros(places - 1), _digits(base**known, to_base, places)[::-1]])
        multiply = np.lib.stride_tricks.sliding_window_view(factor, places)[::-1, :]
        columns[:, count - known - more : count - known] = _change_base(columns[:, count - more :], multiply, to_base)
        known += more
    return columns


def _digits(number: int, base: int, places: int) -> npt.NDArray[np.float64]:
    digits = np.zeros(places)
    for place in range(places - 1, -1, -1):
        number, digits[place] = divmod(number, base)
    return digits


@functools.lru_cache(maxsize=8)
def _digit_table(categories: int, digits: int) -> Bytes:
    """The digits of every word, to be looked up instead of divided out."""
    words = np.arange(categories**digits)[:, None]
    return (words // categories ** np.arange(digits - 1, -1, -1) % categories).astype(np.uint8)


def _change_base(digits: npt.NDArray[np.float64], powers: npt.NDArray[np.float64], base: int) -> npt.NDArray[np.int64]:
    """Items in columns. The first place keeps what it is given, so that the caller sees an overflow."""
    places = (powers @ digits).astype(np.int64)
    for place in range(len(places) - 1, 0, -1):
        carried = places[place] // base
        places[place] -= carried * base
        places[place - 1] += carried
    return places


def _radix_to_bytes(codes: Bytes, categories: int, size: int) -> Bytes:
    variables = codes.shape[1]
    bits = bits_per_item(variables=variables, categories=categories)
    digits = _digits_a_word(categories)
    words, limbs = -(-variables // digits), -(-bits // LIMB)
    if words > MOST_WORDS:
        return _long_to_bytes(codes, categories, 8 * size - bits, size)
    padded = np.zeros((len(codes), words * digits))
    padded[:, words * digits - variables :] = codes
    weights = float(categories) ** np.arange(digits - 1, -1, -1)
    grouped = padded.reshape(len(codes), words, digits) @ weights
    fill = 1 << (LIMB * limbs - bits)  # the number is moved up to the first bit of its first byte
    powers = _powers(categories**digits, words, 1 << LIMB, limbs, fill)
    number = _change_base(grouped.T, powers, 1 << LIMB)
    return number.T.astype(">u2", order="C").view(np.uint8)[:, :size]


def _radix_to_codes(rows: Bytes, variables: int, categories: int) -> Bytes:
    bits = bits_per_item(variables=variables, categories=categories)
    digits = _digits_a_word(categories)
    words, limbs = -(-variables // digits), -(-bits // LIMB)
    if words > MOST_WORDS:
        return _long_to_codes(rows, variables, categories, 8 * rows.shape[1] - bits)
    padded = np.zeros((len(rows), 2 * limbs), np.uint8)
    padded[:, : rows.shape[1]] = rows
    number = padded.view(">u2").astype(np.uint32)
    fill = LIMB * limbs - bits
    number[:, 1:] |= number[:, :-1] << LIMB  # a window over two limbs, so that bits move from one to the next
    number = (number >> fill) & ((1 << LIMB) - 1)
    powers = _powers(1 << LIMB, limbs, categories**digits, words, 1)
    grouped = _change_base(number.T.astype(np.float64), powers, categories**digits).T
    if grouped[:, 0].max(initial=0) >= categories ** (variables - (words - 1) * digits):
        _not_below(categories, variables)
    codes = _digit_table(categories, digits).take(grouped, axis=0)
    return codes.reshape(len(rows), -1)[:, words * digits - variables :]


# Long codes: numbers of Python's own, for all items of a block at once. Two neighbours are joined to a number in a base
# that is the square of theirs, again and again, and taken apart in the same way.


def _long_to_bytes(codes: Bytes, categories: int, fill: int, size: int) -> Bytes:
    bases, weights = _long_words(codes.shape[1], categories)
    padded = np.zeros((len(codes), len(weights) << len(bases)), np.int64)
    padded[:, -codes.shape[1] :] = codes
    numbers = (padded.reshape(len(codes), -1, len(weights)) @ weights).astype(object)
    for base in bases:
        numbers = numbers[:, ::2] * base + numbers[:, 1::2]
    rows = b"".join((number << fill).to_bytes(size, "big") for number in numbers[:, 0])
    return np.frombuffer(rows, np.uint8).reshape(len(codes), size)


def _long_to_codes(rows: Bytes, variables: int, categories: int, fill: int) -> Bytes:
    bases, weights = _long_words(variables, categories)
    numbers = np.array([[int.from_bytes(row.tobytes(), "big") >> fill] for row in rows], object)
    if numbers.max(initial=0) >= categories**variables:
        _not_below(categories, variables)
    for base in reversed(bases):
        upper = numbers // base
        numbers = np.stack([upper, numbers - upper * base], -1).reshape(len(rows), -1)
    codes = numbers.astype(np.int64)[:, :, None] // weights % categories
    return codes.reshape(len(rows), -1)[:, -variables:].astype(np.uint8)


def _long_words(variables: int, categories: int) -> tuple[list[int], npt.NDArray[np.int64]]:
    """The bases of words, of pairs of words and so on, up to half a code; and what the digits of a word weigh."""
    digits = _digits_a_word(categories, WORD)
    bases = [categories**digits]
    while digits << len(bases) < variables:
        bases.append(bases[-1] ** 2)
    return bases, categories ** np.arange(digits - 1, -1, -1, dtype=np.int64)


def _not_below(categories: int, variables: int) -> NoReturn:
    bits = bits_per_item(variables=variables, categories=categories)
    raise ValueError(f"packed bytes hold a number of {bits} bits that is not below {categories}^{variables}")


def check_code_shape(variables: int, categories: int) -> tuple[int, int]:
    """``variables`` and ``categories``, after making sure that there are codes of this shape."""
    return check_between("variables", variables, 1, MOST_VARIABLES), check_between("categories", categories, 2, 256)


def check_scheme(scheme: str) -> None:
    """Refuse the name of a scheme that does not exist."""
    if scheme not in get_args(Scheme):
        raise ValueError(f"scheme={scheme!r}: accepted are {', '.join(map(repr, get_args(Scheme)))}")


def _checked_codes(codes: npt.NDArray[Any] | torch.Tensor, categories: int) -> Bytes:
    array = codes.detach().cpu().numpy() if isinstance(codes, torch.Tensor) else np.asarray(codes)
    if array.dtype.kind not in "iu":
        raise TypeError(f"codes are {array.dtype}: accepted are integers")
    if array.ndim != 2:
        raise ValueError(f"codes have shape {array.shape}: accepted is n x variables")
    _, categories = check_code_shape(array.shape[1], categories)
    if array.size and not (array.min() >= 0 and array.max() < categories):
        wrong = array.max() if array.max() >= categories else array.min()
        raise ValueError(f"code value {wrong}: accepted are 0 to {categories - 1}")
    return array.astype(np.uint8, copy=False)


def _checked_bytes(packed: Bytes | torch.Tensor, bits: int) -> Bytes:
    array = packed.detach().cpu().numpy() if isinstance(packed, torch.Tensor) else np.asarray(packed)
    size = -(-bits // 8)
    if array.ndim != 2 or array.shape[1] != size or array.dtype != np.uint8:
        raise ValueError(
            f"packed codes of shape {array.shape} and type {array.dtype}: accepted are uint8, n x {size} "
            f"({bits} bits an item)"
        )
    fill = (1 << (8 * size - bits)) - 1
    if np.any(array[:, -1] & fill):
        raise ValueError(f"packed bytes have a bit set behind the {bits} bits of an item: they were not made by pack")
    return array
