"""Question 2: its stream, and the curve of what is kept, against accuracies taken by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import recollect as rc
from recollect.lab import retention
from recollect.lab.job import CPU, Job
from recollect.lab.results import Summary
from recollect.lab.retention import EXPERIMENT, kept, then_cifar10
from recollect.streams import Task
from recollect.streams.task import Examples

FIRST = 4  # tasks of CIFAR-100 in place of its 20
PROFILE = replace(EXPERIMENT.profiles["quick"], tasks=FIRST + 2, train_examples=5, test_examples=4, matrix_examples=4)


def task(name: str, classes: list[int], train: int, test: int, seed: int) -> Task:
    rng = np.random.default_rng([seed, classes[0]])
    parts = []
    for count in (train, test):
        images = torch.from_numpy(rng.integers(0, 256, (count, 3, 32, 32), dtype=np.uint8))
        parts.append(Examples(images, torch.tensor(classes)[torch.arange(count) % len(classes)]))
    return Task(name=name, train=parts[0], test=parts[1], classes=tuple(classes))


@pytest.fixture(autouse=True)
def noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise in place of the images, and few tasks of it: all of them are too many for a test."""

    def first(seed: int, *, train_examples: int, test_examples: int, validation: bool) -> list[Task]:
        tasks = range(FIRST)
        return [task(f"{n}", [*range(5 * n, 5 * n + 5)], train_examples, test_examples, seed) for n in tasks]

    def later(seed: int, *, train_examples: int, test_examples: int, validation: bool) -> Task:
        return task("CIFAR-10", [*range(10)], train_examples, test_examples, seed)

    monkeypatch.setattr(retention, "FIRST", FIRST)
    monkeypatch.setattr(rc.streams, "incremental_cifar100", first)
    monkeypatch.setattr(rc.streams, "cifar10", later)


def test_parts_of_cifar10_come_after_cifar100_with_labels_of_their_own_and_differ():
    stream = then_cifar10(0, tasks=FIRST + 3, train_examples=5, test_examples=4)
    assert len(stream) == FIRST + 3
    for part in stream[FIRST:]:
        assert part.classes == tuple(range(100, 110))
        assert len(part.train) == 20
        assert set(part.train.y.tolist()) | set(part.test.y.tolist()) <= set(part.classes)
    assert not torch.equal(stream[FIRST].train.images, stream[FIRST + 1].train.images)


def test_all_data_is_looked_for_before_a_run(monkeypatch: pytest.MonkeyPatch):
    def missing(seed: int, **amounts: object) -> Task:
        raise FileNotFoundError("CIFAR-10")

    monkeypatch.setattr(rc.streams, "cifar10", missing)
    with pytest.raises(FileNotFoundError, match="CIFAR-10"):
        EXPERIMENT.prepare(PROFILE, [*EXPERIMENT.rows])


def test_the_curve_is_the_accuracy_on_cifar100_when_learned_and_after_each_part():
    row = EXPERIMENT.rows[1]
    stream = then_cifar10(0, tasks=PROFILE.tasks, train_examples=5, test_examples=4)
    learner, by_hand = row.build(EXPERIMENT.course, stream, 0, CPU), []
    for number, task in enumerate(stream):
        for x, y in task.train.batches(PROFILE.stream_batch):
            learner.observe(x, y, number)
        if number >= FIRST - 1:
            right = [learner.predict(old.test.x, n) == old.test.y for n, old in enumerate(stream[:FIRST])]
            by_hand.append(100 * float(torch.cat(right).double().mean()))
    run = EXPERIMENT.execute(Job(experiment=EXPERIMENT, profile=PROFILE, row=row, seed=0))
    assert kept([run]) == pytest.approx(by_hand)
    assert EXPERIMENT.as_json(row, [run])["cifar100"] == kept([run])
    cells = dict(zip(EXPERIMENT.columns, EXPERIMENT.cells(row, [run]), strict=True))
    assert cells["after CIFAR-100, %"] == f"{by_hand[0]:.1f}"
    figure = EXPERIMENT.figure([Summary(row, [run])])
    assert figure.axes[0].lines[0].get_ydata() == pytest.approx(by_hand)
    assert figure.axes[0].lines[0].get_xdata() == pytest.approx([0, 20, 40])
