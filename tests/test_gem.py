"""GEM: its projection against another solver, its gradients against a loop, its steps against Algorithm 2."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls
from torch import nn

import recollect as rc
from battery import parameters
from recollect.learners.gradients import Gradients, gradients_of_groups
from recollect.learners.projection import multipliers
from recollect.module import Rehearsal

SHAPE = (1, 12, 12)


@given(st.integers(1, 12), st.integers(2, 40), st.sampled_from([0.0, 0.5, 2.0]), st.integers(0, 10**6))
def test_the_projection_is_that_of_another_solver(tasks: int, parameters: int, strength: float, seed: int):
    """With v = strength + u the dual is non-negative least squares: u >= 0 and |Gᵀ(strength + u) + g| least."""
    rng = np.random.default_rng(seed)
    G, g = rng.normal(size=(tasks, parameters)), rng.normal(size=parameters)
    v = multipliers(G @ G.T, G @ g, strength)
    u, least = nnls(G.T, -(g + strength * G.sum(0)))
    projected = g + v @ G
    np.testing.assert_allclose(np.linalg.norm(projected), least, atol=1e-6)
    np.testing.assert_allclose(projected, g + (strength + u) @ G, atol=1e-3)  # the same point, whatever v
    assert (v >= strength - 1e-9).all()
    assert (G @ projected >= -1e-6 * np.linalg.norm(G, axis=1) * max(1, np.linalg.norm(projected))).all()


@pytest.mark.parametrize("copies", [2, 20])
def test_past_gradients_may_be_alike(copies: int):
    rng = np.random.default_rng(0)
    G = np.repeat(rng.normal(size=(1, 500)), copies, axis=0).astype(np.float32)
    g = -G[0] + 0.1 * rng.normal(size=500).astype(np.float32)
    v = multipliers((G @ G.T).astype(np.float64), (G @ g).astype(np.float64), 0.0)
    assert abs(float((g + v @ G) @ G[0])) < 1e-3 * float(G[0] @ G[0])


def test_no_task_is_hurt_however_short_its_gradient_is():
    for seed in range(50):
        rng = np.random.default_rng(seed)
        G = rng.normal(size=(6, 200)) * 10.0 ** rng.uniform(-5, 0, (6, 1))
        g = rng.normal(size=200) - 3 * G[0] / np.linalg.norm(G[0]) - 3 * G[1] / np.linalg.norm(G[1])
        step = g + multipliers(G @ G.T, G @ g, 0.1) @ G
        cosines = (G @ step) / (np.linalg.norm(G, axis=1) * np.linalg.norm(step))
        assert cosines.min() > -1e-6


def test_gradients_beyond_all_numbers_turn_nothing():
    class Beyond:
        def gram(self) -> torch.Tensor:
            return torch.tensor([[1.0, -1.0], [-1.0, torch.inf]])

        def combined(self, shares: torch.Tensor) -> Sequence[torch.Tensor]:
            return [shares]

    learner = rc.GEM(mlp(), rc.RecollectionModule(rc.Memory(rc.RawPixels(SHAPE), capacity=4, admission="ring")))
    assert learner._shares(Beyond()).tolist() == [1, 0]


def mlp() -> nn.Module:
    return rc.models.MLP(inputs=144, hidden=(16,), classes=10)


def with_statistics() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.BatchNorm1d(144), nn.Linear(144, 10))


def without_biases() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(144, 12, bias=False), nn.Tanh(), nn.Linear(12, 10))


def with_a_convolution() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(200, 10))


def half_frozen() -> nn.Module:
    model = mlp()
    next(model.parameters()).requires_grad_(False)
    return model


def with_a_layer_twice() -> nn.Module:
    layer = nn.Linear(16, 16)
    return nn.Sequential(nn.Flatten(), nn.Linear(144, 16), layer, nn.ReLU(), layer, nn.Linear(16, 10))


def in_place() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(144, 16), nn.ReLU(inplace=True), nn.Linear(16, 10))


def with_normed_weights() -> nn.Module:
    layer = nn.utils.parametrizations.weight_norm(nn.Linear(144, 16))
    return nn.Sequential(nn.Flatten(), layer, nn.ReLU(), nn.Linear(16, 10))


def with_a_hook() -> nn.Module:
    model = mlp()
    next(layer for layer in model.modules() if isinstance(layer, nn.Linear)).register_forward_hook(
        lambda *io: 2 * io[2]
    )
    return model


def with_a_hook_on_all_of_it() -> nn.Module:
    model = mlp()
    model.register_forward_pre_hook(lambda _, inputs: (10 * inputs[0] - 5,))
    return model


def normalised_without_statistics() -> nn.Module:
    layers = nn.Linear(144, 16), nn.BatchNorm1d(16, track_running_stats=False), nn.ReLU(), nn.Linear(16, 10)
    return nn.Sequential(nn.Flatten(), *layers)


MODELS = [mlp, with_statistics, without_biases, with_a_convolution, half_frozen, with_a_layer_twice]
MODELS += [in_place, with_normed_weights, with_a_hook, with_a_hook_on_all_of_it, normalised_without_statistics]


@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize("sizes", [[4, 4, 4], [2, 5, 3], [6], [200, 150]])
def test_gradients_of_groups_are_those_of_a_loop(make: Callable[[], nn.Module], sizes: list[int]):
    model, x = make(), torch.rand(sum(sizes), *SHAPE)
    y = torch.arange(len(x)) % 10
    literal = copy.deepcopy(model)
    found = gradients_of_groups(model, [x], y, sizes)
    trained = [parameter for parameter in literal.parameters() if parameter.requires_grad]
    rows = []
    for part, labels in zip(x.split(sizes), y.split(sizes), strict=True):
        rows.append(flat(torch.autograd.grad(F.cross_entropy(literal(part), labels), trained)))
    G = torch.stack(rows)
    shares = torch.rand(len(sizes))
    torch.testing.assert_close(found.gram(), G @ G.T)
    torch.testing.assert_close(flat(found.combined(shares)), shares @ G)
    for ours, theirs in zip(model.buffers(), literal.buffers(), strict=True):
        torch.testing.assert_close(ours, theirs)


def stream(tasks: int = 4, per_task: int = 3) -> list[tuple[torch.Tensor, torch.Tensor, int]]:
    generator = torch.Generator().manual_seed(1)
    return [
        (torch.rand(5, *SHAPE, generator=generator), torch.randint(0, 10, (5,), generator=generator), task)
        for task in range(tasks)
        for _ in range(per_task)
    ]


def flat(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    return torch.cat([tensor.flatten() for tensor in tensors])


@pytest.mark.parametrize(("strength", "rehearse"), [(0.0, "none"), (0.5, "none"), (0.5, "recollections")])
def test_gem_is_algorithm_2(strength: float, rehearse: Rehearsal):
    codec = rc.DiscreteAutoencoder(SHAPE, 8, 3)
    memory = rc.Memory(codec, capacity=24, admission="ring", classes=10, tasks=4)
    learner = rc.GEM(
        mlp(),
        rc.RecollectionModule(memory, steps=2, rehearse=rehearse, most=3),
        learning_rate=0.5,
        memory_strength=strength,
        batch_size=4,
    )
    M, model = copy.deepcopy(memory), copy.deepcopy(learner.model)
    assert isinstance(M.codec, rc.DiscreteAutoencoder)
    beta = torch.optim.Adam(M.codec.parameters(), lr=1e-3)
    theta = list(model.parameters())
    projections = 0
    for x, y, t in stream():
        learner.observe(x, y, t)

        # Sets are drawn together: the first of four, of which three join, and one more of three.
        drawn = M.sample(4 + 3).x if len(M) and rehearse == "recollections" else x[:0]
        for joining in (drawn[:3], drawn[4:]):
            beta.zero_grad()
            M.codec.loss(torch.cat([x, joining])).backward()
            beta.step()
        M.write(x, y, t)
        g = flat([*torch.autograd.grad(F.cross_entropy(model(x), y), theta)])
        past = []
        for k in range(t):
            held = sum(int(i) < 15 * (k + 1) and int(i) >= 15 * k for i in M.ids)
            z = M.sample(held, task=k, replace=False)
            past.append(flat([*torch.autograd.grad(F.cross_entropy(model(z.x), z.y), theta)]))
        step = g
        if past and any(float(g @ g_k) < 0 for g_k in past):
            projections += 1
            G = torch.stack(past).double().numpy()
            u, _ = nnls(G.T, -(g.double().numpy() + strength * G.sum(0)))
            step = g + torch.from_numpy((strength + u) @ G).float()
        with torch.no_grad():
            for parameter, change in zip(theta, step.split([p.numel() for p in theta]), strict=True):
                parameter -= 0.5 * change.view_as(parameter)
        torch.testing.assert_close(flat([*learner.model.parameters()]), flat(theta), rtol=1e-3, atol=1e-4)
    assert projections >= 3


def test_no_step_hurts_a_past_task_to_first_order(monkeypatch: pytest.MonkeyPatch):
    memory = rc.Memory(rc.RawPixels(SHAPE), capacity=16, admission="ring", classes=10, tasks=4)
    learner = rc.GEM(mlp(), rc.RecollectionModule(memory), learning_rate=0.5, memory_strength=0.3)
    shares_of, turned = learner._shares, []

    def checked(gradients: Gradients) -> torch.Tensor:
        shares, gram = shares_of(gradients), gradients.gram()
        assert shares[0] == 1
        if bool(shares[1:].any()):
            turned.append(bool((gram[0, 1:] < 0).any()))
        step = flat(gradients.combined(shares))
        lengths = gram.diagonal().sqrt() * step.norm()
        assert bool((gram @ shares >= -1e-5 * lengths)[1:].all())
        return shares

    monkeypatch.setattr(learner, "_shares", checked)
    for x, y, t in stream():
        learner.observe(x, y, t)
    assert len(turned) >= 3
    assert all(turned)  # where nothing is hurt, the gradient stays as it is


@pytest.mark.parametrize(("batch", "asked"), [(None, [8, 8, 8]), (3, [3, 3, 3]), (100, [8, 8, 8])])
def test_memory_batch_limits_the_memories_of_each_task(
    batch: int | None, asked: list[int], monkeypatch: pytest.MonkeyPatch
):
    memory = rc.Memory(rc.RawPixels(SHAPE), capacity=32, admission="ring", classes=10, tasks=4)
    learner = rc.GEM(mlp(), rc.RecollectionModule(memory), memory_batch=batch)
    sizes: list[list[int]] = []

    def spy(model: nn.Module, inputs: list[torch.Tensor], y: torch.Tensor, counts: list[int]) -> Gradients:
        sizes.append(counts[1:])
        return gradients_of_groups(model, inputs, y, counts)

    monkeypatch.setattr("recollect.learners.gem.gradients_of_groups", spy)
    for x, y, t in stream():
        learner.observe(x, y, t)
    assert sizes[-1] == asked


@pytest.mark.parametrize(
    ("model", "bad", "message"),
    [
        (mlp, (25, 2), "y has the value 25: accepted are 0 to 9"),
        (lambda: rc.models.ResNet18([range(3)] * 3, classes=3, channels=1), (1, 7), "task has the value 7"),
    ],
    ids=["label", "task"],
)
def test_a_batch_that_the_model_cannot_learn_is_not_remembered(
    model: Callable[[], nn.Module], bad: tuple[int, int], message: str
):
    """It would be drawn again in every step to come."""
    learner = rc.GEM(model(), rc.RecollectionModule(rc.Memory(rc.RawPixels(SHAPE), capacity=20, admission="ring")))
    x = torch.rand(4, *SHAPE)
    learner.observe(x, 1, 0)
    before = parameters(learner)
    with pytest.raises(ValueError, match=message):
        learner.observe(x, *bad)
    assert torch.equal(parameters(learner), before)
    assert learner.memory.seen == 4
    learner.observe(x, 2, 1)


def test_it_refuses():
    module = rc.RecollectionModule(rc.Memory(rc.RawPixels(SHAPE), capacity=5))
    with pytest.raises(ValueError, match="memory_strength=-1"):
        rc.GEM(mlp(), module, memory_strength=-1)
    with pytest.raises(ValueError, match="memory_batch=0"):
        rc.GEM(mlp(), module, memory_batch=0)
