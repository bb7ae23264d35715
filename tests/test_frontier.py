"""Retention against storage: on each stream, by both bills, from runs that other experiments have made, too."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from recollect.lab import ablation, frontier, frontier_cifar100, frontier_omniglot, omniglot, results, table2, table3
from recollect.lab.against_storage import AgainstStorage
from recollect.lab.continual import Continual
from recollect.lab.figures import retention_against_storage
from recollect.lab.report import report
from recollect.lab.runner import jobs_left

RECORDED = Path(__file__).parents[1] / "results"
RUN = Path("table2", "standard", "replay-cosines-50", "seed0.json")
SHARED = [(frontier_cifar100.EXPERIMENT, table2.EXPERIMENT), (frontier_omniglot.EXPERIMENT, omniglot.EXPERIMENT)]
# Of other experiments some rows are those of another one, in some profiles.
PARTLY: list[tuple[Continual, dict[str, str]]] = [
    (
        table3.EXPERIMENT,
        {"Replay Real Storage": "Replay Real Storage 200", "GEM Real Storage": "GEM Real Storage 200"},
    ),
    (
        ablation.EXPERIMENT,
        {
            "and coded by frequencies": "Resized Pixels 20",
            "and by their neighbours": "Sketches 20",
            "The paper's codec": "Recollections 20",
        },
    ),
]


@pytest.mark.parametrize(("experiment", "home"), SHARED, ids=["cifar100", "omniglot"])
def test_a_row_does_what_the_row_does_whose_runs_it_shows(experiment: AgainstStorage, home: Continual):
    assert set(experiment.profiles) == set(home.profiles)
    for name, profile in experiment.profiles.items():
        assert profile.amounts == home.profiles[name].amounts
        theirs = {row.name: row.in_profile(profile).described for row in home.rows}
        for row in experiment.rows:
            kept = experiment.kept(row.in_profile(profile), profile)
            assert kept.experiment == home.name
            assert row.in_profile(profile).described == theirs[kept.row]


@pytest.mark.parametrize(("experiment", "theirs"), PARTLY, ids=["table3", "ablation"])
def test_rows_of_two_experiments_that_do_the_same_are_run_once(
    experiment: Continual, theirs: dict[str, str], tmp_path: Path
):
    other, profile = experiment.shares, experiment.profiles["standard"]
    assert other is not None
    kept = {row.name: experiment.kept(row, profile) for row in experiment.chosen(profile)}
    assert {name: row for name, (home, row) in kept.items() if home == other.name} == theirs
    assert all(where == (experiment.name, name) for name, where in kept.items() if name not in theirs)

    (row,) = experiment.chosen(profile, [next(iter(theirs))])
    run = Path(other.name, "standard", results.slug(theirs[row.name]), "seed0.json")
    (tmp_path / run).parent.mkdir(parents=True)
    shutil.copy(RECORDED / run, tmp_path / run)
    assert [job.seed for job in jobs_left(experiment, profile, [row], None, tmp_path)] == [1, 2]
    (summary,) = results.summaries(tmp_path, experiment, profile, [row])
    assert summary.row == row
    (job,) = jobs_left(experiment, profile, [row], 1, tmp_path / "elsewhere")
    assert (job.recorded["experiment"], job.recorded["row"]) == (other.name, theirs[row.name])
    # Of less of the stream it is another run.
    assert experiment.kept(row, replace(profile, train_examples=7)) == (experiment.name, row.name)


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
