"""The reduced ResNet-18: its shape against a formula, and its outputs masked to the task of each example."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import recollect as rc
from recollect.models.resnet import Block, ResNet18

TASKS = [(0, 3, 5), (1, 2), (4, 6, 7, 8, 9)]
TASK = torch.tensor([2, 0, 1, 1, 0])


def small(seed: int = 0, channels: int = 1) -> ResNet18:
    return ResNet18(TASKS, classes=10, channels=channels, seed=seed)


def images(count: int = 5, channels: int = 1, size: int = 28) -> torch.Tensor:
    return torch.rand(count, channels, size, size, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(("channels", "classes"), [(1, 10), (3, 100), (1, 1623)])
def test_the_number_of_parameters(channels: int, classes: int):
    f = 20
    first = 9 * channels * f + 2 * f
    same_width = 4 * 9 * f**2 + 4 * 2 * f
    wider = sum(  # a convolution from half the width, three more, the shortcut, and five normalisations
        9 * (w // 2) * w + 3 * 9 * w**2 + (w // 2) * w + 5 * 2 * w for w in (2 * f, 4 * f, 8 * f)
    )
    last = (8 * f + 1) * classes
    model = ResNet18([range(classes)], classes=classes, channels=channels)
    assert sum(parameter.numel() for parameter in model.parameters()) == first + same_width + wider + last


@pytest.mark.parametrize("size", [28, 32])
@pytest.mark.parametrize("channels", [1, 3])
def test_the_last_map_is_4x4(size: int, channels: int):
    model, x = small(channels=channels), images(channels=channels, size=size)
    features = model.features(x)
    assert features.shape == (5, 160, 4, 4)
    pooled = F.avg_pool2d(features, 4).flatten(1)
    model.eval()
    own = ~model.others[TASK]
    logits = model(x, TASK)
    assert logits.shape == (5, 10)
    model.train()
    expected = pooled @ model.outputs.weight.T + model.outputs.bias
    torch.testing.assert_close(model(x, TASK)[own], expected[own])


@pytest.mark.parametrize("training", [True, False])
def test_outputs_are_masked_to_the_task_of_each_example(training: bool):
    logits = small().train(training)(images(), TASK)
    for row, task in zip(logits, TASK.tolist(), strict=True):
        others = [label for label in range(10) if label not in TASKS[task]]
        assert (row[others] == -1e9).all()
        assert (row[list(TASKS[task])].abs() < 100).all()
        assert int(row.argmax()) in TASKS[task]
    loss = F.cross_entropy(logits, torch.tensor([4, 0, 1, 2, 0]))
    assert loss.isfinite()
    assert F.cross_entropy(logits, torch.tensor([0, 1, 0, 0, 1])).isfinite()  # even where another task's class is asked


def test_outputs_are_masked_in_16_bits():
    model = small().eval()
    with torch.autocast("cpu", dtype=torch.float16):
        outputs = model(images(), TASK)
    assert outputs.dtype == torch.float16
    assert all(int(row.argmax()) in TASKS[task] for row, task in zip(outputs, TASK.tolist(), strict=True))
    assert bool(F.cross_entropy(outputs.float(), torch.tensor([4, 0, 1, 2, 3])).isfinite())


def test_the_loss_is_that_among_the_classes_of_the_task():
    model, x = small(), images()
    y = torch.tensor([4, 0, 1, 2, 5])
    logits = model(x, TASK)
    losses = [
        F.cross_entropy(row[list(TASKS[task])], torch.tensor(TASKS[task].index(label)))
        for row, task, label in zip(logits, TASK.tolist(), y.tolist(), strict=True)
    ]
    torch.testing.assert_close(F.cross_entropy(logits, y), torch.stack(losses).mean())


def test_no_gradient_flows_to_the_outputs_of_other_tasks():
    model = small()
    F.cross_entropy(model(images(), torch.full((5,), 1)), torch.tensor([1, 2, 1, 2, 1])).backward()
    weight, bias = model.outputs.weight.grad, model.outputs.bias.grad
    assert weight is not None
    assert bias is not None
    for label in range(10):
        assert bool(weight[label].any()) == bool(bias[label]) == (label in TASKS[1])
    assert all(bool(parameter.grad.any()) for parameter in model.features.parameters() if parameter.grad is not None)


def test_a_block_adds_its_input():
    block = Block(4, 4, stride=1)
    inner = block.inner[-1]
    assert isinstance(inner, torch.nn.BatchNorm2d)
    torch.nn.init.zeros_(inner.weight)
    x = torch.randn(2, 4, 7, 7)
    assert torch.equal(block(x), x.relu())


@pytest.mark.parametrize(("outputs", "stride"), [(4, 1), (6, 2)])
def test_a_block_is_that_of_the_residual_network(outputs: int, stride: int):
    block, x = Block(4, outputs, stride=stride), torch.randn(3, 4, 8, 8)
    weights = [part for part in block.parameters() if part.ndim == 4]  # in the order in which they are defined

    def normed(maps: torch.Tensor) -> torch.Tensor:
        mean, var = maps.mean((0, 2, 3), keepdim=True), maps.var((0, 2, 3), keepdim=True, unbiased=False)
        return (maps - mean) / (var + 1e-5).sqrt()

    inner = normed(F.conv2d(x, weights[0], stride=stride, padding=1)).clamp(min=0)
    inner = normed(F.conv2d(inner, weights[1], padding=1))
    shortcut = x if stride == 1 else normed(F.conv2d(x, weights[2], stride=stride))
    torch.testing.assert_close(block(x), (inner + shortcut).clamp(min=0))


def test_the_seed_fixes_the_weights_and_leaves_other_generators_alone():
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    first, again, other = small(1), small(1), small(2)
    assert torch.equal(torch.rand(3), expected)
    for name, weight in first.state_dict().items():
        assert torch.equal(weight, again.state_dict()[name])
    assert not torch.equal(first.outputs.weight, other.outputs.weight)


def test_predictions_use_running_statistics_and_training_those_of_the_batch():
    learner = rc.Online(small())
    x = images()
    before = learner.predict(x[:1], 1)
    assert torch.equal(learner.predict(x, 1)[:1], before)  # whatever else is in the batch
    state = {name: value.clone() for name, value in learner.model.state_dict().items()}
    learner.predict(x, 1)
    assert all(torch.equal(value, state[name]) for name, value in learner.model.state_dict().items())
    learner.observe(x, torch.tensor([1, 2, 1, 2, 1]), 1)
    changed = {name for name, value in learner.model.state_dict().items() if not torch.equal(value, state[name])}
    assert {name for name in state if "running" in name} <= changed
    assert "others" not in changed


@pytest.mark.parametrize("learner", [rc.Replay, rc.GEM])
def test_learners_give_it_the_task_of_new_and_of_old_examples(learner: type[rc.Replay] | type[rc.GEM]):
    memory = rc.Memory(rc.RawPixels((1, 28, 28)), capacity=10, classes=10, tasks=3)
    model = small()
    learning = learner(model, rc.RecollectionModule(memory), learning_rate=0.1, batch_size=4)
    asked = []
    model.register_forward_pre_hook(lambda _, inputs: asked.append(inputs[1].tolist()))
    for task, classes in enumerate(TASKS):
        learning.observe(images(), torch.tensor([classes[i % len(classes)] for i in range(5)]), task)
    assert asked[0] == [0] * 5
    assert {task for tasks in asked[1:] for task in tasks} == {0, 1, 2}
    for task, classes in enumerate(TASKS):
        assert set(learning.predict(images(), task).tolist()) <= set(classes)
    assert all(parameter.isfinite().all() for parameter in model.parameters())


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ([], "tasks, of which there are=0"),
        ([[0], []], "classes of task 1, of which there are=0"),
        ([[0], [9, 10]], "classes of task 1 has the value 10: accepted are 0 to 9"),
        ([[-1]], "classes of task 0 has the value -1"),
    ],
)
def test_it_refuses(tasks: list[list[int]], message: str):
    with pytest.raises(ValueError, match=message):
        ResNet18(tasks, classes=10)


def test_a_task_that_it_does_not_know_is_refused():
    for task in (3, -1):
        with pytest.raises(ValueError, match=f"task has the value {task}: accepted are 0 to 2"):
            small()(images(1), torch.tensor([task]))
