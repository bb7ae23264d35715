"""Codecs that learn from a stream: rehearsal, measuring, checkpoints, and the training on CIFAR-10 before it."""

from __future__ import annotations

import copy
import json
import math
import random
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pooch
import pytest
import safetensors.torch
import torch
from typer.testing import CliRunner

import recollect as rc
from commands import call
from conftest import Folders
from processes import CONTEXT, start, wait
from recollect.cli import app
from recollect.data import cifar
from recollect.lab import codec_transfer, experiments, results, runner, self_stabilisation
from recollect.lab.checkpoint import Checkpoint, Saved
from recollect.lab.codec_experiment import CodecExperiment, CodecProfile, CodecRow
from recollect.lab.codec_run import CodecRun, execute
from recollect.lab.continual import Continual, ContinualProfile, ContinualRow
from recollect.lab.course import CIFAR100, stream_of
from recollect.lab.experiment import AnyExperiment, Report, silent
from recollect.lab.job import CPU, Job
from recollect.lab.pretraining import Pretraining, pass_over
from recollect.lab.trainee import Trainee
from test_cifar import COARSE, rows, write_cifar100

CODE: dict[str, Any] = {"variables": 8, "categories": 2}
PROFILE = CodecProfile(
    name="quick", seeds=1, tasks=3, train_examples=30, test_examples=4, passes=2, pass_batch=20, pretraining_examples=60
)
BUFFERED: dict[str, Any] = {"code": CODE, "training": {"steps": 2, "learning_rate": 1e-3}, "rehearsed": 5}
ROWS = (
    CodecRow(name="Recollections", buffer="recollections", items=12, **BUFFERED),
    CodecRow(name="Real", buffer="real", items=12, **BUFFERED),
    CodecRow(name="Online", code=CODE, training={"learning_rate": 1e-3}),
    CodecRow(name="Offline", code=CODE, training={"learning_rate": 1e-3}, offline=True),
    CodecRow(name="Transfer", code=CODE, training={"learning_rate": 1e-3}, pretraining_rate=1e-3),
)
EXPERIMENT = CodecExperiment(name="tiny", title="A title", answers="?", rows=ROWS, profiles={"quick": PROFILE})


@pytest.fixture
def data(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> Folders:
    """Small copies of both sets, and a cache of its own for what is trained on CIFAR-10."""
    monkeypatch.setattr(cifar, "TRAIN", 1000)
    monkeypatch.setattr(cifar, "TEST", 200)
    fine = [np.arange(100).repeat(count) for count in (10, 2)]
    write_cifar100(folders.own / "cifar-100-binary", *(rows([COARSE[y], y], seed) for seed, y in enumerate(fine)))
    folder = folders.own / "cifar-10-batches-bin"
    folder.mkdir()
    for number, part in enumerate(np.split(rows([np.arange(1200) % 10], seed=2), 6), 1):
        part.tofile(folder / (f"data_batch_{number}.bin" if number < 6 else "test_batch.bin"))
    stream_of.cache_clear()
    return folders


def make(row: CodecRow, checkpoint: Checkpoint | None = None, report: Report = silent) -> tuple[Trainee, CodecRun]:
    job = Job(experiment=EXPERIMENT, profile=PROFILE, row=row, seed=0)
    return execute(EXPERIMENT.course, job, report, checkpoint)


def weights(codec: torch.nn.Module) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in codec.parameters()])


def without_times(run: CodecRun) -> dict[str, Any]:
    timed = {"seconds", "evaluation_seconds", "examples_per_second"}
    return {name: value for name, value in asdict(run).items() if name not in timed}


def test_rehearsal_is_algorithm_1_and_measuring_changes_nothing(data: Folders):
    """Beside a loop that is written out: from the memory of codes, or from that of real images."""
    stream = rc.streams.incremental_cifar100(0, tasks=3, train_examples=30)
    for row in ROWS[:2]:
        trainee, run = make(row)
        codec = rc.DiscreteAutoencoder((3, 32, 32), **CODE, seed=0)
        kept = codec if row.buffer == "recollections" else rc.RawPixels((3, 32, 32))
        memory = rc.Memory(kept, capacity=12, classes=100, tasks=20, seed=0)
        adam = torch.optim.Adam(codec.parameters(), lr=1e-3, fused=True)
        expected = []
        for number, task in enumerate(stream):
            for x, y in task.train.batches(10):
                sets = memory.sample(10).x.split(5) if len(memory) else [x[:0]] * 2
                for recollected in sets:
                    adam.zero_grad()
                    codec.loss(torch.cat([x, recollected])).backward()
                    adam.step()
                memory.write(x, y, number)
            tested, asked = torch.cat([task.test.x[:4] for task in stream[: number + 1]]), copy.deepcopy(codec)
            decoded = torch.cat([asked.decode(asked.encode(x)) for x in tested.split(4)])
            expected.append(float((decoded - tested).abs().mean()))
        assert torch.equal(weights(trainee.codec), weights(codec))
        assert run.distortion == pytest.approx(expected, rel=1e-5)
        assert trainee.memory is not None
        assert torch.equal(trainee.memory.ids, memory.ids)


def test_a_run_records_the_matrix_and_what_is_kept(data: Folders):
    runs = {row.name: make(row)[1] for row in ROWS}
    for name, run in runs.items():
        lines = run.by_task if name != "Offline" else run.by_task * 3
        assert [len(line) for line in lines] == ([1, 2, 3] if name != "Offline" else [3, 3, 3])
        for number, line in enumerate(lines, 1):
            assert run.distortion[number - 1] == pytest.approx(sum(line[:number]) / number)
        assert run.bits["codec"] == 32 * (100 * 4**2 + 150 * 4 + 5 * 4 + 3)
    stored = {name: (run.items, run.bits_per_item, run.storage_examples) for name, run in runs.items()}
    assert stored["Recollections"] == (12, 8, 12 * 8 / 24576)
    assert stored["Real"] == (12, 24576, 12)
    assert stored["Online"] == stored["Transfer"] == (0, 0, 0)
    assert stored["Offline"] == (90, 24576, 90)
    assert runs["Transfer"].by_task != runs["Online"].by_task


def test_offline_is_passes_over_all_tasks_in_orders_of_their_own(data: Folders):
    trainee, _ = make(ROWS[3])
    stream = rc.streams.incremental_cifar100(0, tasks=3, train_examples=30)
    everything = rc.streams.Examples(
        torch.cat([task.train.images for task in stream]), torch.cat([task.train.y for task in stream])
    )
    codec = rc.DiscreteAutoencoder((3, 32, 32), **CODE, seed=0)
    adam = torch.optim.Adam(codec.parameters(), lr=1e-3, fused=True)
    orders = [pass_over(everything, 0, number) for number in range(2)]
    for order in orders:
        assert sorted(image.numpy().tobytes() for image in order.images) == sorted(
            image.numpy().tobytes() for image in everything.images
        )
        for x, _ in order.batches(20):
            adam.zero_grad()
            codec.loss(x).backward()
            adam.step()
    assert not torch.equal(orders[0].images, orders[1].images)
    assert torch.equal(weights(trainee.codec), weights(codec))


class StoppedError(Exception):
    pass


class Stopping(Checkpoint):
    """Stops after so many batches, having saved at one of them."""

    def __init__(self, path: Path, after: int, save: int) -> None:
        super().__init__(path, {}, every=0)
        self.after, self.at, self.batches = after, save, 0

    def save_if_due(self, learner: Saved, measured: dict[str, Any]) -> None:
        self.batches += 1
        if self.batches == self.at:
            super().save_if_due(learner, measured)
        if self.batches == self.after:
            raise StoppedError


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_run_stopped_twice_ends_as_one_never_stopped(row: CodecRow, data: Folders, tmp_path: Path):
    rng = random.Random(row.name)
    whole, expected = make(row)
    left = 10 if row.offline else 9
    for _ in range(2):
        after = rng.randint(1, left)
        save = rng.randint(1, after)
        with pytest.raises(StoppedError):
            make(row, Stopping(tmp_path / "run.rec", after, save))
        left -= save
        if left == 0:
            break
    trainee, run = make(row, Checkpoint(tmp_path / "run.rec", {}))
    assert without_times(run) == without_times(expected)
    assert torch.equal(weights(trainee.codec), weights(whole.codec))


def test_a_damaged_checkpoint_is_not_gone_on_from(data: Folders, tmp_path: Path):
    path = tmp_path / "run.rec"
    with pytest.raises(StoppedError):
        make(ROWS[1], Stopping(path, after=4, save=4))
    trainee = ROWS[1].build(EXPERIMENT.course, 0, CPU)
    assert Checkpoint(path, {}).resumed(trainee.loaded) is not None
    rc.Memory(rc.RawPixels((3, 32, 32)), capacity=12).commit(tmp_path / "other.rec")
    (tmp_path / "other.rec").replace(path)
    expected, run = make(ROWS[1])[1], make(ROWS[1], Checkpoint(path, {}))[1]
    assert without_times(run) == without_times(expected)


RECIPE = Pretraining(**CODE, passes=3, examples=50, batch=20)


def test_weights_are_those_of_plain_training_and_draws_stay_the_codecs_own(data: Folders):
    codec, other = (rc.DiscreteAutoencoder((3, 32, 32), **CODE, seed=5) for _ in range(2))
    RECIPE.start(codec)
    assert torch.equal(codec.get_extra_state(), other.get_extra_state())
    plain = rc.DiscreteAutoencoder((3, 32, 32), **CODE, seed=0)
    adam = torch.optim.Adam(plain.parameters(), lr=1e-3, fused=True)
    examples = rc.streams.cifar10(0, train_examples=50).train
    for number in range(3):
        for x, _ in pass_over(examples, 0, number).batches(20):
            adam.zero_grad()
            plain.loss(x).backward()
            adam.step()
    assert torch.equal(weights(codec), weights(plain))
    assert data.cache in RECIPE.path.parents


def test_it_is_made_once_and_another_training_is_another_file(data: Folders, monkeypatch: pytest.MonkeyPatch):
    codec = rc.DiscreteAutoencoder((3, 32, 32), **CODE)
    RECIPE.start(codec)
    assert replace(RECIPE, seed=1).path != RECIPE.path != replace(RECIPE, passes=4).path
    assert [path.suffix for path in RECIPE.path.parent.iterdir() if path.suffix != ".lock"] == [".safetensors"]
    monkeypatch.setattr(rc.streams, "cifar10", None)  # nobody trains again
    again = rc.DiscreteAutoencoder((3, 32, 32), **CODE, seed=9)
    RECIPE.start(again)
    assert torch.equal(weights(again), weights(codec))


def test_a_stopped_training_ends_as_one_never_stopped(data: Folders, monkeypatch: pytest.MonkeyPatch):
    whole, codec = (rc.DiscreteAutoencoder((3, 32, 32), **CODE) for _ in range(2))
    RECIPE.start(whole)
    RECIPE.path.unlink()
    for after, save in ((4, 2), (5, 5)):  # in the second pass, and in the third at its first batch
        stopping = partial(Stopping, after=after, save=save)
        with monkeypatch.context() as patch:
            patch.setattr("recollect.lab.pretraining.Checkpoint", lambda path, run, every, to=stopping: to(path))
            with pytest.raises(StoppedError):
                RECIPE.start(codec)
        assert not RECIPE.path.exists()
    told: list[int] = []
    RECIPE.start(codec, report=lambda step, state: told.append(step))
    assert told == [0, 3]
    assert torch.equal(weights(codec), weights(whole))
    assert [path.suffix for path in RECIPE.path.parent.iterdir() if path.suffix != ".lock"] == [".safetensors"]


def train(own: str, cache: str, results: Any) -> None:
    """In a process of its own."""
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RECOLLECT_DATA", own)
        patch.setattr(pooch, "os_cache", lambda project: Path(cache))
        patch.setattr(cifar, "TRAIN", 1000)
        patch.setattr(cifar, "TEST", 200)
        trained: list[int] = []
        codec = rc.DiscreteAutoencoder((3, 32, 32), **CODE)
        RECIPE.start(codec, report=lambda step, state: trained.append(step))
        results.put((max(trained, default=0), float(weights(codec).double().sum())))


def test_two_that_need_it_at_once_make_it_once(data: Folders):
    told = CONTEXT.Queue()
    processes = start(train, str(data.own), str(data.cache), told, times=2)
    ends = [told.get(timeout=120) for _ in processes]
    wait(processes)
    assert sorted(passes for passes, _ in ends) == [0, 3]
    assert ends[0][1] == ends[1][1]
    assert set(safetensors.torch.load_file(RECIPE.path)) == set(
        dict(rc.DiscreteAutoencoder((3, 32, 32), **CODE).named_parameters())
    )


def test_runs_are_recorded_shown_and_drawn(data: Folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(experiments.EXPERIMENTS, "tiny", EXPERIMENT)
    called = partial(CliRunner().invoke, app, ["run", "tiny", "-p", "quick", "--out", str(tmp_path), "--json"])
    result = called()
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)["rows"]
    assert [row["name"] for row in found] == [row.name for row in ROWS]
    assert all(len(row["distortion"]["mean"]) == 3 for row in found)
    assert "5 of 5: " in result.stderr
    assert called().stdout == result.stdout
    summaries = results.summaries(tmp_path, EXPERIMENT, PROFILE, EXPERIMENT.chosen(PROFILE))
    after = found[0]["distortion"]["mean"]
    assert EXPERIMENT.cells(ROWS[0], summaries[0].runs)[3:] == tuple(f"{after[n]:.4f}" for n in (0, 1, 2))
    (axis,) = EXPERIMENT.figure(summaries).axes
    assert [line.get_label() for line in axis.lines] == [row.name for row in ROWS]
    assert np.asarray(axis.lines[0].get_ydata()) == pytest.approx(after)
    # A codec that diverged: what is not a number is written as null.
    results.write(tmp_path, replace(summaries[0].runs[0], distortion=[after[0], math.nan, math.nan]))
    summaries = results.summaries(tmp_path, EXPERIMENT, PROFILE, EXPERIMENT.chosen(PROFILE))
    assert EXPERIMENT.cells(ROWS[0], summaries[0].runs)[4:] == ("diverged", "diverged")
    assert EXPERIMENT.as_json(ROWS[0], summaries[0].runs)["distortion"]["mean"] == [after[0], None, None]
    assert np.isnan(np.asarray(EXPERIMENT.figure(summaries).axes[0].lines[0].get_ydata())[1:]).all()


def test_steps_are_told_up_to_the_last(data: Folders):
    for row in ROWS:
        told: list[int] = []
        make(row, report=lambda step, state, told=told: told.append(step))
        assert told[-1] == EXPERIMENT.steps(PROFILE, row)
        assert told == sorted(told)


CONTINUAL = Continual(
    name="tiny",
    title="A title",
    answers="?",
    rows=(ContinualRow(name="Online", learner=rc.Online, settings={}),),
    profiles={"quick": ContinualProfile(name="quick", seeds=1)},
    course=CIFAR100,
)


@pytest.mark.parametrize(
    ("experiment", "missing"),
    [(EXPERIMENT, "cifar-100-binary"), (EXPERIMENT, "cifar-10-batches-bin"), (CONTINUAL, "cifar-100-binary")],
    ids=["stream", "pretraining", "continual"],
)
def test_missing_data_is_said_before_anything_is_run(
    experiment: AnyExperiment, missing: str, data: Folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (data.own / missing).rename(data.own / "away")
    for name in ("CIFAR10", "CIFAR100"):
        archive = getattr(cifar, name)
        monkeypatch.setattr(cifar, name, archive._replace(url="http://127.0.0.1:9/nothing.tar.gz"))
    monkeypatch.setattr(runner, "run", lambda *arguments, **more: pytest.fail("it was run"))
    monkeypatch.setitem(experiments.EXPERIMENTS, "tiny", experiment)
    arguments = ["run", "tiny", "--profile", "quick", "--out", str(tmp_path / "out"), "--jobs", "2"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)
    said = " ".join(result.stderr.split())
    assert "could not be downloaded" in said
    assert "RECOLLECT_DATA" in said
    assert "Traceback" not in said


def test_the_buffers_of_question_7_take_the_same_storage():
    for row in self_stabilisation.EXPERIMENT.rows:
        storage = int(row.name.split()[0])
        bits = rc.bits_per_item(**row.code) if row.buffer == "recollections" else 24576
        assert storage - 1 < row.items * bits / 24576 <= storage or row.buffer == "none"
        assert row.training["steps"] == 10


def test_a_profile_changes_the_amount_of_work_only():
    for experiment in (self_stabilisation.EXPERIMENT, codec_transfer.EXPERIMENT):
        for name, profile in experiment.profiles.items():
            assert profile.name == name
            assert all(row in experiment.rows for row in experiment.chosen(profile))
    paper = codec_transfer.EXPERIMENT.profiles["paper"]
    assert (paper.passes, paper.train_examples, paper.test_examples, paper.stream_batch) == (100, 2500, 500, 1)


def test_a_checkpoint_of_a_codec_is_whole(tmp_path: Path):
    trainee = Trainee(rc.DiscreteAutoencoder((3, 32, 32), **CODE), {}, buffer="recollections", items=5)
    trainee.observe(torch.rand(4, 3, 32, 32), torch.zeros(4, dtype=torch.long), 0)
    trainee.save(tmp_path / "codec.rec", {"batches": 1})
    assert call("verify", tmp_path / "codec.rec")[0].startswith("ok: ")
