"""Table 1: its rows against the paper, its settings against the recorded trials."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import recollect as rc
from recollect.lab import tuning
from recollect.lab.continual import ContinualRow
from recollect.lab.table1 import ROWS, SAME
from recollect.lab.table1_tuning import candidates

TRIALS = tuning.read(Path(__file__).parents[1] / "results" / "table1" / "tuning.jsonl")

# The paper's table, line by line: method, storage, items, retention.
PAPER = """
GEM Real Storage 100 100 62.5
GEM Real Storage 200 200 67.4
GEM Recollections 100 3000 79.0
GEM Recollections 200 3000 81.5
Replay Real Storage 100 100 63.4
Replay Real Storage 200 200 71.3
Replay Recollections 100 3000 75.6
Replay Recollections 200 3000 81.1
EwC 1000 54.6
Online 0 51.9
"""


def test_the_rows_are_the_papers():
    lines = [line.rsplit(" ", 2) for line in PAPER.strip().splitlines()]
    expected = {name: (int(items), float(retention)) for name, items, retention in lines}
    assert {row.name: (row.items, row.paper) for row in ROWS if row.paper is not None} == expected


def test_no_memory_takes_more_than_its_storage():
    for row in ROWS:
        if row.codec is None or row.storage is None:
            continue
        codec = row.codec((1, 28, 28), **row.code)
        bits = rc.bits_per_item(variables=codec.variables, categories=codec.categories)
        assert row.items * bits <= row.storage * 6272, row.name


def test_the_same_training_is_the_same():
    block = [row for row in ROWS if row.block == SAME]
    assert len(block) == 8
    for row in block:
        assert (row.settings["batch_size"], row.settings["steps"]) == (25, 3)
        of_its_own = next(other for other in ROWS if other.name == row.name.replace("Same: ", "Replay "))
        assert (row.code, row.items, row.training) == (of_its_own.code, of_its_own.items, of_its_own.training)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_settings_are_those_that_were_best_on_held_out_images(row: ContinualRow):
    name = row.name.replace("Same: ", "Replay ")
    learned = row.codec is rc.DiscreteAutoencoder
    kept = [tried for _, tried in tuning.ranked(TRIALS, name.replace("200", "100") if learned else name)]
    if row.block:
        kept = [tried for tried in kept if (tried["settings"]["batch_size"], tried["settings"]["steps"]) == (25, 3)]
    chosen = json.loads(json.dumps(row.described))
    if learned and (row.learner is rc.GEM or row.storage == 200):  # only the settings of the learner are taken over
        assert kept[0]["settings"] == chosen["settings"]
    else:
        assert kept[0] == chosen


def test_every_setting_of_the_grids_was_tried():
    tried = {(trial.row, json.dumps(trial.settings)) for trial in TRIALS}
    wanted = {(row.name, json.dumps(row.described)) for line in ROWS if not line.block for row in candidates(line)}
    assert wanted <= tried
