"""Advice on streams where the right answer is known, what it rests on, and how it is given."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

import recollect as rc
from commands import call
from recollect.advice import progress
from recollect.advice.advice import Tried
from recollect.advice.candidates import CODEC_TRAINING, candidates
from recollect.advice.trial import Trial, default_model, divided
from recollect.budget import raw_bits
from recollect.streams import Task


@pytest.fixture(autouse=True)
def _short_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials of codecs that learn take a tenth of their time."""
    monkeypatch.setitem(CODEC_TRAINING, "warm_up", (10, 2))


def mlp(inputs: int, classes: int) -> Callable[[int], nn.Module]:
    return lambda seed: rc.models.MLP(inputs, hidden=(64,), classes=classes, seed=seed)


def coarse(examples: int = 40) -> list[Task]:
    """Eight classes, two a task: each a pattern of 4 x 4 blocks, of which every image has two the other way round."""
    rng = np.random.default_rng(0)
    patterns, labels = rng.integers(0, 2, (8, 16)), np.arange(8).repeat(examples)
    blocks = patterns[labels]
    for row in blocks:
        row[rng.choice(16, 2, replace=False)] ^= 1
    images = blocks.reshape(-1, 4, 4).repeat(2, 1).repeat(2, 2).astype(float)
    return rc.streams.from_arrays(images, labels, tasks=4, test_share=0)


def fine(examples: int = 40) -> list[Task]:
    """Six classes that differ in squares of 2 x 2 pixels alone, each with the same mean, in two channels."""
    rng = np.random.default_rng(0)
    squares = np.array([[[1, -1], [1, -1]], [[1, 1], [-1, -1]], [[1, -1], [-1, 1]]])
    squares, labels = np.concatenate([squares, -squares]), np.arange(6).repeat(examples)
    detail = np.tile(squares[labels], (1, 4, 4))[:, None]
    images = 1 / 3 + 0.1 * detail + 0.02 * rng.standard_normal((len(labels), 2, 8, 8))
    return rc.streams.from_arrays(images, labels, tasks=3, test_share=0)


# The right answer.


def test_resized_pixels_win_where_the_classes_are_coarse_and_the_budget_is_small():
    advice = rc.best_memory(coarse(), 2, model=mlp(64, 8), learning_rate=0.2, steps=2, seeds=2)
    assert advice.chosen.candidate.kind == "resized pixels"
    retention = {each.candidate.kind: each.retention for each in advice.tried}
    assert advice.chosen.retention > retention["raw pixels"] + 10
    assert advice.tells
    assert f"Use {advice.chosen.candidate.name}" in str(advice)


def test_raw_pixels_win_where_the_classes_are_fine_and_the_budget_is_roomy():
    stream = fine()
    examples = sum(len(task.train) for task in stream)
    advice = rc.best_memory(stream, examples, model=mlp(128, 6), learning_rate=0.2, steps=3, seeds=2)
    assert advice.chosen.candidate.kind == "raw pixels"
    retention = {each.candidate.kind: each.retention for each in advice.tried}
    assert advice.chosen.retention > retention["resized pixels"] + 10


# What it rests on.


class Recorder(nn.Module):
    """Keeps what it is trained on and what it is asked."""

    def __init__(self, seen: dict[bool, set[bytes]], seed: int) -> None:
        super().__init__()
        self.seen, self.inner = seen, rc.models.MLP(36, hidden=(8,), classes=4, seed=seed)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen[self.training] |= {(255 * image).round().byte().numpy().tobytes() for image in x}
        return self.inner(x)


def test_what_is_held_out_is_never_trained_on_and_test_examples_are_never_looked_at():
    images = torch.randint(0, 256, (100, 6, 6), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    stream = rc.streams.from_arrays(images, torch.arange(100) % 4, tasks=2)
    models: list[dict[bool, set[bytes]]] = []

    def model(seed: int) -> nn.Module:
        models.append({True: set(), False: set()})
        return Recorder(models[-1], seed)

    advice = rc.best_memory(stream, 5, model=model, seeds=2)
    trained, tested = ({image.numpy().tobytes() for task in stream for image in part(task)} for part in PARTS)
    assert len(models) == 2 * (1 + len(advice.tried)) + len(advice.first)
    for seen in models:
        assert seen[False] <= trained
        # Of what it is trained on it may be asked whether it has outputs for the labels.
        assert len(seen[False] - seen[True]) == advice.held_out == 16
        assert not seen[True] & tested
    assert all(len(seen[True] & trained) == advice.examples == 64 for seen in models[-2 * (1 + len(advice.tried)) :])


PARTS = (lambda task: task.train.images, lambda task: task.test.images)


def test_a_fifth_of_each_class_is_held_out_and_the_rest_stays_in_order():
    y = torch.tensor([0] * 20 + [1] * 10 + [2] * 2)
    images = torch.arange(32, dtype=torch.uint8).view(-1, 1, 1, 1).expand(-1, 1, 2, 2)
    (whole,) = rc.streams.from_arrays(images, y, test_share=0)
    (part,), (other,) = divided([whole], seed=0), divided([whole], seed=1)
    left, held = part.train.images[:, 0, 0, 0].tolist(), part.test.images[:, 0, 0, 0].tolist()
    assert left == sorted(left)
    assert sorted(left + held) == [*range(32)]
    assert part.test.y.bincount(minlength=3).tolist() == [4, 2, 0]
    assert held != other.test.images[:, 0, 0, 0].tolist()


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32), (3, 20, 12), (2, 5, 9), (1, 1, 7)])
@pytest.mark.parametrize("storage", [0.3, 2, 50])
def test_every_candidate_keeps_the_budget(shape: tuple[int, int, int], storage: float):
    bits = int(storage * raw_bits(shape))
    x = torch.rand(20, *shape, generator=torch.Generator().manual_seed(0))
    found = candidates(x, bits, examples=1000)
    assert len({each.name for each in found}) == len(found)
    assert {"resized pixels"} <= {each.kind for each in found}
    assert ("raw pixels" in {each.kind for each in found}) == (storage >= 1)
    for each in found:
        assert each.items * each.bits_per_item <= bits
        if each.code_bits is not None:
            coded = each.build(classes=10, tasks=3).memory
            coded.write(x.repeat(20, 1, 1, 1), 0)
            bill = coded.footprint()
            assert bill.codes + bill.tables <= bits == each.code_bits == each.bill(classes=10, tasks=3).codes
            continue
        assert bits < (each.items + 1) * each.bits_per_item
        few = replace(each, items=min(each.items, 30))
        memory = few.build(classes=10, tasks=3).memory
        memory.write(x.repeat(2, 1, 1, 1), torch.arange(40) % 10, 1)
        held, billed = memory.footprint().bits, few.bill(classes=10, tasks=3).bits
        if len(memory) == few.items:
            assert {kind: held[kind] for kind in held if kind not in {"free", "total"}} == {
                kind: billed[kind] for kind in held if kind not in {"free", "total"}
            }


def test_items_are_no_smaller_than_it_takes_to_keep_all():
    x = torch.rand(20, 1, 16, 16, generator=torch.Generator().manual_seed(0))
    pixels = [each for each in candidates(x, 10 * raw_bits((1, 16, 16)), 100) if each.kind == "resized pixels"]
    assert [each.items >= 100 for each in pixels] == [False, False, True]
    (small,) = (each for each in pixels if each.items >= 100)
    assert small.items < 130


def test_a_kind_of_many_candidates_sends_on_its_best_two():
    advice = rc.best_memory(coarse(20), 1, model=mlp(64, 8), seeds=1)
    tried = [each.candidate.name for each in advice.tried if each.candidate.kind == "resized pixels"]
    best_first = sorted(advice.first, key=lambda each: -each.retention)
    assert {*tried} == {each.candidate.name for each in best_first[:2]}
    assert len(best_first) > 2
    x = torch.cat([task.train.x for task in coarse(20)])
    named = {each.candidate.name for each in (*advice.tried, *advice.first)}
    assert named == {each.name for each in candidates(x, raw_bits((1, 8, 8)), advice.examples)}
    assert {each.candidate.kind for each in advice.first} == {"resized pixels"}


def test_the_same_sample_gives_the_same_advice():
    ask = partial(rc.best_memory, coarse(10), 2, model=mlp(64, 8), seeds=1)
    first, again = ask().as_json(), ask().as_json()
    for rows in (first["rows"], again["rows"], first["first_trials"], again["first_trials"]):
        for row in rows:
            del row["seconds"]
    assert first == again


def test_the_default_model_knows_all_classes_and_any_channels():
    stream = fine(5)
    model = default_model(stream, seed=0)
    assert model(torch.rand(3, 2, 8, 8), torch.tensor([0, 1, 2])).shape == (3, 6)


# How it is given.

X = torch.rand(20, 1, 16, 16, generator=torch.Generator().manual_seed(0))
CANDIDATES = {each.kind: each for each in candidates(X, 5 * raw_bits((1, 16, 16)), 1000)}


def tried(kind: str, *retention: float, distortion: float = 0.1) -> Tried:
    trials = tuple(Trial(retention=each, distortion=distortion, held_out=200, seconds=1.0) for each in retention)
    return Tried(candidate=CANDIDATES[kind], bill=CANDIDATES[kind].bill(classes=10, tasks=2), trials=trials)


def advice_of(*each: Tried) -> rc.Advice:
    best_first, seeds = tuple(sorted(each, key=lambda one: -one.retention)), len(each[0].trials)
    return rc.Advice(
        storage=5, tried=best_first, first=(), without=(30,) * seeds, examples=1000, held_out=200, classes=10, tasks=2
    )


def test_a_clear_lead_wins_whatever_it_weighs():
    advice = advice_of(tried("autoencoder", 80, 81, 82), tried("resized pixels", 70, 71.5, 71.9))
    assert (advice.chosen.candidate.kind, advice.draw) == ("autoencoder", False)
    assert "9.9 points more than pixels" in advice.sentence
    error = math.sqrt((1 + statistics.variance([70, 71.5, 71.9])) / 3)
    assert f"the standard error of that is {error:.1f}." in advice.sentence
    assert f"{advice.chosen.storage_with_codec:,.1f}; labels" in advice.sentence


def test_a_draw_goes_to_the_lighter_codec():
    advice = advice_of(tried("autoencoder", 80, 79, 84), tried("resized pixels", 78, 81, 82), tried("JPEG", 81, 79, 81))
    assert advice.draw
    assert advice.chosen.candidate.kind == "resized pixels"
    assert "a draw with autoencoder" in advice.sentence
    assert "has the lightest codec" in advice.sentence


def test_a_draw_of_codecs_that_weigh_nothing_goes_to_the_truer_one():
    advice = advice_of(tried("resized pixels", 80), tried("raw pixels", 79, distortion=0.0))
    assert (advice.chosen.candidate.kind, advice.draw) == ("raw pixels", True)
    assert "a draw with pixels" in advice.sentence
    assert "loses least of the images" in advice.sentence


@pytest.mark.parametrize(("lead", "draw"), [(4.9, True), (5.1, False)])
def test_a_single_seed_is_as_sure_as_the_examples_that_were_held_out(lead: float, draw: bool):
    low = 50.0
    error = 100 * math.sqrt((low * (100 - low) + (low + lead) * (100 - low - lead)) / 100**2 / 200)
    assert (lead <= error) == draw
    assert advice_of(tried("autoencoder", low + lead), tried("raw pixels", low)).draw == draw


def test_a_sample_that_leaves_the_memory_unfilled_is_said():
    advice = advice_of(tried("raw pixels", 80))
    assert "ask again" not in advice.sentence
    assert "ask again" in replace(advice, examples=4).sentence


def test_a_sample_that_no_memory_helps_with_is_said():
    advice = advice_of(tried("raw pixels", 29, 31, 33), tried("JPEG", 20, 21, 22))
    assert (advice.tells, "But that is no more than without a memory, 30.0 %" in advice.sentence) == (False, True)
    advice = replace(advice, without=(29.6, 29.8, 30.0))  # 1.2 behind, at an error of 1.16
    assert (advice.tells, "without a memory" in advice.sentence) == (True, False)


def test_the_table_has_every_candidate_and_both_bills():
    advice = advice_of(tried("autoencoder", 80, 81, 82), tried("raw pixels", 70, 71.5, 71.9))
    head, learned, raw, none, *_ = str(advice).splitlines()
    assert head.split()[:5] == ["memory", "bits", "items", "storage", "with"]
    codec = advice.tried[0].bill.codec / raw_bits((1, 16, 16))
    assert learned.split()[4:6] == [f"{advice.tried[0].storage:.1f}", f"{advice.tried[0].storage + codec:.1f}"]
    assert raw.split()[2:] == ["2,048", "5", "5.0", "5.0", "0.100", "71.1", "±", "1.0"]
    assert none.split() == ["no", "memory", "-", "0", "0", "0", "-", "30.0", "±", "0.0"]


def test_the_memory_is_built_to_go_on_with():
    advice = advice_of(tried("autoencoder", 80))
    module = advice.build(classes=50, seed=3)
    assert (module.memory.capacity, module.memory.classes, module.memory.tasks) == (
        CANDIDATES["autoencoder"].items,
        50,
        2,
    )
    assert isinstance(module.memory.codec, rc.DiscreteAutoencoder)
    assert module.warm_up == CANDIDATES["autoencoder"].training["warm_up"]
    module.rehearse(X, 5)
    module.memory.write(X, 49, 1)


@pytest.mark.parametrize(
    ("stream", "storage", "message"),
    [
        ([], 5, "tasks of stream_sample, of which there are=0"),
        (coarse(5)[0], 5, "stream_sample is Task: accepted is a list of tasks"),
        ([1, 2], 5, "stream_sample is list: accepted is a list of tasks"),
        ([*coarse(5), *fine(5)], 5, r"shapes \[\(1, 8, 8\), \(2, 8, 8\)\]: accepted is one shape"),
        (coarse(2), 5, "none to be held out: accepted are 3 or more of a class in a task"),
        (coarse(5), 0, "storage=0: accepted is a positive number of raw examples"),
        (coarse(5), float("nan"), "storage=nan: accepted is"),
        (coarse(5), "5", "storage='5': accepted is"),
        (coarse(5), 1e-4, "storage=0.0001 examples are 0 bits, too little for one item"),
    ],
)
def test_mistakes_are_answered(stream: list[Task], storage: float, message: str):
    with pytest.raises((ValueError, TypeError), match=message):
        rc.best_memory(stream, storage)


def test_other_mistakes_are_answered():
    with pytest.raises(TypeError, match="model is MLP: accepted is a function"):
        rc.best_memory(coarse(5), 5, model=rc.models.MLP())
    with pytest.raises(ValueError, match="seeds=0: accepted is a whole number of at least 1"):
        rc.best_memory(coarse(5), 5, seeds=0)


def test_who_waits_longer_than_five_seconds_is_told_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    now = iter([0.0, 3.0, 6.0, 9.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(now))
    told = progress.Progress(7)
    told.begin("raw pixels", 40)
    for _ in range(3):
        told.observed(10)
    assert capsys.readouterr().err == "Trial 1 of 7, raw pixels: 50%, 6 s so far\n"


# The command.


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four classes of ten images, each class of a brightness of its own."""
    rng = np.random.default_rng(0)
    for label, name in enumerate(("ash", "elm", "fir", "oak")):
        place = tmp_path / "trees" / name
        place.mkdir(parents=True)
        for number in range(10):
            pixels = rng.integers(60 * label, 60 * label + 60, (20, 30, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(place / f"{number}.png")
    return tmp_path / "trees"


def test_advice_on_a_folder(folder: Path):
    asked = ["advise", "--stream", f"folder:{folder}", "--shape", "1x12x12", "--storage", "2", "--seeds", "1"]
    printed, _ = call(*asked, "--json", "--examples", "24")
    found = json.loads(printed)
    assert (found["storage_examples"], found["seeds"]) == (2, 1)
    assert (found["examples"], found["held_out"]) == (20, 4)
    assert found["chosen"] in {row["name"] for row in found["rows"]}
    for row in found["rows"]:
        assert 1.8 < row["storage_examples"] <= 2 <= row["storage_with_codec_examples"] + 0.2
        assert row["bits"]["codes"] == row["items"] * row["bits_per_item"]
    printed, _ = call(*asked, "--examples", "16")
    assert "retention, %" in printed.splitlines()[0]
    assert "12 examples seen once, 4 held out; one seed." in printed
    assert "Use " in printed


def test_advice_on_a_stream_of_the_lab():
    printed, _ = call(
        "advise",
        "--stream",
        "mnist_rotations",
        "--tasks",
        "2",
        "--examples",
        "60",
        "--storage",
        "2",
        "--seeds",
        "1",
        "--json",
    )
    found = json.loads(printed)
    assert found["examples"] + found["held_out"] == 60


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--stream", "nowhere", "--storage", "5"), "--stream nowhere: accepted are folder:PATH"),
        (("--stream", "folder:nowhere", "--storage", "5"), "nowhere is not a folder"),
        (("--stream", "mnist_rotations", "--shape", "1x8x8", "--storage", "5"), "without --shape mnist_rotations"),
        (("--stream", "folder:trees", "--storage", "-1"), "storage=-1.0: accepted is a positive number"),
        (("--stream", "folder:trees", "--tasks", "5", "--storage", "1"), "tasks=5: accepted are 1 to 4"),
    ],
)
def test_mistakes_on_the_command_line(
    options: tuple[str, ...], message: str, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(folder.parent)
    _, said = call("advise", *options, code=2)
    assert message in said
