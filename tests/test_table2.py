"""Tables 2 and 3, Omniglot and the frontier: their rows against the paper, what they keep against their storage."""

from __future__ import annotations

import pytest
import torch

import recollect as rc
from recollect.lab import ablation, frontier, omniglot, table2, table3, whole_tuning
from recollect.lab.continual import Continual
from recollect.lab.pretraining import Pretraining
from recollect.lab.table2_tuning import PROFILE, candidates
from recollect.lab.table3_tuning import candidates as candidates3
from recollect.streams.task import Examples

EMPTY = Examples(torch.zeros(0, 3, 32, 32, dtype=torch.uint8), torch.zeros(0, dtype=torch.int64))

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
TABLE3 = """
Replay Real Storage 200 43.0
Replay Recollections, No Transfer 1392 43.7
Replay Recollections, CIFAR-10 Transfer 1392 49.7
GEM Real Storage 200 48.7
GEM Recollections, No Transfer 1392 43.7
GEM Recollections, CIFAR-10 Transfer 1392 54.2
iCaRL 250 43.6
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


@pytest.mark.parametrize(
    ("experiment", "paper"),
    [(table2.EXPERIMENT, PAPER), (table3.EXPERIMENT, TABLE3), (omniglot.EXPERIMENT, OMNIGLOT)],
    ids=["table2", "table3", "omniglot"],
)
def test_the_rows_are_the_papers(experiment: Continual, paper: str):
    lines = [line.rsplit(" ", 2) for line in paper.strip().splitlines()]
    expected = {name: (int(items), float(retention)) for name, items, retention in lines}
    assert {row.name: (row.items, row.paper) for row in experiment.rows if row.paper is not None} == expected


@pytest.mark.parametrize(
    "experiment", [table2.EXPERIMENT, omniglot.EXPERIMENT, frontier.EXPERIMENT], ids=["table2", "omniglot", "frontier"]
)
def test_no_memory_takes_more_than_its_storage_and_controls_take_nearly_all(experiment: Continual):
    image = rc.bits_per_item(variables=rc.RawPixels(experiment.course.shape).variables, categories=256)
    for row in experiment.rows:
        if row.codec is None or row.storage is None:
            continue
        codec = row.codec(experiment.course.shape, **row.code)
        taken = row.code_bits or row.items * rc.bits_per_item(variables=codec.variables, categories=codec.categories)
        assert 0.95 * row.storage * image < taken <= row.storage * image, row.name


def test_the_same_training_is_the_same_and_costs_nothing_more():
    block = [row for row in table2.ROWS if row.block == table2.SAME]
    assert all(row.settings == block[0].settings for row in block)
    standard = table2.EXPERIMENT.profiles["standard"]
    distinct = table2.EXPERIMENT.distinct(standard, table2.EXPERIMENT.chosen(standard))
    assert len(distinct) == len(table2.ROWS) - len(block)


def test_settings_are_tried_on_the_first_three_tasks_in_their_share_of_the_storage():
    assert PROFILE.tasks == 3
    for row in table2.ROWS:
        tried = candidates(row)
        assert not tried or row.settings in [candidate.settings for candidate in tried], row.name
        if row.codec is None:
            continue
        image = rc.bits_per_item(variables=rc.RawPixels((3, 32, 32)).variables, categories=256)
        for candidate in tried:
            codec = row.codec((3, 32, 32), **candidate.code)
            item = rc.bits_per_item(variables=codec.variables, categories=codec.categories)
            images = (candidate.code_bits or candidate.items * item) / image
            assert 0.13 < images / (row.storage or 1) <= 3 / 20, (row.name, candidate.code)


@pytest.mark.parametrize("experiment", whole_tuning.EXPERIMENTS.values(), ids=whole_tuning.EXPERIMENTS)
def test_whole_streams_are_tried_in_all_of_the_storage_and_have_what_was_chosen(experiment: Continual):
    standard = experiment.profiles["standard"]
    profile = whole_tuning.whole(standard)
    assert profile.tasks == standard.tasks
    assert profile.train_examples + profile.test_examples == standard.train_examples
    trials = {row.name: tried for row in experiment.rows if (tried := whole_tuning.candidates(row))}
    assert len(trials) == {"table2": 4, "omniglot": 2}[experiment.name]
    for row in experiment.rows:
        for tried in trials.get(row.name, []):
            assert (tried.items, tried.code_bits, tried.admission) == (row.items, row.code_bits, row.admission)
        chosen = [(tried.settings, tried.code) for tried in trials.get(row.name, [])]
        assert not chosen or (row.settings, row.code) in chosen, row.name


def test_what_is_chosen_for_table_3_is_among_what_is_tried():
    tuned = {row.name: candidates3(row) for row in table3.EXPERIMENT.rows if candidates3(row)}
    assert [*tuned] == ["Replay Recollections, No Transfer", "Replay Recollections, CIFAR-10 Transfer"]
    for row in table3.EXPERIMENT.rows:
        for tried in tuned.get(row.name, []):
            assert tried.items == 1392 * 3 // 20
        assert row.name not in tuned or row.training in [tried.training for tried in tuned[row.name]]


def test_in_table_3_codec_and_items_take_what_200_images_take():
    for row in table3.EXPERIMENT.rows:
        if row.codec is rc.DiscreteAutoencoder:
            codec = row.codec(table3.EXPERIMENT.course.shape, **row.code)
            bits = codec.storage_bits + row.items * rc.bits_per_item(variables=76, categories=2)
            assert 199.9 < bits / 24_576 <= 200
            assert bool(row.start) == ("Transfer" in row.name and "No" not in row.name)


def test_a_codec_starts_from_what_it_learned_before_the_stream(monkeypatch: pytest.MonkeyPatch):
    started = []
    monkeypatch.setattr(
        Pretraining, "start", lambda self, codec, report: started.append((self.passes, codec.variables))
    )
    row = table3.EXPERIMENT.rows[2]
    stream = [rc.streams.Task(name="", train=EMPTY, test=EMPTY, classes=(0, 1))]
    row.build(table3.EXPERIMENT.course, stream, 0, torch.device("cpu"))
    paper = row.in_profile(table3.EXPERIMENT.profiles["paper"])
    paper.build(table3.EXPERIMENT.course, stream, 0, torch.device("cpu"))
    assert started == [(20, 76), (100, 76)]
    assert row.described["pretraining"] == {"passes": 20}
    assert "pretraining" not in table3.EXPERIMENT.rows[1].described


@pytest.mark.parametrize("experiment", [frontier.EXPERIMENT, ablation.EXPERIMENT, omniglot.EXPERIMENT])
def test_every_memory_can_be_made(experiment: Continual):
    for row in experiment.rows:
        if row.codec is not None:
            codec = row.codec(experiment.course.shape, **row.code)
            memory = rc.Memory(codec, row.items or None, code_bits=row.code_bits, scheme=row.scheme)
            learns = row.codec is rc.DiscreteAutoencoder or bool(row.code.get("filters"))
            assert rc.RecollectionModule(memory, **row.training).learns == learns, row.name
