"""The embedded MNIST against its published checksums, and the stream made of it."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
import torch
from scipy.ndimage import rotate as reference

from recollect.data import idx, mnist
from recollect.streams.mnist import mnist_rotations, rotate

# As published for the decompressed files.
MD5 = {
    "train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
    "train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
    "t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
    "t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
}


@pytest.mark.parametrize(("name", "md5"), MD5.items())
def test_mnist_is_the_published_one(name: str, md5: str):
    assert hashlib.md5(idx(name)).hexdigest() == md5


def test_mnist_has_its_images_and_labels():
    assert mnist("train").images.shape == (60_000, 1, 28, 28)
    assert mnist("test").images.shape == (10_000, 1, 28, 28)
    assert mnist("train").y[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    assert torch.bincount(mnist("test").y).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]


@pytest.mark.parametrize("angle", [0.0, 17.3, 90.0, 133.7, 180.0])
@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 10, 16)])
def test_rotation_is_bilinear_and_counter_clockwise(angle: float, shape: tuple[int, int, int]):
    images = torch.randint(0, 256, (5, *shape), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    images[..., [0, -1], :] = 0  # at the border the two disagree about what lies outside
    images[..., [0, -1]] = 0
    expected = reference(images.double().numpy(), angle, axes=(3, 2), reshape=False, order=1)
    assert np.abs(rotate(images, angle).numpy() - expected).max() <= 0.51  # rounded to 8 bits


def test_a_stream_is_the_paper_s():
    stream = mnist_rotations(seed=3)
    angles = [float(task.name.split()[0]) for task in stream]
    assert len(stream) == 20
    assert all(9 * t - 0.05 <= angle <= 9 * (t + 1) + 0.05 for t, angle in enumerate(angles))
    assert {(len(task.train), len(task.test)) for task in stream} == {(1000, 10_000)}
    assert {task.classes for task in stream} == {tuple(range(10))}
    x = stream[7].train.x
    assert x.dtype == torch.float32
    assert 0 <= float(x.min()) <= float(x.max()) <= 1
    assert torch.equal(stream[7].test.y, mnist("test").y)


def test_a_seed_fixes_angles_images_and_order():
    first, again, other = mnist_rotations(1, tasks=2), mnist_rotations(1, tasks=2), mnist_rotations(2, tasks=2)
    for one, same, different in zip(first, again, other, strict=True):
        assert one.name == same.name != different.name
        assert torch.equal(one.train.images, same.train.images)
        assert torch.equal(one.train.y, same.train.y)
        assert not torch.equal(one.train.y, different.train.y)
    assert not torch.equal(first[0].train.y, first[1].train.y)


def test_validation_never_touches_the_test_set_and_tests_on_images_not_trained_on():
    (task,) = mnist_rotations(tasks=1, train_examples=50_000, validation=True)
    assert torch.equal(task.test.y, mnist("train").y[-10_000:])
    assert torch.equal(task.train.y.bincount(), mnist("train").y[:-10_000].bincount())


def test_batches_cover_a_task_in_order():
    (task,) = mnist_rotations(tasks=1, train_examples=25)
    parts = list(task.train.batches(10))
    assert torch.equal(torch.cat([x for x, _ in parts]), task.train.x)
    assert torch.equal(torch.cat([y for _, y in parts]), task.train.y)


def test_examples_are_a_dataset_to_pytorch():
    (task,) = mnist_rotations(tasks=1, train_examples=25)
    parts = list(torch.utils.data.DataLoader(task.train, batch_size=10))
    assert torch.equal(torch.cat([x for x, _ in parts]), task.train.x)
    assert [int(y) for _, y in task.train] == task.train.y.tolist()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tasks": 0}, "tasks=0"),
        ({"train_examples": 60_001}, "train_examples=60001: accepted are 1 to 60000"),
        ({"train_examples": 50_001, "validation": True}, "accepted are 1 to 50000"),
    ],
)
def test_it_refuses(arguments: dict[str, int], message: str):
    with pytest.raises(ValueError, match=message):
        mnist_rotations(**arguments)  # pyright: ignore[reportArgumentType]
