"""Samplers, the divergence and distillation, against formulas and literal loops; a student that learns."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from scipy.stats import chisquare
from torch import nn

import recollect as rc
from recollect.data import mnist
from recollect.distillation import (
    ActiveSampling,
    BufferSampling,
    CodeSampling,
    DecodedSampling,
    DiverseSampling,
    Recollections,
    Sampler,
    distil,
    k_dpp,
)
from recollect.distillation.divergence import Divergence

SHAPE = (1, 6, 6)


def model(seed: int) -> rc.models.MLP:
    return rc.models.MLP(inputs=36, hidden=(8,), classes=5, seed=seed)


def memory_of(n: int = 40, seed: int = 0) -> rc.Memory:
    generator = torch.Generator().manual_seed(seed)
    memory = rc.Memory(rc.RawPixels(SHAPE), capacity=n, classes=5, tasks=3)
    memory.write(torch.rand(n, *SHAPE, generator=generator), torch.arange(n) % 5, torch.arange(n) % 3)
    return memory


def parameters(model: nn.Module) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


class Masked(nn.Module):
    """A model of x and t whose outputs are masked to the classes of the task."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.inner = model(seed)

    def forward(self, x: torch.Tensor, task: torch.Tensor) -> torch.Tensor:
        classes = torch.arange(5) % 3
        return self.inner(x).masked_fill(classes != task[:, None], -torch.inf)


def test_buffer_sampling_is_sampling_the_memory():
    memory = memory_of()
    expected = copy.deepcopy(memory).sample(7)
    drawn = BufferSampling(memory).sample(7)
    assert drawn.y is not None
    assert drawn.task is not None
    for ours, theirs in zip((drawn.x, drawn.y, drawn.task), (expected.x, expected.y, expected.task), strict=True):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize("teacher", [None, model(3), Masked(3)], ids=["labels", "teacher", "teacher with tasks"])
def test_what_was_decoded_beforehand_is_what_the_memory_holds(teacher: nn.Module | None):
    memory = memory_of(n=1200)  # more than are decoded at once
    held = memory.recollections()
    assert held is not None
    sampler = DecodedSampling(memory, teacher, seed=1)
    drawn = sampler.sample(5000)
    which = (drawn.x.flatten(1) @ held.x.flatten(1).T - held.x.flatten(1).square().sum(1) / 2).argmax(1)
    assert torch.equal(drawn.x, held.x[which])
    assert drawn.y is not None
    assert torch.equal(drawn.y, held.y[which])
    assert chisquare(torch.bincount(which, minlength=1200).numpy()).pvalue > 0.001
    if teacher is None:
        assert drawn.logits is None
        return
    student = model(4) if isinstance(teacher, rc.models.MLP) else Masked(4)
    divergence = Divergence(teacher, student)
    asked_now = divergence(Recollections(drawn.x, drawn.y, drawn.task))
    assert torch.allclose(divergence(drawn), asked_now, atol=1e-6)


def test_what_is_forgotten_is_not_taught_any_more():
    memory = memory_of()
    sampler = DecodedSampling(memory, model(3))
    memory.forget(label=1)
    memory.forget(task=2)
    drawn = sampler.sample(500)
    assert drawn.y is not None
    assert drawn.task is not None
    assert 1 not in drawn.y
    assert 2 not in drawn.task
    assert len(sampler.all) == len(memory)
    for label in (0, 2, 3, 4):
        memory.forget(label=label)
    assert sampler.all.x.untyped_storage().nbytes() == 0
    with pytest.raises(ValueError, match="the memory has forgotten all that was decoded: accepted is a new sampler"):
        sampler.sample(1)


def test_another_teacher_than_was_asked_is_refused():
    sampler = DecodedSampling(memory_of(), model(3))
    with pytest.raises(ValueError, match="another teacher: accepted is the one of their sampler"):
        distil(model(3), model(1), sampler, 1)


class Remembers(rc.ResizedPixels):
    """Keeps the codes it was asked to decode."""

    codes = torch.empty(0)

    def decode(self, codes: torch.Tensor) -> torch.Tensor:
        self.codes = codes
        return super().decode(codes)


def test_code_sampling_draws_every_variable_evenly():
    codec = Remembers(SHAPE, size=(3, 2), bits=2)
    drawn = CodeSampling(codec, seed=1).sample(2000)
    assert drawn.x.shape == (2000, *SHAPE)
    assert drawn.y is None
    assert drawn.task is None
    for variable in codec.codes.T:
        assert chisquare(variable.bincount(minlength=4).numpy()).pvalue > 0.001
    again, other = (CodeSampling(codec, seed=seed).sample(2000).x for seed in (1, 2))
    assert torch.equal(again, drawn.x)
    assert not torch.equal(other, drawn.x)


def test_the_divergence_is_the_cross_entropy_less_the_entropy_of_the_teacher():
    drawn = BufferSampling(memory_of()).sample(9)
    teacher, student = model(0), model(1)
    p, q = (network(drawn.x).double().softmax(-1) for network in (teacher, student))
    cross_entropy, entropy = -(p * q.log()).sum(-1), -(p * p.log()).sum(-1)
    torch.testing.assert_close(
        Divergence(teacher, student)(drawn).double(), cross_entropy - entropy, rtol=1e-3, atol=1e-6
    )
    assert float(Divergence(teacher, copy.deepcopy(teacher))(drawn).detach().abs().max()) < 1e-6

    ours = torch.autograd.grad(Divergence(teacher, student)(drawn).mean(), [*student.parameters()])
    theirs = torch.autograd.grad(
        nn.functional.cross_entropy(student(drawn.x), teacher(drawn.x).softmax(-1).detach()), [*student.parameters()]
    )
    for gradient, expected in zip(ours, theirs, strict=True):
        torch.testing.assert_close(gradient, expected)


def test_without_a_teacher_it_is_the_cross_entropy_of_the_labels():
    drawn = BufferSampling(memory_of()).sample(9)
    student = model(1)
    assert drawn.y is not None
    expected = -student(drawn.x).log_softmax(-1)[range(9), drawn.y]
    torch.testing.assert_close(Divergence(None, student)(drawn), expected)


def test_classes_that_a_mask_leaves_out_say_nothing():
    drawn = BufferSampling(memory_of()).sample(9)
    teacher, student = Masked(0), Masked(1)
    loss = Divergence(teacher, student)(drawn)
    assert drawn.task is not None
    for number, task in enumerate(drawn.task.tolist()):
        classes = [label for label in range(5) if label % 3 == task]
        p, q = (network.inner(drawn.x)[number, classes].softmax(-1) for network in (teacher, student))
        torch.testing.assert_close(loss[number], (p * (p / q).log()).sum(), rtol=1e-4, atol=1e-6)
    loss.mean().backward()
    assert bool(torch.isfinite(torch.stack([p.grad.norm() for p in student.parameters() if p.grad is not None])).all())


def test_the_teacher_is_asked_as_it_predicts_and_left_as_it_was():
    teacher = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(36), nn.Dropout(0.9), nn.Linear(36, 5))
    teacher[1].eval()
    before, modes = copy.deepcopy(teacher.state_dict()), [module.training for module in teacher.modules()]
    drawn = BufferSampling(memory_of()).sample(9)
    first, second = (Divergence(teacher, model(1))(drawn) for _ in range(2))
    assert torch.equal(first, second)
    assert [module.training for module in teacher.modules()] == modes
    assert all(torch.equal(before[name], value) for name, value in teacher.state_dict().items())
    assert all(parameter.grad is None for parameter in teacher.parameters())


@pytest.mark.parametrize("teacher", [model(0), None])
def test_active_sampling_takes_the_hardest_of_each_k(teacher: nn.Module | None):
    memory, student = memory_of(), model(1)
    literal = copy.deepcopy(memory).sample(3 * 7)
    drawn = ActiveSampling(BufferSampling(memory), teacher, student, k=7).sample(3)
    for number, group in enumerate(literal.split(7)):
        difficulties = [
            float(Divergence(teacher, student)(Recollections(group.x[[n]], group.y[[n]])).detach()) for n in range(7)
        ]
        hardest = difficulties.index(max(difficulties))
        assert torch.equal(drawn.x[number], group.x[hardest])
    assert student.training
    assert all(parameter.grad is None for parameter in student.parameters())


def test_active_sampling_asks_the_student_as_it_is_now():
    memory, teacher, student = memory_of(), model(0), model(1)
    sampler = ActiveSampling(BufferSampling(memory), teacher, student, k=40)
    student.load_state_dict(model(2).state_dict())
    literal = copy.deepcopy(memory).sample(40)
    hardest = Divergence(teacher, model(2))(Recollections(literal.x)).argmax()
    assert torch.equal(sampler.sample(1).x[0], literal.x[hardest])


def test_active_and_diverse_sampling_is_one_after_the_other():
    memory, teacher, student = memory_of(), model(0), model(1)
    literal = DiverseSampling(BufferSampling(copy.deepcopy(memory)), seed=3).sample(10)
    drawn = ActiveSampling(DiverseSampling(BufferSampling(memory), seed=3), teacher, student).sample(1)
    assert torch.equal(drawn.x[0], literal.x[Divergence(teacher, student)(literal).argmax()])


def test_distillation_is_adam_on_the_teachers_outputs():
    memory, teacher, student = memory_of(), model(0), model(1)
    M, F = copy.deepcopy(memory), copy.deepcopy(student)
    told = []
    distil(teacher, student, BufferSampling(memory), 6, learning_rate=1e-2, batch_size=3, on_episode=told.append)
    assert told == [1, 2, 3, 4, 5, 6]
    adam = torch.optim.Adam(F.parameters(), lr=1e-2)
    for _ in range(6):
        x = M.sample(3).x
        adam.zero_grad()
        nn.functional.cross_entropy(F(x), teacher(x).softmax(-1).detach()).backward()
        adam.step()
    torch.testing.assert_close(parameters(student), parameters(F), rtol=1e-4, atol=1e-5)


def test_a_curve_may_be_measured_on_the_way():
    """A student that the callback set to predict goes on training."""
    student = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(36), nn.Linear(36, 5))
    modes = []

    def measure(episode: int) -> None:
        modes.append(student.training)
        student.eval()

    distil(model(0), student, BufferSampling(memory_of()), 3, batch_size=4, on_episode=measure)
    assert modes == [True, True, True]


def test_models_that_take_the_task_are_given_it():
    student = Masked(1)
    before = parameters(student)
    distil(Masked(0), student, ActiveSampling(BufferSampling(memory_of()), Masked(0), student), 3)
    assert not torch.equal(parameters(student), before)
    assert bool(parameters(student).isfinite().all())


def test_codecs_that_cannot_read_any_code_are_refused():
    for codec in (rc.JPEG(SHAPE, bits=300), rc.ContinuousAutoencoder((1, 8, 8), latents=4)):
        with pytest.raises(TypeError, match=f"codec is {type(codec).__name__}: accepted is a codec that"):
            CodeSampling(codec)


def test_what_code_sampling_does_not_know_is_asked_for_in_vain():
    sampler = CodeSampling(rc.RawPixels(SHAPE))
    with pytest.raises(ValueError, match="there is no teacher, and recollections have no label: accepted is a sampler"):
        distil(None, model(1), sampler, 1)
    with pytest.raises(ValueError, match="a model takes the task, and recollections have no task: accepted is"):
        distil(Masked(0), model(1), sampler, 1)


@pytest.mark.parametrize(
    ("arguments", "message"), [({"episodes": 0}, "episodes=0"), ({"batch_size": 0}, "batch_size=0")]
)
def test_it_refuses(arguments: dict[str, int], message: str):
    with pytest.raises(ValueError, match=message):
        distil(model(0), model(1), BufferSampling(memory_of()), **({"episodes": 1} | arguments))  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="k=0"):
        ActiveSampling(BufferSampling(memory_of()), model(0), model(1), k=0)
    with pytest.raises(ValueError, match="size=0"):
        ActiveSampling(BufferSampling(memory_of()), model(0), model(1)).sample(0)


@pytest.fixture(scope="module")
def taught() -> tuple[nn.Module, rc.Memory]:
    """A teacher of MNIST, and a memory of what it learned from: 2,000 digits in 100 bits each."""
    x, y = mnist("train").images[:2000].float() / 255, mnist("train").y[:2000]
    memory = rc.Memory(rc.ResizedPixels((1, 28, 28), size=(10, 10), bits=1), capacity=2000, classes=10, tasks=1)
    memory.write(x, y)
    teacher = rc.models.MLP(seed=1)
    optimiser = torch.optim.Adam(teacher.parameters(), lr=3e-3)
    for part in torch.randperm(2000, generator=torch.Generator().manual_seed(0)).repeat(5).split(50):
        optimiser.zero_grad()
        nn.functional.cross_entropy(teacher(x[part]), y[part]).backward()
        optimiser.step()
    return teacher, memory


def accuracy(network: nn.Module) -> float:
    digits = mnist("test")
    with torch.no_grad():
        return float((network(digits.images[:2000].float() / 255).argmax(-1) == digits.y[:2000]).double().mean())


SAMPLERS: dict[str, Callable[[rc.Memory, nn.Module, nn.Module], Sampler]] = {
    "buffer": lambda memory, teacher, student: BufferSampling(memory),
    "active": lambda memory, teacher, student: ActiveSampling(BufferSampling(memory), teacher, student),
    "active and diverse": lambda memory, teacher, student: ActiveSampling(
        DiverseSampling(BufferSampling(memory), n=3), teacher, student
    ),
    "diverse by determinants": lambda memory, teacher, student: DiverseSampling(
        BufferSampling(memory), n=3, select=k_dpp
    ),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_student_learns_digits_from_a_memory_and_a_teacher(name: str, taught: tuple[nn.Module, rc.Memory]):
    teacher, memory = taught
    student = rc.models.MLP(hidden=(64,))
    before = accuracy(student)
    assert accuracy(teacher) > 0.8
    distil(teacher, student, SAMPLERS[name](memory, teacher, student), episodes=150, batch_size=10, learning_rate=3e-3)
    assert before < 0.3
    assert accuracy(student) > 0.7
