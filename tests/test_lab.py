"""The lab: runs, their records, going on after a stop, and runs side by side."""

from __future__ import annotations

import io
import json
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console

import recollect as rc
from recollect.lab import continual, results, runner, tuning
from recollect.lab.ageing import EXPERIMENT as AGEING
from recollect.lab.continual import Continual, ContinualProfile, ContinualRow
from recollect.lab.environment import revision
from recollect.lab.experiment import AnyExperiment, Row
from recollect.lab.experiments import EXPERIMENTS
from recollect.lab.job import CPU, Job
from recollect.lab.metrics import backward_transfer, forward_transfer
from recollect.lab.run import ContinualRun, Measured, ages, execute

PROFILE = ContinualProfile(name="tiny", seeds=2, tasks=3, train_examples=30, test_examples=40, matrix_examples=20)
RAW = {"codec": rc.RawPixels, "items": 12}
ROWS = (
    ContinualRow(name="Online", learner=rc.Online, settings={"learning_rate": 0.1}),
    ContinualRow(name="Replay", learner=rc.Replay, settings={"learning_rate": 0.1, "batch_size": 5}, paper=50.0, **RAW),
    ContinualRow(name="GEM", learner=rc.GEM, settings={"memory_batch": 3}, admission="ring", **RAW),
    ContinualRow(name="Offline", learner=rc.Offline, settings={"epochs": 2}, codec=rc.RawPixels, items=90),
    ContinualRow(name="EWC", learner=rc.EWC, settings={"items": 10}, items=10),
    ContinualRow(
        name="Recollections",
        learner=rc.Replay,
        settings={"batch_size": 5},
        codec=rc.DiscreteAutoencoder,
        code={"variables": 8, "categories": 2},
        training={"rehearse": "none"},
        items=20,
    ),
    ContinualRow(name="Again", block="Block", learner=rc.Online, settings={"learning_rate": 0.1}),
)
EXPERIMENT = Continual(name="tiny", title="A title", answers="?", rows=ROWS, profiles={"tiny": PROFILE})


def run_all(folder: Path, rows: tuple[ContinualRow, ...] = ROWS, *, seeds: int = 1, workers: int = 1) -> str:
    jobs = runner.jobs_left(EXPERIMENT, PROFILE, list(rows), seeds, folder)
    console = Console(file=io.StringIO(), width=200)
    runner.run(jobs, partial(results.write, folder), workers=workers, console=console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def recorded(folder: Path) -> dict[str, ContinualRun]:
    return {path.parent.name: ContinualRun(**json.loads(path.read_text())) for path in folder.rglob("seed0.json")}


def test_transfer_is_as_in_the_gem_paper():
    R = [[0.9, 0.2, 0.1], [0.6, 0.8, 0.3], [0.5, 0.7, 0.9]]
    assert backward_transfer(R) == pytest.approx(((0.5 - 0.9) + (0.7 - 0.8)) / 2)
    assert forward_transfer(R, untrained=[0.1, 0.1, 0.05]) == pytest.approx(((0.2 - 0.1) + (0.3 - 0.05)) / 2)
    assert backward_transfer([[0.9]]) == forward_transfer([[0.9]], [0.1]) == 0


def test_a_run_records_what_was_done(tmp_path: Path):
    said = run_all(tmp_path)
    runs = recorded(tmp_path)
    assert set(runs) == {"online", "replay", "gem", "offline", "ewc", "recollections"}  # one run for two equal rows
    for run in runs.values():
        assert 0 <= run.retention <= 100
        assert run.row in said
        assert len(run.untrained) == 3
        assert run.examples_per_second == pytest.approx(90 / run.seconds, rel=0.01)
        assert {"torch", "revision", "cpu", "threads", "device"} <= set(run.environment)
    online, offline, replay, ewc = (runs[name] for name in ("online", "offline", "replay", "ewc"))
    assert [len(line) for line in online.accuracy] == [3, 3, 3]
    assert online.backward_transfer == pytest.approx(backward_transfer(online.accuracy))
    assert online.bits["total"] == online.items == online.storage_examples == 0
    assert len(offline.accuracy) == 1  # it learns at the end
    assert offline.backward_transfer is None
    assert (replay.items, replay.bits_per_item, replay.storage_examples) == (12, 6272, 12)
    assert replay.distortion == {"new": [0, 0, 0], "held": [0, 0, 0]}  # raw pixels are exact
    assert ewc.items == 10
    assert ewc.storage_examples == pytest.approx(3 * 2 * 32 * 89_610 / 6272)
    assert replay.ageing == {kind: [[0], [0, 0], [0, 0, 0]] for kind in ("held", "fresh")}
    assert offline.ageing["held"][-1] == [0, 0, 0]
    assert online.ageing == {"held": [], "fresh": []}
    learned = runs["recollections"].ageing
    assert [len(line) for line in learned["fresh"]] == [1, 2, 3]
    assert all(
        0.02 < error < 0.6 for lines in learned.values() for line in lines for error in line if error is not None
    )
    learned = runs["recollections"].distortion
    assert len(learned["new"]) == len(learned["held"]) == 3
    assert all(0.02 < error < 0.6 for errors in learned.values() for error in errors)


def test_retention_is_the_accuracy_of_the_learner_and_measuring_changes_nothing():
    row = ROWS[5]
    told: list[tuple[int, str]] = []
    job = Job(experiment=EXPERIMENT, profile=PROFILE, row=row, seed=0)
    learner, run = execute(EXPERIMENT.course, job, lambda step, state: told.append((step, state)))
    stream = rc.streams.mnist_rotations(0, tasks=3, train_examples=30, test_examples=40)
    unwatched = row.build(EXPERIMENT.course, [], 0, CPU)
    for number, task in enumerate(stream):
        for x, y in task.train.batches(10):
            unwatched.observe(x, y, number)
    right = [float((unwatched.predict(task.test.x) == task.test.y).float().mean()) for task in stream]
    assert run.retention == pytest.approx(100 * sum(right) / 3)
    pairs = zip(learner.model.parameters(), unwatched.model.parameters(), strict=True)
    assert all(torch.equal(ours, theirs) for ours, theirs in pairs)
    assert [step for step, _ in told] == [1, 2, 3]
    assert told[-1][1] == f"task 3 of 3, {sum(run.accuracy[-1]) / 3:.1f} % so far"


def test_it_goes_on_where_it_was_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    made: list[str] = []

    def stop_at_the_third(*arguments: Any) -> tuple[rc.Learner, ContinualRun]:
        if len(made) == 2:
            raise KeyboardInterrupt
        learner, run = execute(*arguments)
        made.append(run.row)
        return learner, run

    monkeypatch.setattr(continual, "execute", stop_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        run_all(tmp_path, ROWS[:3], seeds=2)
    assert len([*tmp_path.rglob("seed*.json")]) == 2
    before = {path: path.read_bytes() for path in tmp_path.rglob("seed*.json")}
    monkeypatch.undo()
    run_all(tmp_path, ROWS[:3], seeds=2)
    assert len([*tmp_path.rglob("seed*.json")]) == 6
    assert all(path.read_bytes() == content for path, content in before.items())
    assert [*tmp_path.rglob("*.part")] == []
    assert runner.jobs_left(EXPERIMENT, PROFILE, list(ROWS[:3]), 2, tmp_path) == []


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=EXPERIMENTS)
def test_workers_can_be_given_every_experiment(experiment: AnyExperiment):
    given = pickle.loads(pickle.dumps(experiment))
    assert (given.name, given.rows, given.profiles) == (experiment.name, experiment.rows, experiment.profiles)
    if isinstance(experiment, Continual):
        assert given.course == experiment.course  # so that a worker makes a stream once for all its rows


def test_a_row_may_have_fewer_seeds_than_its_profile_and_more_are_run_if_asked_for(tmp_path: Path):
    rows: list[Row] = [replace(ROWS[0], seeds=1), ROWS[1]]
    left = runner.jobs_left(EXPERIMENT, PROFILE, rows, None, tmp_path)
    assert sorted((job.row.name, job.seed) for job in left) == [("Online", 0), ("Replay", 0), ("Replay", 1)]
    assert len(runner.jobs_left(EXPERIMENT, PROFILE, rows, 3, tmp_path)) == 6


def test_a_run_with_other_settings_is_run_again(tmp_path: Path):
    run_all(tmp_path, ROWS[:1])
    changed = replace(ROWS[0], settings={"learning_rate": 0.2})
    assert len(runner.jobs_left(EXPERIMENT, PROFILE, [changed], 1, tmp_path)) == 1
    assert results.summaries(tmp_path, EXPERIMENT, PROFILE, [changed]) == []


def test_a_run_with_another_amount_of_work_is_run_again(tmp_path: Path):
    run_all(tmp_path, ROWS[:1])
    assert len(runner.jobs_left(EXPERIMENT, replace(PROFILE, train_examples=40), [ROWS[0]], 1, tmp_path)) == 1
    assert len(runner.jobs_left(EXPERIMENT, replace(PROFILE, seeds=9), [ROWS[0]], 1, tmp_path)) == 0


def test_a_run_with_settings_as_small_as_can_be_is_not_run_again(tmp_path: Path):
    row = replace(ROWS[0], settings=ROWS[0].settings | {"learning_rate": 1.25e-7})
    run_all(tmp_path, (row,))
    assert runner.jobs_left(EXPERIMENT, PROFILE, [row], 1, tmp_path) == []


def test_what_is_not_a_number_is_null(tmp_path: Path):
    _, run = execute(EXPERIMENT.course, Job(experiment=EXPERIMENT, profile=PROFILE, row=ROWS[0], seed=0))
    path = results.write(tmp_path, replace(run, distortion={"new": [float("nan")], "held": [0.5]}))
    assert json.loads(path.read_text(), parse_constant=pytest.fail)["distortion"] == {"new": [None], "held": [0.5]}


def test_a_damaged_record_is_named(tmp_path: Path):
    run_all(tmp_path, ROWS[:1])
    (path,) = tmp_path.rglob("seed0.json")
    path.write_text(path.read_text()[:100])
    with pytest.raises(ValueError, match=r"seed0\.json: not a recorded run"):
        runner.jobs_left(EXPERIMENT, PROFILE, [ROWS[0]], 1, tmp_path)


def test_runs_side_by_side_are_the_same_runs(tmp_path: Path):
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        run_all(tmp_path / "one", ROWS[:2], seeds=2)
    finally:
        torch.set_num_threads(threads)
    run_all(tmp_path / "two", ROWS[:2], seeds=2, workers=2)
    paths = sorted(path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*.json"))
    assert len(paths) == 4
    for path in paths:
        one, two = (json.loads((tmp_path / folder / path).read_text()) for folder in ("one", "two"))
        for timing in ("seconds", "evaluation_seconds", "examples_per_second"):
            del one[timing], two[timing]
        assert one == two


def test_a_run_that_fails_beside_others_is_reported(tmp_path: Path):
    broken = ContinualRow(name="Broken", learner=rc.Online, settings={"no_such_setting": 1})
    with pytest.raises(runner.RunError, match=r"(?s)Broken, seed 0 failed: \nTraceback.*no_such_setting"):
        run_all(tmp_path, (broken, ROWS[0]), workers=2)


def test_a_full_disk_is_told_in_a_line(tmp_path: Path):
    (tmp_path / "tiny").write_text("in the place of a folder")
    with pytest.raises(runner.RunError, match=r"^Online, seed [01] failed: .*tiny") as caught:
        run_all(tmp_path, ROWS[:1], seeds=2, workers=2)
    assert "\n" not in str(caught.value)


SMALL_COMMAND = """
import signal
import sys
from dataclasses import replace
from recollect.cli import app
from recollect.lab.experiments import EXPERIMENTS
from recollect.lab.table1 import EXPERIMENT

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may be deaf to it
    quick = replace(EXPERIMENT.profiles["quick"], tasks=2, train_examples=int(sys.argv.pop()), test_examples=20)
    EXPERIMENTS["table1"] = replace(EXPERIMENT, profiles={"quick": quick})
    app()
"""


def test_a_worker_that_dies_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    start = runner._start

    def start_and_kill(processes: list[Any]) -> None:
        start(processes)
        os.kill(processes[0].pid, signal.SIGKILL)

    monkeypatch.setattr(runner, "_start", start_and_kill)
    with pytest.raises(runner.RunError, match="a worker ended with exit code -9"):
        run_all(tmp_path, ROWS[:2], seeds=20, workers=2)


def started(folder: Path, jobs: str, train_examples: int = 20) -> subprocess.Popen[str]:
    """A command with many runs, of which at least one is recorded."""
    script = folder / "small.py"
    script.write_text(SMALL_COMMAND)
    command = [sys.executable, str(script), "run", "table1", "--profile", "quick", "--rows", "online"]
    command += ["--seeds", "300", "--jobs", jobs, "--out", str(folder), str(train_examples)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    deadline = time.monotonic() + 120
    while not [*folder.rglob("seed*.json")] and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.1)
    return process


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_ends_the_command_and_leaves_finished_runs(tmp_path: Path, jobs: str):
    process = started(tmp_path, jobs)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does, to the command and its workers
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "the same command goes on from there" in " ".join(said.split())
    runs = [*tmp_path.rglob("seed*.json")]
    assert 1 <= len(runs) < 300
    assert all("retention" in json.loads(path.read_text()) for path in runs)


def test_workers_end_when_their_command_is_killed(tmp_path: Path):
    process = started(tmp_path, jobs="2", train_examples=3000)  # runs of a second
    process.kill()
    before = len([*tmp_path.rglob("seed*.json")])
    process.communicate(timeout=60)  # which waits until all that have its pipes are gone
    assert len([*tmp_path.rglob("seed*.json")]) <= before + 1  # both were in the middle of a run


def test_a_run_says_which_code_made_it(tmp_path: Path):
    def git(*words: str) -> str:
        config = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
        command = ["git", "-C", str(tmp_path), *config, *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    assert revision(tmp_path / "installed") == ""
    git("init", "--quiet")
    (tmp_path / "code.py").write_text("x = 1")
    git("add", "code.py")
    git("commit", "--quiet", "--message", "One")
    assert revision(tmp_path) == git("rev-parse", "--short=12", "HEAD")
    (tmp_path / "code.py").write_text("x = 2")
    assert revision(tmp_path) == git("rev-parse", "--short=12", "HEAD") + "-dirty"


def test_tuning_goes_on_where_it_was_stopped(tmp_path: Path):
    path = tmp_path / "trials.jsonl"
    rows = tuning.grid(ROWS[0], learning_rate=(0.1, 0.2, 0.4))
    jobs = tuning.jobs_left(EXPERIMENT, PROFILE, rows, (100,), path)
    console = Console(file=io.StringIO())
    runner.run(jobs[:2], partial(tuning.append, path), workers=1, console=console)
    (left,) = tuning.jobs_left(EXPERIMENT, PROFILE, rows, (100,), path)
    assert left.row.described["settings"] == {"learning_rate": 0.4}
    assert left.validation
    runner.run([left], partial(tuning.append, path), workers=1, console=console)
    trials = tuning.read(path)
    ranked = tuning.ranked(trials, "Online")
    assert [mean for mean, _ in ranked] == sorted((trial.retention for trial in trials), reverse=True)


def test_a_trial_is_not_made_again_because_settings_stand_in_another_order(tmp_path: Path):
    path, row = tmp_path / "trials.jsonl", ROWS[1]
    jobs = tuning.jobs_left(EXPERIMENT, PROFILE, [row], (100,), path)
    runner.run(jobs, partial(tuning.append, path), workers=1, console=Console(file=io.StringIO()))
    turned = replace(row, settings=dict(reversed(row.settings.items())))
    assert list(turned.settings) != list(row.settings)
    assert tuning.jobs_left(EXPERIMENT, PROFILE, [turned], (100,), path) == []


def test_a_trial_over_less_of_the_stream_is_another(tmp_path: Path):
    path = tmp_path / "tuning.jsonl"
    jobs = tuning.jobs_left(EXPERIMENT, PROFILE, [ROWS[0]], (100,), path)
    runner.run(jobs, partial(tuning.append, path), workers=1, console=Console(file=io.StringIO()))
    assert tuning.jobs_left(EXPERIMENT, PROFILE, [ROWS[0]], (100,), path) == []
    assert len(tuning.jobs_left(EXPERIMENT, replace(PROFILE, tasks=2), [ROWS[0]], (100,), path)) == 1


def test_rows_are_chosen_by_parts_of_their_names():
    assert [row.name for row in EXPERIMENT.chosen(PROFILE, ["e", "ON"])][:2] == ["Online", "Replay"]
    assert [row.name for row in EXPERIMENT.chosen(PROFILE, ["gem"])] == ["GEM"]
    with pytest.raises(ValueError, match=r"rows='Gen': accepted are parts of 'Online', 'Replay'"):
        EXPERIMENT.chosen(PROFILE, ["Gen"])


def test_a_row_is_chosen_by_its_name_though_others_have_it_in_theirs():
    both = replace(EXPERIMENT, rows=(replace(ROWS[0], name="Replay 20"), replace(ROWS[1], name="Replay 200")))
    assert [row.name for row in both.chosen(PROFILE, ["replay 20"])] == ["Replay 20"]
    assert [row.name for row in both.chosen(PROFILE, ["replay 20", "20"])] == ["Replay 20", "Replay 200"]
    assert [row.name for row in both.chosen(replace(PROFILE, rows=("Replay 20",)))] == ["Replay 20"]


def test_the_profile_paper_has_the_settings_of_the_appendix():
    row = replace(ROWS[1], paper_settings={"learning_rate": 0.01, "steps": 1}, paper_training={"steps": 7})
    assert row.in_profile(PROFILE).settings == {"learning_rate": 0.1, "batch_size": 5}
    assert row.in_profile(replace(PROFILE, name="paper")).settings == {
        "learning_rate": 0.01,
        "batch_size": 5,
        "steps": 1,
    }


def test_workers_have_one_thread_in_numpy_too_and_keep_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    for name in ("OPENBLAS_NUM_THREADS", "MALLOC_TRIM_THRESHOLD_"):
        monkeypatch.delenv(name, raising=False)
    told = f"echo $OMP_NUM_THREADS $OPENBLAS_NUM_THREADS $MALLOC_TRIM_THRESHOLD_ > {tmp_path / 'environment'}"
    process = multiprocessing.get_context("spawn").Process(target=os.system, args=(told,))
    runner._start([process])
    process.join()
    assert (tmp_path / "environment").read_text() == f"1 1 {2**30}\n"
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert not {"OPENBLAS_NUM_THREADS", "MALLOC_TRIM_THRESHOLD_"} & os.environ.keys()


def test_a_line_of_ages_has_every_task_so_far():
    measured = Measured(untrained=[], task=2)
    measured.add_ages({0: rc.Aged(3, 0.2, 0.1), 1: rc.Aged(1, 0.4, 0.3)})  # nothing of the last is held
    assert measured.ageing == {"held": [[0.2, 0.4, None]], "fresh": [[0.1, 0.3, None]]}
    assert measured.distortion["held"] == [pytest.approx(0.25)]


def test_ages_are_those_of_items_spread_evenly_over_all_that_are_held(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("recollect.lab.run.HELD_EXAMPLES", 7)
    stream = [*rc.streams.mnist_rotations(seed=0, tasks=4, train_examples=20)]
    memory = rc.Memory(rc.ResizedPixels((1, 28, 28), size=(7, 7), bits=2), capacity=30, tasks=4)
    ageing = rc.Ageing(memory)
    for number, task in enumerate(stream[:3]):
        x, y = task.train[:]
        memory.write(x, y, number)
        ageing.watch(x)
    assert ages(memory, stream[:3]) == ageing.by_task(most=7)
    before = ages(memory, stream[:2])  # of the third no originals are given
    assert [*before] == [0, 1]
    assert {task: found.items for task, found in before.items()} == {
        task: found.items for task, found in ageing.by_task(most=7).items() if task < 2
    }


def test_a_codec_that_diverged_stands_in_the_table_of_ages():
    row = next(row for row in AGEING.rows if row.codec is rc.DiscreteAutoencoder)
    _, run = execute(EXPERIMENT.course, Job(experiment=EXPERIMENT, profile=PROFILE, row=ROWS[1], seed=0))
    lost = replace(run, ageing={kind: [[None, None]] for kind in ("held", "fresh")})
    assert AGEING.cells(row, [lost])[2:] == ("diverged",) * 5
    assert AGEING.as_json(row, [lost])["ageing"] == {"held": [], "fresh": []}
