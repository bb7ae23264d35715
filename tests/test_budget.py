"""Bill and plan, against the paper's own numbers and a search by brute force."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.budget import Bill, BudgetError, autoencoder_parameters, plan, raw_bits
from recollect.packing import Scheme, bits_per_item

MNIST, CIFAR = (1, 28, 28), (3, 32, 32)


def test_an_image_costs_what_the_paper_says():
    assert raw_bits(MNIST) == 6_272
    assert raw_bits(CIFAR) == 24_576


def test_76x2_leaves_room_for_1392_items_in_200_cifar_images_with_the_codec_counted():
    result = plan(shape=CIFAR, storage_examples=200, variables=76, categories=2, count_codec=True)
    assert result.items == 1392
    assert result.bits_per_item == 76
    assert result.parameter_count == 150_293


@pytest.mark.parametrize(("variables", "compression"), [(168, 10.07), (62, 50.3), (38, 101.5)])
def test_total_compression_of_the_distillation_codecs(variables: int, compression: float):
    result = plan(shape=MNIST, items=50_000, variables=variables, categories=2, count_codec=True)
    assert result.compression == pytest.approx(compression, rel=1e-3)


def test_a_small_codec_with_its_buffer_is_7_4_times_smaller_than_a_large_codec_alone():
    small = plan(shape=MNIST, items=50_000, variables=38, categories=2).bill.total
    assert 32 * autoencoder_parameters(MNIST, 168, 2) / small == pytest.approx(7.36, abs=0.01)


TABLES_1_AND_2 = [
    (MNIST, 100, 3000, 104, 4, "binary"),
    (MNIST, 200, 3000, 139, 8, "binary"),
    (CIFAR, 10, 5000, 48, 2, "binary"),
    (CIFAR, 20, 5000, 98, 2, "binary"),
    (CIFAR, 50, 5000, 244, 2, "binary"),
    (CIFAR, 60, 5000, 294, 2, "binary"),
    (CIFAR, 200, 5000, 620, 3, "radix"),
]


@pytest.mark.parametrize(("shape", "storage", "items", "variables", "categories", "scheme"), TABLES_1_AND_2)
def test_code_shapes_of_tables_1_and_2_fit(
    shape: tuple[int, int, int], storage: int, items: int, variables: int, categories: int, scheme: Scheme
):
    code = {"shape": shape, "variables": variables, "categories": categories, "items": items}
    result = plan(**code, storage_examples=storage, scheme=scheme)
    assert result.bill.codes <= storage * raw_bits(shape)
    assert result.hypothesis_1


def test_620x3_breaks_its_budget_in_binary_and_plan_says_by_how_much():
    with pytest.raises(BudgetError, match=r"6,200,000 bits; .* too little by 1,284,800 bits \(52.28 examples\)"):
        plan(shape=CIFAR, storage_examples=200, items=5000, variables=620, categories=3, scheme="binary")


@pytest.mark.parametrize(("storage", "code"), [(20, (98, 2)), (50, (244, 2)), (60, (294, 2)), (200, (620, 3))])
def test_the_best_shape_for_5000_cifar_items_is_the_one_the_paper_chose(storage: int, code: tuple[int, int]):
    result = plan(shape=CIFAR, storage_examples=storage, items=5000)
    assert (result.variables, result.categories) == code


@settings(max_examples=25)
@given(
    st.integers(1, 6),
    st.integers(40, 200),
    st.sampled_from([MNIST, (3, 8, 8), (1, 70, 20)]),
    st.booleans(),
    st.sampled_from(["binary", "radix"]),
)
def test_plan_is_the_best_of_all_shapes(
    storage: int, items: int, shape: tuple[int, int, int], count_codec: bool, scheme: Scheme
):
    room = storage * raw_bits(shape)

    def cost(variables: int, categories: int) -> int:
        bits = items * bits_per_item(variables=variables, categories=categories, scheme=scheme)
        return bits + count_codec * 32 * autoencoder_parameters(shape, variables, categories)

    fitting = []
    for categories in range(2, 257):
        for variables in itertools.count(1):
            if variables * categories % 4 == 0:
                if cost(variables, categories) > room:
                    break
                fitting.append((variables * math.log2(categories), variables * categories))
    if not fitting:
        with pytest.raises(BudgetError, match="no code shape fits, not even the smallest"):
            plan(shape=shape, storage_examples=storage, items=items, count_codec=count_codec, scheme=scheme)
        return
    best = max(capacity for capacity, _ in fitting)
    result = plan(shape=shape, storage_examples=storage, items=items, count_codec=count_codec, scheme=scheme)
    assert cost(result.variables, result.categories) <= room
    assert result.capacity >= 0.995 * best
    fewest = min(size for capacity, size in fitting if capacity >= 0.995 * best)
    assert result.variables * result.categories == fewest


def test_hypothesis_1_fails_for_a_buffer_larger_than_the_codes():
    assert plan(shape=MNIST, items=16, variables=4, categories=2).hypothesis_1
    assert not plan(shape=MNIST, items=17, variables=4, categories=2).hypothesis_1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "two of the three"),
        ({"items": 5}, "two of the three"),
        ({"items": 0, "storage_examples": 1}, "items=0: accepted is a whole number of at least 1"),
        ({"items": 5, "storage_examples": 0}, "storage_examples=0"),
        ({"items": 5, "storage_examples": "5"}, "storage_examples='5': accepted is a positive number of raw examples"),
        ({"items": 5, "storage_examples": 1e306}, "storage_examples=1e\\+306"),
        ({"items": 5, "storage_examples": math.nan}, "storage_examples=nan"),
        ({"items": 5, "variables": 8}, "variables=8, categories=None: accepted are both, or neither"),
        ({"items": 5, "variables": 7, "categories": 3}, "multiple of 4"),
        ({"items": 5, "variables": 8, "categories": 3, "scheme": "unary"}, "scheme='unary'"),
        ({"items": 5, "storage_examples": 2, "shape": (28, 28)}, r"shape=\(28, 28\)"),
        ({"items": 5, "storage_examples": 2, "shape": (1, 28, 257)}, "height and width from 2 to 256"),
        ({"items": 5, "storage_examples": 2, "shape": (1, 0, 28)}, "=0: accepted is a whole number of at least 1"),
        ({"storage_examples": 0.01, "variables": 76, "categories": 2}, r"too little by 14 bits"),
    ],
)
def test_plan_refuses(arguments: dict[str, object], message: str):
    with pytest.raises(ValueError, match=message):
        plan(**({"shape": MNIST} | arguments))  # pyright: ignore[reportArgumentType]


def test_a_code_is_never_larger_than_the_image():
    result = plan(shape=CIFAR, storage_examples=1e6, items=1)
    assert result.bits_per_item <= raw_bits(CIFAR)


def test_a_bill_adds_up():
    bill = Bill(codes=10, labels=2, tasks=3, ids=4, free=1, codec=100, example=60)
    assert bill.total == bill.bits["total"] == 120
    assert bill.incremental == 20
    assert bill.examples["total"] == 2
