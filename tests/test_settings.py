"""Settings, arguments and weights come back from a file as they were, in whatever numbers they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import recollect as rc
from battery import CODECS, SHAPE, batches, mlp, parameters, replay


def test_every_kind_of_setting_comes_back_as_it_was_changed(path: Path):
    learner = replay(CODECS["raw"](), "reservoir")
    learner.batch_size = np.int64(7)  # pyright: ignore[reportAttributeAccessIssue]
    learner.learning_rate = np.float32(0.05)  # pyright: ignore[reportAttributeAccessIssue]
    learner.module.warm_up = [20, 2]  # pyright: ignore[reportAttributeAccessIssue]
    learner.save(path)
    loaded = rc.Replay.load(path)
    assert (loaded.batch_size, loaded.module.warm_up) == (7, (20, 2))
    assert loaded.learning_rate == pytest.approx(0.05)
    memory = rc.Memory(rc.RawPixels(SHAPE), capacity=60, admission="chosen", classes=10, tasks=2)
    chosen = rc.ICaRL(mlp(), rc.RecollectionModule(memory))
    chosen.exemplars = 25
    chosen.save(path.with_name("chosen.rec"))
    assert rc.ICaRL.load(path.with_name("chosen.rec")).exemplars == 25


def test_numbers_of_numpy_as_arguments_go_into_the_file(path: Path):
    two = np.int64(2)
    codecs = [
        rc.DiscreteAutoencoder((1, 8, 8), np.int64(20), two),  # pyright: ignore[reportArgumentType]
        rc.ContinuousAutoencoder((1, 8, 8), latents=np.int64(8)),  # pyright: ignore[reportArgumentType]
        rc.ResizedPixels((1, 8, 8), size=(4, 4), bits=two),  # pyright: ignore[reportArgumentType]
        rc.Cosines((1, 8, 8), size=(4, 4), step=0.5, levels=np.int64(31)),  # pyright: ignore[reportArgumentType]
    ]
    for number, codec in enumerate(codecs):
        memory = rc.Memory(codec, capacity=4)
        memory.write(torch.rand(4, 1, 8, 8), y=1)
        memory.commit(here := path.with_name(f"{number}.rec"))
        before, again = memory.recollections(), rc.Memory.open(here).recollections()
        assert before is not None
        assert again is not None
        assert torch.equal(before.x, again.x)
    learner = rc.Online(rc.models.MLP(), learning_rate=float(np.float32(0.1)))
    assert learner.learning_rate == rc.Online(rc.models.MLP(), learning_rate=np.float32(0.1)).learning_rate  # pyright: ignore


def test_arrays_sets_and_dictionaries_as_arguments_go_into_the_file(path: Path):
    tasks: list[Any] = [np.array([[0, 1], [2, 3]]), [torch.tensor([0, 1]), {2, 3}]]
    for number, given in enumerate(tasks):
        model = rc.models.ResNet18(given, classes=4)
        module = rc.RecollectionModule(rc.Memory(rc.RawPixels((3, 8, 8)), capacity=4))
        augment: Any = {"shift": np.int64(1)}
        rc.Replay(model, module, augment=augment).save(here := path.with_name(f"{number}.rec"))
        again = rc.Learner.load(here)
        assert isinstance(again.model, rc.models.ResNet18)
        assert torch.equal(again.model.others, model.others)


def test_settings_that_were_changed_come_back_changed(path: Path):
    codec = rc.DiscreteAutoencoder(SHAPE, variables=4, categories=2)
    learner = replay(codec, "reservoir")
    learner.observe(*batches()[0])
    codec.tau, codec.stochastic = 0.5, False
    learner.batch_size, learner.steps = 7, 3
    learner.module.most, learner.module.warm_up = 3, (20, 2)
    learner.save(path)
    loaded = rc.Replay.load(path)
    found = loaded.memory.codec
    assert isinstance(found, rc.DiscreteAutoencoder)
    assert (found.tau, found.stochastic, loaded.batch_size, loaded.steps) == (0.5, False, 7, 3)
    assert (loaded.module.most, loaded.module.warm_up) == (3, (20, 2))


@pytest.mark.parametrize(
    ("progress", "message"),
    [
        ("abc", "progress is str: accepted is a dictionary"),
        ({1: 2}, "a dictionary has the key 1: accepted are names"),
        ({"a": object()}, "Object of type object is not JSON serializable.*accepted are plain values, under names"),
    ],
)
def test_progress_is_what_it_will_be_when_it_is_loaded(progress: Any, message: str, path: Path):
    learner = rc.Online(rc.models.MLP())
    with pytest.raises(TypeError, match=message):
        learner.save(path, progress)
    assert not path.exists()
    learner.save(path, {"batch": np.int64(3), "of": (1, 2)})
    assert learner.progress == rc.Online.load(path).progress == {"batch": 3, "of": [1, 2]}


@pytest.fixture
def of_64_bits():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.usefixtures("of_64_bits")
@pytest.mark.parametrize("codec", CODECS)
def test_under_another_default_the_same_is_kept_and_opened(codec: str, path: Path):
    torch.set_default_dtype(torch.float32)
    learner = replay(CODECS[codec](), "reservoir")
    for batch in batches():
        learner.observe(*batch)
    learner.save(path)
    torch.set_default_dtype(torch.float64)
    loaded = rc.Replay.load(path)
    assert torch.equal(parameters(loaded), parameters(learner))
    drawn, expected = loaded.memory.sample(5), learner.memory.sample(5)
    assert drawn.x.dtype == torch.float32
    torch.testing.assert_close(drawn.x, expected.x, atol=1e-6, rtol=0)  # rounded otherwise at most
    # And what is made under it takes and gives images as all do.
    memory = rc.Memory(CODECS[codec](), capacity=5)
    module = rc.RecollectionModule(memory)
    for x, y, _ in batches(3):
        module.rehearse(x.double(), 2)
        memory.write(x.double(), y)
    assert memory.sample(2).x.dtype == torch.float32
    memory.commit(path.with_name("other.rec"))
    torch.set_default_dtype(torch.float32)
    opened, held = rc.Memory.open(path.with_name("other.rec")).recollections(), memory.recollections()
    assert opened is not None
    assert held is not None
    assert torch.equal(opened.x, held.x)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_codecs_and_models_in_other_numbers_come_back_in_them(dtype: torch.dtype, path: Path):
    codec = rc.DiscreteAutoencoder(SHAPE, 8, 3).to(dtype)
    learner = replay(codec, "reservoir", mlp().to(dtype))
    for batch in batches(3):
        learner.observe(*batch)
    learner.save(path)
    loaded = rc.Replay.load(path)
    again = loaded.memory.codec
    assert isinstance(again, rc.DiscreteAutoencoder)
    assert {weight.dtype for part in (loaded.model, again) for weight in part.parameters()} == {dtype}
    for batch in batches(2):
        learner.observe(*batch)
        loaded.observe(*batch)
    assert torch.equal(parameters(loaded), parameters(learner))
