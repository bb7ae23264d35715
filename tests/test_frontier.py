"""Retention against storage: on each stream, by both bills, from runs that other experiments have made, too."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from recollect.lab import frontier, frontier_cifar100, frontier_omniglot, omniglot, results, table2
from recollect.lab.against_storage import AgainstStorage
from recollect.lab.continual import Continual
from recollect.lab.figures import retention_against_storage
from recollect.lab.report import report
from recollect.lab.runner import jobs_left

RECORDED = Path(__file__).parents[1] / "results"
RUN = Path("table2", "standard", "replay-cosines-50", "seed0.json")
SHARED = [(frontier_cifar100.EXPERIMENT, table2.EXPERIMENT), (frontier_omniglot.EXPERIMENT, omniglot.EXPERIMENT)]


@pytest.mark.parametrize(("experiment", "home"), SHARED, ids=["cifar100", "omniglot"])
def test_a_row_does_what_the_row_does_whose_runs_it_shows(experiment: AgainstStorage, home: Continual):
    assert experiment.home == home.name
    assert set(experiment.profiles) == set(home.profiles)
    for name, profile in experiment.profiles.items():
        assert profile.amounts == home.profiles[name].amounts
        theirs = {row.name: row.in_profile(profile).described for row in home.rows}
        for row in experiment.rows:
            assert row.in_profile(profile).described == theirs[experiment.recorded_as(row, profile)]


@pytest.mark.parametrize("experiment", [frontier.EXPERIMENT, *(pair[0] for pair in SHARED)], ids=lambda each: each.name)
def test_every_memory_is_trained_in_the_same_way(experiment: AgainstStorage):
    assert len({str(row.settings) for row in experiment.rows}) == 1
    assert {row.learner for row in experiment.rows} == {experiment.rows[0].learner}
    # Of each kind a row in every storage, but for that of all images.
    kinds: dict[str, set[int | None]] = {}
    for row in experiment.rows:
        if row.storage != frontier.EVERY:
            kinds.setdefault(row.name.rsplit(" ", 1)[0], set()).add(row.storage)
    assert len(kinds) == 5
    assert all(storages == kinds[next(iter(kinds))] for storages in kinds.values())


def test_runs_of_the_other_experiment_are_shown_and_not_made_again(tmp_path: Path):
    (tmp_path / RUN).parent.mkdir(parents=True)
    shutil.copy(RECORDED / RUN, tmp_path / RUN)
    experiment = frontier_cifar100.EXPERIMENT
    profile = experiment.profiles["standard"]
    rows = experiment.chosen(profile, ["Replay Cosines 50"])
    (summary,) = results.summaries(tmp_path, experiment, profile, rows)

    assert [job.seed for job in jobs_left(experiment, profile, rows, None, tmp_path)] == [1, 2]
    (job,) = jobs_left(experiment, profile, rows, 1, tmp_path / "elsewhere")
    assert job.saved == (tmp_path / "elsewhere" / RUN).with_suffix(".rec")

    storage, in_all, *_ = experiment.cells(summary.row, summary.runs)
    bits = summary.runs[0].bits
    assert float(in_all) == pytest.approx(bits["total"] / 24_576, abs=0.05)
    assert float(storage) == pytest.approx((bits["codes"] + bits["tables"]) / 24_576, abs=0.05)

    figure = retention_against_storage([(experiment, [summary])])
    alone, everything = (np.asarray(axes.get_lines()[0].get_xdata()) for axes in figure.axes)
    assert alone == pytest.approx([(bits["codes"] + bits["tables"]) / 24_576])
    assert everything == pytest.approx([bits["total"] / 24_576])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["Cosines"]  # all of them replay
    page = report(tmp_path, [experiment])
    assert "frontier_cifar100" in page
    assert "recorded with other settings" not in page
