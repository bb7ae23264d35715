"""Targets other than classes: real numbers in given bits, and none at all; what is kept of them, and who takes them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from typer.testing import CliRunner

import recollect as rc
from recollect.cli import app
from recollect.memory.file import MemoryFileError
from recollect.rebuild import rebuildable

SHAPE = (1, 6, 6)
SHAPES = st.sampled_from([(), (1,), (2,), (3, 2)])
Sizes = tuple[int, ...]


def memory_of(targets: rc.RealTargets | rc.NoTargets, capacity: int = 40) -> rc.Memory:
    return rc.Memory(rc.RawPixels(SHAPE), capacity, targets=targets, tasks=3)


def kept(targets: rc.RealTargets, y: torch.Tensor) -> torch.Tensor:
    """What a memory makes of targets, in the order in which they were written."""
    memory = memory_of(targets, capacity=len(y))
    memory.write(torch.rand(len(y), *SHAPE), y)
    held = memory.recollections()
    assert held is not None
    assert held.y.dtype == torch.float32
    assert memory.footprint().labels == len(y) * targets.bits
    return held.y


def numbers(shape: Sizes, seed: int, low: float, high: float) -> torch.Tensor:
    return torch.rand(7, *shape, generator=torch.Generator().manual_seed(seed)) * (high - low) + low


@given(SHAPES, st.integers(0, 99))
def test_float32_is_exact_and_float16_is_that_of_numpy(shape: Sizes, seed: int):
    y = numbers(shape, seed, -1e3, 1e3)
    assert torch.equal(kept(rc.RealTargets(shape), y), y)
    assert torch.equal(kept(rc.RealTargets(shape, bits=16), y), y.half().float())


@given(SHAPES, st.integers(1, 32), st.sampled_from([(0.0, 1.0), (-3.0, 5.0), (1e-3, 1e3)]), st.integers(0, 99))
def test_levels_are_evenly_spaced_and_the_nearest_is_kept(
    shape: Sizes, bits: int, between: tuple[float, float], seed: int
):
    low, high = between
    y = numbers(shape, seed, low, high).clamp(low, high)
    y.view(-1)[:2] = torch.tensor(between)[: y.numel()]
    found = kept(rc.RealTargets(shape, bits=bits, between=between), y).double().numpy()
    step = (high - low) / (2**bits - 1)
    rounding = np.spacing(np.float32(max(abs(low), abs(high))))
    levels = (found - low) / step
    assert np.abs(found - y.double().numpy()).max() <= step / 2 + rounding
    assert np.abs(levels - levels.round()).max() * step <= rounding
    assert float(found.flat[0]) == np.float32(low)


def test_the_file_is_the_bits_that_are_billed_and_older_readers_are_told(tmp_path: Path):
    for targets, bits in ((rc.RealTargets((3,), bits=5, between=(0, 1)), 15), (rc.NoTargets(), 0)):
        path = tmp_path / f"{bits}.rec"
        memory = memory_of(targets)
        memory.write(torch.rand(100, *SHAPE), torch.rand(100, 3) if bits else None, torch.arange(100) % 3)
        memory.commit(path)
        assert memory._index.labels.nbytes == 40 * bits // 8
        with closing(sqlite3.connect(path)) as connection:
            (length,) = connection.execute("SELECT sum(length(data)) FROM segment").fetchone()
            assert connection.execute("PRAGMA user_version").fetchone() == (2,)
        assert 8 * length == memory.footprint().incremental == 40 * (36 * 8 + bits + 2 + 64)
        opened = rc.Memory.open(path)
        one, other = memory.sample(30), opened.sample(30)
        assert torch.equal(one.y, other.y)
        assert torch.equal(one.ids, other.ids)
        assert opened.classes == 0
    with_classes = rc.Memory(rc.RawPixels(SHAPE), 40, classes=10)
    with_classes.commit(tmp_path / "classes.rec")
    with closing(sqlite3.connect(tmp_path / "classes.rec")) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)


def test_an_example_without_a_target_and_one_target_for_all():
    memory = memory_of(rc.NoTargets())
    memory.write(torch.rand(5, *SHAPE), task=2)
    batch = memory.sample(4, task=2)
    assert batch.y.shape == (4, 0)
    assert [part.y.shape for part in batch.split(2)] == [(2, 0), (2, 0)]
    memory = memory_of(rc.RealTargets((2,)))
    memory.write(torch.rand(5, *SHAPE), [1.0, -1.0])
    assert memory.sample(3).y.tolist() == [[1, -1]] * 3


REAL = rc.RealTargets((2,), bits=8, between=(0, 1))


@pytest.mark.parametrize(
    ("targets", "y", "message"),
    [
        (REAL, torch.rand(3), r"y has shape \(3,\): accepted are \(3, 2\), one target an example, or \(2,\)"),
        (REAL, torch.full((3, 2), 1.5), "y has the value 1.5: accepted are 0 to 1"),
        (REAL, torch.full((3, 2), torch.nan), "y has the value nan: accepted are 0 to 1"),
        (REAL, None, "y has type object: accepted are real numbers"),
        (rc.RealTargets(bits=16), torch.full((3,), 7e4), "y has the value 70000.0: accepted are -65504 to 65504"),
        (rc.RealTargets(), torch.full((3,), torch.inf), "y has the value inf"),
        (rc.NoTargets(), torch.rand(3), "y is a Tensor: accepted is None, since the memory keeps no targets"),
        (None, None, "y is missing: accepted are integers"),
        (None, torch.rand(3), "y has type float32: accepted are integers"),
    ],
)
def test_targets_that_are_not_taken_change_nothing(
    targets: rc.RealTargets | rc.NoTargets | None, y: torch.Tensor | None, message: str
):
    memory = rc.Memory(rc.RawPixels(SHAPE), 40, targets=targets)
    with pytest.raises((TypeError, ValueError), match=message):
        memory.write(torch.rand(3, *SHAPE), y)
    assert memory.seen == len(memory) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"bits": 8}, "bits=8: accepted are 32 and 16, and 1 to 32 if ``between`` is given"),
        ({"bits": 33, "between": (0, 1)}, "bits=33: accepted are 1 to 32"),
        ({"bits": 0, "between": (0, 1)}, "bits=0"),
        ({"bits": 8, "between": (1, 1)}, r"between=\(1, 1\): accepted are two numbers, the lower one first"),
        ({"bits": 8, "between": (0, float("inf"))}, "between"),
        ({"shape": 2}, r"shape=2: accepted are up to 8 whole numbers, such as \(\) and \(2,\)"),
        ({"shape": (2, 0)}, "=0: accepted is a whole number of at least 1"),
    ],
)
def test_kinds_of_targets_that_do_not_exist(arguments: dict[str, object], message: str):
    with pytest.raises(ValueError, match=message):
        rc.RealTargets(**arguments)  # pyright: ignore[reportArgumentType]


def test_targets_are_classes_or_others():
    with pytest.raises(ValueError, match="classes=10 and NoTargets are given: accepted is one of them"):
        rc.Memory(rc.RawPixels(SHAPE), 5, classes=10, targets=rc.NoTargets())


def test_what_needs_classes_says_so():
    for rule in ("balanced", "chosen"):
        with pytest.raises(ValueError, match=f"admission='{rule}' counts classes, which RealTargets are not"):
            rc.Memory(rc.RawPixels(SHAPE), 40, admission=rule, targets=REAL)
    with pytest.raises(TypeError, match="targets is str: accepted are RealTargets and NoTargets"):
        rc.Memory(rc.RawPixels(SHAPE), 40, targets="none")  # pyright: ignore[reportArgumentType]
    memory = memory_of(REAL)
    with pytest.raises(ValueError, match="label=3: accepted are ids and task, since the memory keeps no classes"):
        memory.forget(label=3)
    assert memory.audit == ()
    module, model = rc.RecollectionModule(memory), rc.models.MLP(inputs=36)
    with pytest.raises(ValueError, match="GEM learns classes, and the memory keeps RealTargets"):
        rc.GEM(model, module)
    for make in (lambda: rc.Replay(model, module), lambda: rc.Offline(model, memory)):
        with pytest.raises(
            ValueError, match="a loss of cross_entropy learns classes, and the memory keeps RealTargets"
        ):
            make()
    with pytest.raises(ValueError, match="admission='reservoir': accepted is 'chosen'"):
        rc.ICaRL(model, module)
    x, y = torch.rand(3, *SHAPE), torch.rand(3)
    for learner in (rc.EWC(model), rc.LwF(model), rc.Online(model)):
        with pytest.raises(TypeError, match="y has type float32: accepted are integers"):
            learner.observe(x, y)
    memory.write(x, torch.rand(3, 2))
    with pytest.raises(ValueError, match="there is no teacher, and recollections have no label"):
        rc.distillation.distil(None, model, rc.distillation.BufferSampling(memory), episodes=1)
    rc.distillation.distil(rc.models.MLP(inputs=36), model, rc.distillation.BufferSampling(memory), episodes=2)


def test_the_commands_take_any_targets(tmp_path: Path):
    for name, targets, y in (("real", REAL, torch.rand(30, 2)), ("none", rc.NoTargets(), None)):
        path = str(tmp_path / f"{name}.rec")
        memory = memory_of(targets)
        memory.write(torch.rand(30, *SHAPE), y)
        memory.commit(path)

        def run(*arguments: str, code: int = 0) -> str:
            result = CliRunner().invoke(app, [*arguments])
            assert result.exit_code == code, result.output
            return " ".join(result.output.replace("│", " ").split()) if code else result.output

        said = run("info", path)
        assert f"targets   {type(targets).__name__}(" in said
        assert "items by class" not in said
        about = json.loads(run("info", path, "--json"))["memory"]
        assert (about["classes"], about["items_by_class"]) == (0, {})
        assert about["targets"]["class"] == type(targets).__name__
        assert json.loads(run("verify", path, "--json"))["ok"]
        run("show", path, "--items", "5", "--out", str(tmp_path / f"{name}.png"))
        assert (tmp_path / f"{name}.png").stat().st_size > 0
        assert "keeps no classes" in run("show", path, "--label", "1", "--out", str(tmp_path / "no.png"), code=2)
        assert "keeps no classes" in run("forget", path, "--label", "1", "--yes", code=2)
        run("forget", path, "--task", "0", "--yes")
        assert len(rc.Memory.open(path)) == 0


class Mean(nn.Module):
    """Predicts the same two numbers for all images: what they should be is known."""

    def __init__(self, size: int = 2) -> None:
        super().__init__()
        self.mean = nn.Parameter(torch.zeros(size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.mean.expand(len(x), -1)


def test_replay_descends_on_the_mean_of_new_and_recollected_targets():
    """The gradient of the mean squared error of a constant, worked out by hand."""
    memory = memory_of(rc.RealTargets((2,)))
    learner = rc.Replay(Mean(), rc.RecollectionModule(memory), learning_rate=0.5, batch_size=4, loss="mse")
    first, second = torch.tensor([1.0, 2.0]), torch.tensor([-3.0, 0.0])
    learner.observe(torch.rand(4, *SHAPE), first)
    mean = 0.5 * first  # of two numbers each: α · 2 / 2 (y - 0)
    torch.testing.assert_close(learner.predict(torch.rand(1, *SHAPE))[0], mean)
    learner.observe(torch.rand(4, *SHAPE), second)
    mean = mean + 0.5 * ((first + second) / 2 - mean)
    torch.testing.assert_close(learner.predict(torch.rand(1, *SHAPE))[0], mean)


def test_online_and_offline_take_a_loss():
    x, y = torch.rand(20, *SHAPE), torch.tensor([[2.0, -1.0]]).expand(20, 2)
    online = rc.Online(Mean(), learning_rate=0.5, loss="mse")
    offline = rc.Offline(Mean(), memory_of(rc.RealTargets((2,))), learning_rate=0.5, epochs=20, loss="mse")
    for learner in (online, offline):
        for _ in range(20):
            learner.observe(x, y)
        learner.finish()
        torch.testing.assert_close(learner.predict(x), y, atol=1e-3, rtol=0)
    for wrong, message in ((torch.rand(3, 2), "accepted is a target for each of 20"), (y * torch.inf, "no finite")):
        with pytest.raises(ValueError, match=message):
            online.observe(x, wrong)
    with pytest.raises(ValueError, match=r"outputs have shape \(20, 2\), targets \(20,\): accepted are equal"):
        online.observe(x, torch.zeros(20))
    with pytest.raises(ValueError, match=r"loss='mze': accepted are 'cross_entropy', .* and a function"):
        rc.Online(Mean(), loss="mze")  # pyright: ignore[reportArgumentType]


def spread(outputs: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """A loss that asks for no targets."""
    assert y.shape == (len(outputs), 0)
    return outputs.square().mean()


@rebuildable
class Spread(rc.Replay):
    def __init__(self, model: nn.Module, module: rc.RecollectionModule) -> None:
        super().__init__(model, module, batch_size=4, learning_rate=0.1, loss=spread)


LEARNERS: dict[str, tuple[Callable[[rc.Memory], rc.Replay], rc.RealTargets | rc.NoTargets, Sizes]] = {
    "named": (lambda m: rc.Replay(mlp(), rc.RecollectionModule(m), loss="mae", batch_size=4), REAL, (5, 2)),
    "many labels": (
        lambda m: rc.Replay(mlp(), rc.RecollectionModule(m), loss="binary_cross_entropy", batch_size=4),
        rc.RealTargets((2,), bits=1, between=(0, 1)),
        (5, 2),
    ),
    "own class": (lambda m: Spread(mlp(), rc.RecollectionModule(m)), rc.NoTargets(), ()),
}


def mlp() -> nn.Module:
    return rc.models.MLP(inputs=36, hidden=(8,), classes=2)


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_that_was_stopped_goes_on_bit_for_bit(name: str, tmp_path: Path):
    make, targets, shape = LEARNERS[name]

    def batches(first: int, last: int) -> list[tuple[torch.Tensor, torch.Tensor | None]]:
        every = [torch.Generator().manual_seed(number) for number in range(first, last)]
        return [
            (torch.rand(5, *SHAPE, generator=g), torch.randint(0, 2, shape, generator=g) if shape else None)
            for g in every
        ]

    learner = make(memory_of(targets, capacity=10))
    for x, y in batches(0, 6):
        learner.observe(x, y)
    learner.save(tmp_path / "learner.rec")
    resumed = type(learner).load(tmp_path / "learner.rec")
    for each in (learner, resumed):
        for x, y in batches(6, 12):
            each.observe(x, y)
    x = torch.rand(3, *SHAPE)
    assert torch.equal(learner.predict(x), resumed.predict(x))
    assert learner.predict(x).shape == (3, 2)


@pytest.mark.parametrize("loss", ["mse", "mae", "binary_cross_entropy"])
def test_a_memory_of_classes_is_not_taken_for_one_of_numbers(loss: Literal["mse", "mae", "binary_cross_entropy"]):
    memory = rc.Memory(rc.RawPixels((1, 4, 4)), capacity=5)
    message = rf"loss='{loss}' and a memory that keeps classes: accepted is one with targets=RealTargets\(\)"
    with pytest.raises(ValueError, match=message):
        rc.Replay(rc.models.MLP(inputs=16), rc.RecollectionModule(memory), loss=loss)
    with pytest.raises(ValueError, match=message):
        rc.Offline(rc.models.MLP(inputs=16), memory, loss=loss)


def test_a_function_may_be_a_loss_of_classes():
    def smooth(outputs: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(outputs, y, label_smoothing=0.1)

    memory = rc.Memory(rc.RawPixels(SHAPE), 40, classes=2)
    learner = rc.Replay(mlp(), rc.RecollectionModule(memory), loss=smooth)
    learner.observe(torch.rand(5, *SHAPE), torch.arange(5) % 2)
    assert learner.predict(torch.rand(3, *SHAPE)).shape == (3,)


def test_a_function_is_not_saved(tmp_path: Path):
    module = rc.RecollectionModule(memory_of(rc.NoTargets()))
    learner = rc.Replay(mlp(), module, loss=spread)
    with pytest.raises(MemoryFileError, match="loss of a Replay is a function, which no file holds"):
        learner.save(tmp_path / "learner.rec")
    assert not (tmp_path / "learner.rec").exists()
