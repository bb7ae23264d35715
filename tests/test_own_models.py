"""Models of one's own: whatever they are made of and whatever is done to them on the way, they are learned by."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

import recollect as rc
from battery import SHAPE, batches, mlp, parameters
from recollect.learners.gradients import matrices_of_groups
from recollect.memory.rules import Rule
from recollect.seeding import initial_weights


def module(admission: Rule = "ring") -> rc.RecollectionModule:
    return rc.RecollectionModule(rc.Memory(rc.RawPixels(SHAPE), capacity=12, admission=admission, classes=10, tasks=4))


MAKERS: dict[str, Callable[[nn.Module], rc.Learner]] = {
    "online": lambda model: rc.Online(model, learning_rate=0.1),
    "averaged": lambda model: rc.Online(model, learning_rate=0.1, averaging=0.9),
    "replay": lambda model: rc.Replay(model, module(), learning_rate=0.1, batch_size=5),
    "gem": lambda model: rc.GEM(model, module(), memory_batch=2),
    "together": lambda model: rc.GEM(model, module(), memory_batch=2, together=True),
    "ewc": lambda model: rc.EWC(model, learning_rate=0.1),
    "lwf": lambda model: rc.LwF(model, learning_rate=0.1),
    "icarl": lambda model: rc.ICaRL(model, module("chosen"), learning_rate=0.1, exemplars=10, memory_batch=2),
}


def normalised() -> nn.Sequential:
    with initial_weights(0, "normalised"):
        return nn.Sequential(nn.Flatten(), nn.Linear(144, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 10))


@pytest.mark.parametrize("name", MAKERS)
def test_layers_that_stay_in_evaluation_stay_so_whether_or_not_anything_is_predicted(name: str):
    models = [normalised() for _ in range(2)]
    learners = [MAKERS[name](model) for model in models]
    for model in models:
        model[2].eval()
    for x, y, task in batches():
        for learner in learners:
            learner.observe(x, y, task)
        learners[0].predict(x, task)
    assert torch.equal(parameters(learners[0]), parameters(learners[1]))
    for model in models:
        assert [layer.training for layer in model] == [True, True, False, True, True]
        assert torch.equal(dict(model.named_buffers())["2.running_mean"], torch.zeros(16))


X, Y = torch.rand(3, *SHAPE, generator=torch.Generator().manual_seed(0)), torch.tensor([4, 0, 2])


@pytest.mark.parametrize("name", sorted(MAKERS.keys() - {"ewc"}))
def test_a_head_that_grows_is_trained_and_predicts(name: str):
    model = normalised()
    learner = MAKERS[name](model)
    for _ in range(2):
        learner.observe(X, Y, 0)
    with initial_weights(1, "head"):
        model[4] = head = nn.Linear(16, 20)
    before = head.weight.detach().clone()
    assert learner.predict(X, 0).shape == (3,)
    for _ in range(2):
        learner.observe(X, Y + 5, 1)
    assert not torch.equal(head.weight, before)
    assert learner.predict(X, 1).shape == (3,)


def test_ewc_says_that_a_model_grew():
    model = normalised()
    learner = rc.EWC(model)
    learner.observe(X, Y, 0)
    learner.finish()
    model[4] = nn.Linear(16, 20)
    with pytest.raises(ValueError, match=r"shape \(20, 16\) had \(10, 16\) when an earlier task ended: accepted"):
        learner.observe(X, Y, 1)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("name", MAKERS)
def test_models_in_other_numbers_are_given_such(name: str, dtype: torch.dtype):
    learner = MAKERS[name](normalised().to(dtype))
    before = parameters(learner)
    for x, y, task in batches():
        learner.observe(x.double(), y, task)
    learner.finish()
    assert learner.predict(X, 0).shape == (3,)
    assert parameters(learner).dtype == dtype
    assert not torch.equal(parameters(learner), before)


class Untraceable(nn.Module):
    """Asks for a number, which no trace of many examples at once can give."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = mlp()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert float(x.max()) <= 1
        return self.inner(x)


def test_gradients_of_a_model_that_cannot_be_traced_are_the_same():
    model, x, y = Untraceable(), torch.rand(7, *SHAPE), torch.arange(7)
    found = matrices_of_groups(model, [x], y, [2, 4, 1])
    expected = matrices_of_groups(model.inner, [x], y, [2, 4, 1])
    for own, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(own, theirs)
    for learner in (MAKERS["gem"](model), MAKERS["ewc"](Untraceable())):
        for x, y, task in batches():
            learner.observe(x, y, task)
        learner.finish()


def test_an_error_of_the_model_itself_is_not_hidden():
    class Wrong(nn.Linear):
        def forward(self, input: torch.Tensor) -> torch.Tensor:
            return super().forward(input.flatten(1)[:, :-1])

    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        matrices_of_groups(Wrong(144, 10), [torch.rand(3, *SHAPE)], torch.arange(3), [1, 2])


def test_together_a_layer_that_is_not_used_has_no_gradient():
    class Unused(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.spare, self.inner = nn.Linear(3, 3), mlp()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner(x)

    with initial_weights(0, "unused"):
        model = Unused()
    learners = [MAKERS["together"](each) for each in (model, copy.deepcopy(model.inner))]
    for x, y, task in batches():
        for learner in learners:
            learner.observe(x, y, task)
    spare = model.spare.weight.numel() + model.spare.bias.numel()
    torch.testing.assert_close(parameters(learners[0])[spare:], parameters(learners[1]))


def test_the_task_is_the_second_argument():
    class Third(nn.Module):
        def forward(self, x: torch.Tensor, scale: float | None = None, task: torch.Tensor | None = None) -> None: ...

    class Keyword(nn.Module):
        def forward(self, x: torch.Tensor, *, task: torch.Tensor) -> None: ...

    for model in (Third(), Keyword()):
        with pytest.raises(
            TypeError, match=r"forward of (Third|Keyword) is x.*task.*: accepted are \(x\) and \(x, task"
        ):
            rc.Online(model)


def test_offline_learning_refuses_a_label_when_it_comes():
    learner = rc.Offline(mlp(), rc.Memory(rc.RawPixels(SHAPE), capacity=12))
    with pytest.raises(ValueError, match="y has the value 14: accepted are 0 to 9"):
        learner.observe(torch.rand(3, *SHAPE), torch.tensor([2, 14, 3]))
    assert learner.memory.seen == 0


def test_a_rate_that_fell_to_nothing_is_saved_and_what_cannot_be_loaded_is_not(tmp_path: Path):
    learner = rc.Replay(mlp(), module(), learning_rate=0.1)
    learner.learning_rate = 0.0
    learner.save(tmp_path / "learner.rec", {"epoch": 3})
    assert rc.Replay.load(tmp_path / "learner.rec").learning_rate == 0
    learner.save(tmp_path / "learner.rec")
    assert rc.Replay.load(tmp_path / "learner.rec").progress == {"epoch": 3}
    for name, value in {"batch_size": 0, "steps": 0, "averaging": 1.0, "learning_rate": -1.0}.items():
        before = getattr(learner, name)
        setattr(learner, name, value)
        with pytest.raises(ValueError, match=f"{name}={value}: accepted"):
            learner.save(tmp_path / "learner.rec")
        setattr(learner, name, before)
    assert rc.Replay.load(tmp_path / "learner.rec").progress == {"epoch": 3}


@pytest.mark.parametrize("codec", [rc.DiscreteAutoencoder(SHAPE, 8, 3), rc.ContinuousAutoencoder(SHAPE, 8)])
def test_under_autocast_codecs_learn_and_write_the_same(codec: rc.DiscreteAutoencoder):
    memories = [rc.Memory(copy.deepcopy(codec), capacity=12) for _ in range(2)]
    modules = [rc.RecollectionModule(memory) for memory in memories]
    for x, y, _ in batches():
        for enabled, memory, module in zip((False, True), memories, modules, strict=True):
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
                module.rehearse(x, 4)
                memory.write(x, y)
    first, second = (memory.recollections() for memory in memories)
    assert first is not None
    assert second is not None
    assert torch.equal(first.x, second.x)


class Broken(rc.ResizedPixels):
    gives: Callable[[torch.Tensor], object]

    def decode(self, codes: torch.Tensor) -> torch.Tensor:
        return self.gives(super().decode(codes))  # pyright: ignore[reportReturnType]


@pytest.mark.parametrize(
    ("gives", "said"),
    [
        (lambda x: x.numpy(), "ndarray"),
        (lambda x: x[:1], r"torch.float32 \(1, 1, 12, 12\)"),
        (lambda x: x.long(), r"torch.int64 \(2, 1, 12, 12\)"),
    ],
)
def test_what_a_codec_of_ones_own_decodes_is_looked_at(gives: Callable[[torch.Tensor], object], said: str):
    codec = Broken(SHAPE, size=(4, 4), bits=1)
    codec.gives = gives
    memory = rc.Memory(codec, capacity=5)
    memory.write(torch.rand(3, *SHAPE), 0)
    with pytest.raises(TypeError, match=rf"the codec decoded to {said}: accepted are floating point images \(2, 1, 12"):
        memory.sample(2)
    with pytest.raises(TypeError, match="codec is the class Broken: accepted is a Codec"):
        rc.Memory(Broken, capacity=5)  # pyright: ignore[reportArgumentType]


def test_what_is_no_sampler_or_no_student_is_named():
    memory = rc.Memory(rc.RawPixels(SHAPE), capacity=5)
    memory.write(torch.rand(3, *SHAPE), 0)
    with pytest.raises(TypeError, match=r"sampler is a Memory: accepted is .* BufferSampling\(memory\)"):
        rc.distillation.distil(mlp(), mlp(), memory, episodes=1)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="codec is Memory: accepted is a codec that can decode any code"):
        rc.distillation.CodeSampling(memory)  # pyright: ignore[reportArgumentType]
    student = rc.models.MLP(inputs=144, classes=5)
    with pytest.raises(ValueError, match=r"the teacher has outputs of shape \(1, 10\), the student \(1, 5\)"):
        rc.distillation.distil(mlp(), student, rc.distillation.BufferSampling(memory), episodes=1)


def test_ids_may_be_a_set_and_those_to_come_are_refused():
    memory = rc.Memory(rc.RawPixels(SHAPE), capacity=5)
    memory.write(torch.rand(4, *SHAPE), 0)
    with pytest.raises(ValueError, match="ids has the value 9"):
        memory.forget(ids={1, 9})
    assert memory.forget(ids={1, 2}) == 2
    assert memory.forget(ids={1}) == memory.forget(ids=set()) == 0
