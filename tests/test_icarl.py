"""iCaRL against literal readings of its parts: herding, equal shares, the nearest mean, distillation; and its bill."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import recollect as rc
from battery import CODECS, SHAPE, batches, mlp
from recollect.learners.herding import herd
from recollect.memory import file
from recollect.memory.saved import bytes_to_tensors

TASKS = [[0, 1], [2, 3], [4, 5]]
MEANS = torch.rand(6, *SHAPE, generator=torch.Generator().manual_seed(0))


def resnet() -> nn.Module:
    return rc.models.ResNet18(TASKS, classes=6, channels=1)


def learner_of(
    model: nn.Module | None = None, codec: rc.Codec | None = None, capacity: int = 40, **more: Any
) -> rc.ICaRL:
    memory = rc.Memory(codec or rc.RawPixels(SHAPE), capacity=capacity, admission="chosen", classes=6, tasks=3)
    made: dict[str, Any] = {"learning_rate": 0.1, "exemplars": 12, **more}
    return rc.ICaRL(model or mlp(), rc.RecollectionModule(memory), **made)


def batch(seed: int, task: int, size: int = 8) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Examples near the means of a task's two classes, with 8 bits a pixel."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.tensor(TASKS[task])[torch.arange(size) % 2]
    x = (MEANS[y] + 0.2 * torch.randn(size, *SHAPE, generator=generator)).clamp(0, 1)
    return (x * 255).round() / 255, y, task


def learned(learner: rc.ICaRL, tasks: int = 3) -> rc.ICaRL:
    for task in range(tasks):
        for number in range(4):
            learner.observe(*batch(10 * task + number, task))
    return learner


def held(learner: rc.ICaRL) -> rc.Batch:
    batch = learner.memory.recollections()
    assert batch is not None
    return batch


def features(model: nn.Module, x: torch.Tensor) -> list[torch.Tensor]:
    """What goes into the last layer, of length 1, one image after the other."""
    model.eval()
    found = []
    for image in x:
        if isinstance(model, rc.models.ResNet18):
            vector = model.features(image[None]).mean((2, 3))[0].detach()
        else:
            vector = nn.Sequential(*list(model.children())[:-1])(image[None])[0].detach()
        found.append(vector / vector.norm())
    return found


def herded(vectors: list[torch.Tensor], count: int) -> list[int]:
    """Algorithm 4, literally."""
    mu = sum(vectors, torch.zeros(1)) / len(vectors)
    P: list[int] = []
    for k in range(1, count + 1):
        best, found = float("inf"), -1
        for i, phi in enumerate(vectors):
            distance = float((mu - (phi + sum((vectors[j] for j in P), torch.zeros(1))) / k).norm())
            if i not in P and distance < best:
                best, found = distance, i
        P.append(found)
    return P


@settings(max_examples=40)
@given(st.integers(1, 12), st.integers(1, 6), st.integers(0, 2**32))
def test_herding_is_greedy(count: int, dimensions: int, seed: int):
    vectors = F.normalize(torch.rand(count, dimensions + 1, generator=torch.Generator().manual_seed(seed)).double())
    chosen = herd(vectors, count)
    assert chosen.tolist() == herded([*vectors], count)
    assert sorted(chosen.tolist()) == list(range(count))
    for fewer in range(count):
        assert herd(vectors, fewer).tolist() == chosen[:fewer].tolist()
    assert torch.equal(herd(vectors, count + 5), chosen)


@pytest.mark.parametrize("make", [mlp, resnet])
@pytest.mark.parametrize("codec", ["raw", "resized"])
def test_exemplars_are_herded_from_what_the_codec_gives_back(make: Callable[[], nn.Module], codec: str):
    learner = learned(learner_of(make(), CODECS[codec]()), tasks=2)
    before = held(learner)
    model = copy.deepcopy(learner.model)
    learner.finish()
    after = held(learner)
    assert after.y.bincount().tolist() == [3, 3, 3, 3]  # 12 for 4 classes
    for label in range(4):
        own = before.y == label
        if label in TASKS[1]:
            assert int(own.sum()) > 3
            order = herded(features(model, before.x[own]), 3)
            expected = before.ids[own][order]
        else:
            expected = before.ids[own][:3]  # of the six that were chosen when their task ended, in that order
            assert int(own.sum()) == 6
        assert after.ids[after.y == label].tolist() == expected.tolist()


def test_candidates_take_the_slots_that_exemplars_leave():
    learner = learner_of(capacity=20)
    for number in range(4):
        learner.observe(*batch(number, 0))
    assert held(learner).y.bincount().tolist() == [10, 10]
    learner.observe(*batch(4, 1))
    assert held(learner).y.bincount().tolist() == [6, 6, 4, 4]
    learner.observe(*batch(5, 1))
    assert held(learner).y.bincount().tolist() == [6, 6, 4, 4]
    learner.finish()
    assert held(learner).y.bincount().tolist() == [3, 3, 3, 3]
    assert learner.memory.audit == ()


@pytest.mark.parametrize("make", [mlp, resnet])
@pytest.mark.parametrize("finished", [True, False])
def test_the_nearest_mean_is_the_nearest_mean(make: Callable[[], nn.Module], finished: bool):
    learner = learned(learner_of(make()))
    if finished:
        learner.finish()
    stored = held(learner)
    x = torch.cat([batch(90 + task, task)[0] for task in range(3)])
    means = {}
    for label in range(6):
        vectors = features(learner.model, stored.x[stored.y == label])
        mean = sum(vectors, torch.zeros(1)) / len(vectors)
        means[label] = mean / mean.norm()
    near = [{label: float((phi - mu).norm()) for label, mu in means.items()} for phi in features(learner.model, x)]
    assert learner.predict(x).tolist() == [min(distances, key=lambda label: distances[label]) for distances in near]
    for task, own in enumerate(TASKS):
        assert learner.predict(x, task).tolist() == [min(own, key=lambda label: d[label]) for d in near]
    tasks = torch.arange(24) % 3
    mixed = [min(TASKS[int(t)], key=lambda label: d[label]) for d, t in zip(near, tasks, strict=True)]
    assert learner.predict(x, tasks).tolist() == mixed


def test_a_step_follows_the_cross_entropy_and_what_was_said_of_exemplars_by_their_tasks():
    learner = learned(learner_of(resnet(), memory_batch=2, strength=3.0), tasks=2)
    teacher = copy.deepcopy(learner.model).eval()
    learner.observe(*batch(98, 2))
    x, y, task = batch(99, 2)
    past = copy.deepcopy(learner.memory).sample_tasks(2, but={2})
    assert past is not None
    assert past.task.tolist() == [0, 0, 1, 1]
    model = copy.deepcopy(learner.model).train()
    outputs = model(torch.cat([x, past.x]), torch.cat([torch.full((8,), 2), past.task]))
    loss = F.cross_entropy(outputs[:8], y)
    said = teacher(past.x, past.task).softmax(1).detach()
    for k in (0, 1):
        own = past.task == k
        log_q = outputs[8:][own][:, TASKS[k]].log_softmax(1)
        loss = loss - 3 * (said[own][:, TASKS[k]] * log_q).sum(1).mean()
    weights = list(model.parameters())
    gradients = torch.autograd.grad(loss, weights)
    learner.observe(x, y, task)
    for ours, weight, gradient in zip(learner.model.parameters(), weights, gradients, strict=True):
        torch.testing.assert_close(ours, weight - 0.1 * gradient, rtol=1e-3, atol=1e-5)


def test_a_model_that_does_not_take_the_task_is_held_to_all_classes_of_earlier_tasks():
    learner = learned(learner_of())
    learner.finish()
    assert learner._distilled == {task: [0, 1, 2, 3, 4, 5] for task in range(3)}
    stored = held(learner)
    said = learner.model.eval()(stored.x)[:, :6].softmax(1).detach()
    torch.testing.assert_close(learner._probabilities, said[stored.ids.argsort()])
    assert torch.equal(learner._ids, stored.ids.sort().values)


def test_the_bill_has_what_was_said():
    learner = learned(learner_of(resnet()))
    learner.finish()
    bill, memory = learner.footprint(), learner.memory.footprint()
    assert len(learner.memory) == 12
    assert bill.parameters == 12 * (64 + 2 * 32)  # ids, and probabilities of the two classes of a task
    assert bill.codes == memory.codes
    assert bill.total == memory.total + bill.parameters


def test_tasks_may_have_different_numbers_of_classes():
    learner = learner_of(rc.models.ResNet18([[0, 1, 2], [5]], classes=6, channels=1))
    x = batch(0, 0, size=6)[0]
    for number, labels in ((0, [0, 1, 2]), (1, [5])):
        learner.observe(x, (labels * 6)[:6], number)
    learner.observe(x, 0, 0)
    assert learner._probabilities.shape == (9, 3)  # of 12 // 4 a class: two of each that has no more, and three
    alone = learner._probabilities[learner._ids >= 6]
    assert alone.tolist() == [[1.0, 0.0, 0.0]] * len(alone)
    assert all(weight.isfinite().all() for weight in learner.model.parameters())


def test_a_class_that_comes_again_is_herded_from_old_and_new():
    learner = learned(learner_of(), tasks=1)
    for number in range(4):
        x, y, _ = batch(50 + number, 0)
        learner.observe(x, y, 1)
    before = held(learner)
    learner.finish()
    after = held(learner)
    for label in (0, 1):
        own = before.y == label
        assert before.task[own].unique().tolist() == [0, 1]
        expected = before.ids[own][herded(features(learner.model, before.x[own]), 6)]
        assert after.ids[after.y == label].tolist() == expected.tolist()


def test_what_is_forgotten_is_gone_from_what_was_said():
    learner = learned(learner_of(), tasks=2)
    learner.finish()
    stored = held(learner)
    gone = stored.ids[stored.y == 1][:2]
    rest = learner._probabilities[~torch.isin(learner._ids, gone)]
    learner.memory.forget(ids=gone)
    assert torch.equal(copy.deepcopy(learner)._of_items()["probabilities"], rest)
    assert copy.deepcopy(learner).footprint().parameters == 10 * (64 + 4 * 32)
    learner.observe(*batch(70, 2))
    assert torch.equal(learner._probabilities, rest)
    learner.memory.forget(label=0)
    assert 0 not in learner.predict(batch(90, 0)[0], 0).tolist()
    learner.finish()
    assert held(learner).y.unique().tolist() == [1, 2, 3, 4, 5]
    learner.memory.forget(task=0)
    learner.memory.forget(task=1)
    learner.memory.forget(task=2)
    learner.finish()
    learner.observe(*batch(71, 2))
    learner.observe(*batch(72, 0))


def test_the_model_decides_where_nothing_is_held():
    learner = learner_of(resnet())
    x, other = batch(0, 1)[0], batch(0, 2)[0]
    learner.model.eval()
    assert learner.predict(x, 1).tolist() == learner.model(x, torch.ones(8, dtype=torch.int64)).argmax(1).tolist()
    learned(learner, tasks=1)
    found = learner.predict(torch.cat([x, other]), torch.tensor([0] * 8 + [2] * 8))
    assert set(found[:8].tolist()) <= {0, 1}
    learner.model.eval()
    assert found[8:].tolist() == learner.model(other, torch.full((8,), 2)).argmax(1).tolist()


@pytest.mark.parametrize("codec", CODECS)
def test_a_learner_that_was_loaded_predicts_and_goes_on_as_before(codec: str, tmp_path: Path):
    learner = learned(learner_of(codec=CODECS[codec](), memory_batch=2), tasks=2)
    learner.observe(*batch(60, 2))
    learner.save(tmp_path / "learner.rec")
    loaded = rc.ICaRL.load(tmp_path / "learner.rec")
    for number in range(2):
        for each in (learner, loaded):
            each.observe(*batch(61 + number, 2 - number))
    learner.finish()
    loaded.finish()
    assert torch.equal(loaded._probabilities, learner._probabilities)
    assert torch.equal(loaded.memory.ids, learner.memory.ids)
    x = torch.cat([x for x, _, _ in batches()])
    assert torch.equal(loaded.predict(x), learner.predict(x))
    assert loaded._classes == learner._classes


def test_it_remembers_what_online_learning_forgets():
    scores = []
    for learner in (rc.Online(mlp(), learning_rate=0.1), learner_of()):
        for task in range(3):
            for number in range(30):
                learner.observe(*batch(100 * task + number, task))
        x, y, _ = batch(999, 0, size=100)
        scores.append(float((learner.predict(x, 0) == y).float().mean()))
    assert scores[0] < 0.6
    assert scores[1] > 0.9


def test_more_classes_than_exemplars_are_refused_and_change_nothing():
    learner = learned(learner_of(exemplars=4), tasks=2)
    before, ids = copy.deepcopy(learner.model.state_dict()), learner.memory.ids
    with pytest.raises(ValueError, match="6 classes and exemplars=4: accepted is an exemplar for each class"):
        learner.observe(*batch(0, 2))
    assert all(map(torch.equal, learner.model.state_dict().values(), before.values()))
    assert torch.equal(learner.memory.ids, ids)
    assert learner._task == 1


def test_it_refuses():
    ring = rc.RecollectionModule(rc.Memory(rc.RawPixels(SHAPE), capacity=9, admission="ring"))
    with pytest.raises(ValueError, match="a memory with admission='ring': accepted is 'chosen'"):
        rc.ICaRL(mlp(), ring)
    wrong: list[dict[str, Any]] = [{"exemplars": 0}, {"memory_batch": 0}, {"batch_size": 0}, {"strength": -1}]
    for setting in wrong:
        with pytest.raises(ValueError, match="=".join(map(str, *setting.items()))):
            learner_of(**setting)
    with pytest.raises(ValueError, match="exemplars=40 in a memory of 40: accepted are 1 to 39"):
        learner_of(exemplars=40)
    with pytest.raises(TypeError, match="Conv2d has no linear layer"):
        learner_of(nn.Conv2d(1, 6, 12))
    with pytest.raises(ValueError, match=r"task has the values \[0, 1\]: accepted is one task a batch"):
        learner_of().observe(batch(0, 0, size=2)[0], 0, [0, 1])
    learner = learner_of()
    learner.memory.write(*batch(0, 1))
    with pytest.raises(ValueError, match="the memory holds what this learner did not write"):
        learner.observe(*batch(0, 0))


def test_a_batch_that_cannot_be_learned_changes_nothing():
    learner = learner_of(resnet(), CODECS["autoencoder"]())
    for number in range(3):
        learner.observe(*batch(number, 0))
    before, held = copy.deepcopy(learner.model.state_dict()), learner.memory.recollections()
    assert held is not None
    codec = copy.deepcopy(learner.memory.codec)
    assert isinstance(codec, rc.DiscreteAutoencoder)
    x, y, _ = batch(3, 1)
    for labels, task in ((y, 7), (torch.full_like(y, 6), 1)):
        with pytest.raises(ValueError, match="accepted are 0 to"):
            learner.observe(x, labels, task)
    assert learner._task == 0
    after = learner.memory.recollections()
    assert after is not None
    assert torch.equal(after.ids, held.ids)
    assert all(torch.equal(tensor, before[name]) for name, tensor in learner.model.state_dict().items())
    now = learner.memory.codec
    assert isinstance(now, rc.DiscreteAutoencoder)
    assert all(map(torch.equal, now.parameters(), codec.parameters()))


def test_the_codec_of_exemplars_rehearses():
    """As in replay: the same codec and draws learn the same from the first batches, before anything is chosen."""
    learner = learner_of(codec=CODECS["autoencoder"](), batch_size=4)
    memory = copy.deepcopy(learner.memory)
    module = rc.RecollectionModule(memory)
    for number in range(3):
        x, y, task = batch(number, 0)
        learner.observe(x, y, task)
        module.rehearse(x, 4)
        memory.write(x, y, task)
    ours, theirs = learner.memory.codec, memory.codec
    assert isinstance(ours, rc.DiscreteAutoencoder)
    assert isinstance(theirs, rc.DiscreteAutoencoder)
    assert all(map(torch.equal, ours.parameters(), theirs.parameters()))


def test_what_was_said_of_a_forgotten_exemplar_is_in_no_file(path: Path):
    memory = rc.Memory(rc.RawPixels((1, 8, 8)), capacity=60, admission="chosen", classes=10, tasks=2)
    model = rc.models.MLP(inputs=64, classes=10)
    learner = rc.ICaRL(model, rc.RecollectionModule(memory), exemplars=20)
    for task in range(2):
        learner.observe(torch.rand(50, 1, 8, 8), torch.arange(50) % 5 + 5 * task, task)
    learner.finish()
    learner.save(path)
    gone = memory.recollections()
    assert gone is not None
    gone = gone.ids[gone.task == 0]
    opened = rc.Memory.open(path)  # as the command does, without the learner
    opened.forget(task=0)
    opened.commit(path)
    with file.reading(path) as reader:
        kept = bytes_to_tensors(reader.parts["items"])
    assert not torch.isin(kept["ids"], gone).any()
    assert len(kept["probabilities"]) == len(kept["ids"]) == len(opened)
    again = rc.ICaRL.load(path)
    assert len(again._ids) == len(again._probabilities) == len(opened)
    assert not torch.isin(again._ids, gone).any()
    memory.forget(task=0)
    assert not torch.isin(learner._ids, gone).any()
