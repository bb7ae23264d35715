"""EWC: its Fisher information and its penalty against a literal computation, its bill against the paper's."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import recollect as rc

SHAPE = (1, 4, 4)


def learner_of(**settings: float) -> rc.EWC:
    return rc.EWC(rc.models.MLP(inputs=16, hidden=(8,), classes=3), learning_rate=0.1, **settings)  # pyright: ignore[reportArgumentType]


def batch(seed: int, size: int = 6) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randint(0, 256, (size, *SHAPE), generator=generator) / 255  # 8 bits are kept as they are
    return x, torch.randint(0, 3, (size,), generator=generator)


def test_the_fisher_information_is_the_mean_squared_gradient_of_the_most_recent_examples():
    learner = learner_of(items=8)
    (x1, y1), (x2, y2) = batch(0), batch(1)
    learner.observe(x1, y1, 0)
    learner.observe(x2, y2, 0)
    learner.finish()
    x, y = torch.cat([x1, x2])[-8:], torch.cat([y1, y2])[-8:]
    weights = list(learner.model.parameters())
    squares = [torch.zeros_like(weight) for weight in weights]
    for example, label in zip(x, y, strict=True):
        gradients = torch.autograd.grad(F.cross_entropy(learner.model(example[None]), label[None]), weights)
        for square, gradient in zip(squares, gradients, strict=True):
            square += gradient**2 / 8
    for ours, theirs in zip(learner._fisher[0].values(), squares, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_a_step_follows_the_loss_with_its_penalty():
    learner = learner_of(strength=30.0)
    for task in range(3):
        learner.observe(*batch(task), task)
    x, y = batch(7)
    weights = list(learner.model.parameters())
    assert len(learner._fisher) == 2
    loss = F.cross_entropy(learner.model(x), y)
    for fishers, anchors in zip(learner._fisher, learner._anchors, strict=True):
        for fisher, anchor, weight in zip(fishers.values(), anchors.values(), weights, strict=True):
            loss = loss + 30 / 2 * (fisher * (weight - anchor) ** 2).sum()
    gradients = torch.autograd.grad(loss, weights)
    expected = [weight.detach() - 0.1 * gradient for weight, gradient in zip(weights, gradients, strict=True)]
    learner.observe(x, y, 2)
    for weight, theirs in zip(weights, expected, strict=True):
        torch.testing.assert_close(weight.detach(), theirs)


def test_strength_holds_weights_in_place_and_most_those_that_matter_to_the_task():
    moved, fisher = [], torch.empty(0)
    for strength in (0.0, 50.0):
        learner = learner_of(strength=strength)
        for number in range(10):
            learner.observe(*batch(number), 0)
        learner.finish()
        anchor = torch.cat([weight.detach().flatten() for weight in learner.model.parameters()])
        for number in range(10, 60):
            learner.observe(*batch(number), 1)
        fisher = torch.cat([information.flatten() for information in learner._fisher[0].values()])
        now = torch.cat([weight.detach().flatten() for weight in learner.model.parameters()])
        moved.append((now - anchor).abs())
    free, held = moved
    assert float((fisher * held**2).sum()) < 0.5 * float((fisher * free**2).sum())
    order = fisher.argsort()
    few, many = order[: len(order) // 4], order[-(len(order) // 4) :]
    assert float(held[many].sum() / free[many].sum()) < 0.5 * float(held[few].sum() / free[few].sum())


def test_the_bill_is_the_papers():
    learner = rc.EWC(rc.models.MLP(), items=30)
    x, y = torch.rand(20, 1, 28, 28), torch.arange(20) % 10
    for task in range(20):
        learner.observe(x, y, task)
        learner.observe(x, y, task)
        bill = learner.footprint()
        assert bill.examples["codes"] == 30  # of the current task
        assert bill.parameters == 2 * 32 * 89_610 * task
    learner.finish()
    assert round(learner.footprint().examples["parameters"]) == 18_288
    assert learner.footprint().codes == learner.footprint().labels == 0


def test_running_statistics_are_left_alone_and_dropout_is_off():
    layers = nn.Flatten(), nn.BatchNorm1d(16), nn.Dropout(0.5), nn.Linear(16, 3)
    learner = rc.EWC(nn.Sequential(*layers), learning_rate=0.1)
    learner.observe(*batch(0), 0)
    before = [buffer.clone() for buffer in learner.model.buffers()]
    learner.finish()
    assert all(map(torch.equal, learner.model.buffers(), before))
    x, y = batch(0)
    weight = learner.model[3].weight  # pyright: ignore[reportIndexIssue]
    learner.model.eval()
    losses = (F.cross_entropy(learner.model(x[i : i + 1]), y[i : i + 1]) for i in range(6))
    squares = [torch.autograd.grad(loss, weight)[0] ** 2 for loss in losses]
    torch.testing.assert_close(learner._fisher[0][2], torch.stack(squares).mean(0))


def test_running_statistics_of_the_next_task_do_not_count():
    def told(*, finish: bool) -> list[torch.Tensor]:
        torch.manual_seed(0)
        learner = rc.EWC(nn.Sequential(nn.Flatten(), nn.BatchNorm1d(16), nn.Linear(16, 3)))
        for seed in range(3):
            learner.observe(*batch(seed), task=0)
        if finish:
            learner.finish()
        learner.observe(*batch(3), task=1)
        return [*learner._fisher[0].values()]

    assert all(map(torch.equal, told(finish=True), told(finish=False)))


def test_a_label_that_the_model_has_no_output_for_changes_nothing():
    learner = learner_of()
    learner.observe(*batch(0), 0)
    weights = [weight.detach().clone() for weight in learner.model.parameters()]
    with pytest.raises(ValueError, match="accepted are 0 to"):
        learner.observe(batch(1)[0], 7, 1)
    assert learner._fisher == []
    assert all(map(torch.equal, [weight.detach() for weight in learner.model.parameters()], weights))


def test_it_refuses():
    with pytest.raises(ValueError, match=r"task has the values \[0, 1\]: accepted is one task a batch"):
        learner_of().observe(*batch(0, size=2), [0, 1])
    for strength in (-1, float("inf")):
        with pytest.raises(ValueError, match=f"strength={strength}: accepted is a number of at least 0"):
            learner_of(strength=strength)
    with pytest.raises(ValueError, match="items=0"):
        learner_of(items=0)


def test_examples_of_a_task_that_ended_are_gone():
    learner = rc.EWC(rc.models.MLP(), items=20)
    for _ in range(5):
        learner.observe(torch.rand(10, 1, 28, 28), torch.arange(10), 0)
    assert 8 * learner._images.untyped_storage().nbytes() == learner.footprint().codes == 20 * 28 * 28 * 8
    learner.finish()
    assert learner._images.untyped_storage().nbytes() == learner.footprint().codes == 0
