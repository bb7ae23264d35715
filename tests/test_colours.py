"""Colours: they are readable on white and on dark, apart from each other, and every row of the lab has one."""

from __future__ import annotations

import itertools

import pytest

from recollect.lab.colours import BILL, COLOURS, colour, looks, method
from recollect.lab.experiment import AnyExperiment
from recollect.lab.experiments import EXPERIMENTS

PAGES = ("#ffffff", "#15181d")  # light and dark, as in the report


def linear(hexadecimal: str) -> list[float]:
    """Red, green and blue as sRGB defines them, without its gamma."""
    values = [int(hexadecimal[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    return [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in values]


def contrast(one: str, other: str) -> float:
    """As the Web Content Accessibility Guidelines define it."""
    dark, light = sorted(0.2126 * r + 0.7152 * g + 0.0722 * b for r, g, b in map(linear, (one, other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("shade", sorted({*COLOURS.values(), *BILL.values()}))
def test_colours_are_readable_on_both_pages(shade: str, page: str):
    assert contrast(shade, page) > 3  # what the guidelines ask of graphics


def test_no_two_methods_look_alike():
    assert not {*COLOURS.values()} & {*BILL.values()}
    for one, other in itertools.combinations(COLOURS.values(), 2):
        apart = sum((a - b) ** 2 for a, b in zip(linear(one), linear(other), strict=True)) ** 0.5
        assert apart > 0.09, (one, other)


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=EXPERIMENTS)
def test_rows_of_one_figure_differ(experiment: AnyExperiment):
    assert all(colour(row) == COLOURS[method(row)] for row in experiment.rows)
    for storage in {getattr(row, "storage", None) for row in experiment.rows}:
        rows = [row for row in experiment.rows if getattr(row, "storage", None) == storage and not row.block]
        assert len(set(looks(rows).values())) == len(rows)
