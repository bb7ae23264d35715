"""Table 2 and Omniglot: their rows against the paper, what they keep against their storage."""

from __future__ import annotations

import pytest

import recollect as rc
from recollect.lab import omniglot, table2
from recollect.lab.continual import Continual
from recollect.lab.table2_tuning import PROFILE, candidates

# The paper's table, line by line: method, storage, items, retention. What it says of Omniglot in its text is below; the
# items of recollections are as many as fit.
PAPER = """
Online 0 33.3
LwF 0 34.5
Replay Real Storage 10 10 29.4
Replay Real Storage 50 50 33.4
Replay Real Storage 200 200 43.0
Replay Recollections 10 5000 39.7
Replay Recollections 50 5000 47.9
Replay Recollections 200 5000 51.6
GEM Real Storage 20 20 23.4
GEM Real Storage 60 60 40.6
GEM Real Storage 200 200 48.7
GEM Recollections 20 5000 52.4
GEM Recollections 60 5000 56.0
GEM Recollections 200 5000 59.0
"""
OMNIGLOT = """
Online 0 3.5
Replay Real Storage 10 10 3.6
Replay Real Storage 50 50 4.3
Replay Real Storage 50, 3 steps 50 4.8
Replay Recollections 10 1011 5.0
Replay Recollections 50 1005 9.3
Replay Recollections 50, 3 steps 1005 13.0
"""
BOTH = pytest.mark.parametrize(
    ("experiment", "paper"), [(table2.EXPERIMENT, PAPER), (omniglot.EXPERIMENT, OMNIGLOT)], ids=["table2", "omniglot"]
)


@BOTH
def test_the_rows_are_the_papers(experiment: Continual, paper: str):
    lines = [line.rsplit(" ", 2) for line in paper.strip().splitlines()]
    expected = {name: (int(items), float(retention)) for name, items, retention in lines}
    assert {row.name: (row.items, row.paper) for row in experiment.rows if row.paper is not None} == expected


@BOTH
def test_no_memory_takes_more_than_its_storage_and_controls_take_nearly_all(experiment: Continual, paper: str):
    image = rc.bits_per_item(variables=rc.RawPixels(experiment.course.shape).variables, categories=256)
    for row in experiment.rows:
        if row.codec is None or row.storage is None:
            continue
        codec = row.codec(experiment.course.shape, **row.code)
        taken = row.items * rc.bits_per_item(variables=codec.variables, categories=codec.categories)
        assert 0.95 * row.storage * image < taken <= row.storage * image, row.name


def test_the_same_training_is_the_same_and_costs_nothing_more():
    block = [row for row in table2.ROWS if row.block]
    assert len({(row.settings["batch_size"], row.settings["steps"]) for row in block}) == 1
    standard = table2.EXPERIMENT.profiles["standard"]
    distinct = table2.EXPERIMENT.distinct(standard, table2.EXPERIMENT.chosen(standard))
    assert len(distinct) == len(table2.ROWS) - len(block)


def test_settings_are_tried_on_the_first_three_tasks():
    assert PROFILE.tasks == 3
    for row in table2.ROWS:
        tried = candidates(row)
        assert not tried or row.settings in [candidate.settings for candidate in tried], row.name
