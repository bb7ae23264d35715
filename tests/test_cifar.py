"""Incremental CIFAR-100 and CIFAR-10, from small files in the layouts of the published ones."""

from __future__ import annotations

import hashlib
import tarfile
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch

from conftest import Folders
from recollect.data import cifar
from recollect.streams import Task, cifar10, incremental_cifar100

TRAIN, TEST = 10, 3  # images of each class
COARSE = np.arange(100) % 20  # of each fine label
COARSE_NAMES, FINE_NAMES = [f"coarse_{label}" for label in range(20)], [f"fine_{label}" for label in range(100)]

Rows = npt.NDArray[np.uint8]


def rows(labels: list[npt.NDArray[np.integer]], seed: int) -> Rows:
    """Rows of a file, in a mixed order: labels, then random pixels."""
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 256, (len(labels[0]), 3072))
    return rng.permutation(np.column_stack([*labels, pixels]).astype(np.uint8))


def write_cifar100(folder: Path, train: Rows, test: Rows) -> None:
    folder.mkdir(exist_ok=True)
    train.tofile(folder / "train.bin")
    test.tofile(folder / "test.bin")
    (folder / "coarse_label_names.txt").write_text("\n".join(COARSE_NAMES) + "\n")
    (folder / "fine_label_names.txt").write_text("\n".join(FINE_NAMES) + "\n\n")


def pack(archive: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The folder as the published archive, the folder itself gone."""
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder, folder.name)
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
    published = getattr(cifar, name)
    monkeypatch.setattr(cifar, name, published._replace(md5=hashlib.md5(archive.read_bytes()).hexdigest()))


@pytest.fixture
def cifar100(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> tuple[Rows, Rows]:
    """A small CIFAR-100, written as a folder."""
    monkeypatch.setattr(cifar, "TRAIN", 100 * TRAIN)
    monkeypatch.setattr(cifar, "TEST", 100 * TEST)
    fine = [np.arange(100).repeat(count) for count in (TRAIN, TEST)]
    train, test = (rows([COARSE[labels], labels], seed) for seed, labels in enumerate(fine))
    write_cifar100(folders.own / "cifar-100-binary", train, test)
    return train, test


@pytest.fixture
def batches(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> Rows:
    """A small CIFAR-10, written as a folder: 20 images in each file."""
    monkeypatch.setattr(cifar, "TRAIN", 100)
    monkeypatch.setattr(cifar, "TEST", 20)
    folder = folders.own / "cifar-10-batches-bin"
    folder.mkdir()
    everything = rows([np.arange(10).repeat(12)], seed=0)
    for name, part in zip(
        [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"], np.split(everything, 6), strict=True
    ):
        part.tofile(folder / f"{name}.bin")
    return everything


def as_rows(task: Task, part: str) -> list[tuple[int, bytes]]:
    """Label and pixels of each example, to be compared with rows of a file."""
    examples = getattr(task, part)
    return [(int(y), image.numpy().tobytes()) for image, y in zip(examples.images, examples.y, strict=True)]


def in_file(rows: Rows, labels: int = 2) -> list[tuple[int, bytes]]:
    return [(int(row[labels - 1]), row[labels:].tobytes()) for row in rows]


def same(stream: list[Task], other: list[Task]) -> bool:
    """Whether two streams have the same examples in the same order."""
    parts = [(one, two, part) for one, two in zip(stream, other, strict=True) for part in ("train", "test")]
    return all(as_rows(one, part) == as_rows(two, part) for one, two, part in parts)


def test_the_tasks_are_the_coarse_labels(cifar100: tuple[Rows, Rows]):
    train, test = cifar100
    stream = incremental_cifar100()
    assert [task.name for task in stream] == COARSE_NAMES
    for number, task in enumerate(stream):
        assert task.classes == tuple(range(number, 100, 20))
        assert task.train.images.dtype == torch.uint8
        assert task.train.images.shape == (5 * TRAIN, 3, 32, 32)
        assert task.test.images.shape == (5 * TEST, 3, 32, 32)
        assert task.train.images.is_contiguous()
        assert sorted(as_rows(task, "train")) == sorted(in_file(train[train[:, 0] == number]))
        assert sorted(as_rows(task, "test")) == sorted(in_file(test[test[:, 0] == number]))


def test_a_row_has_its_labels_and_then_red_green_and_blue(folders: Folders, cifar100: tuple[Rows, Rows]):
    train, test = cifar100
    (row,) = np.flatnonzero(train[:, 1] == 42)[:1]
    train[row, 2:] = np.repeat([10, 20, 30], 1024)
    train[row, 2 + 32] = 255  # the second row of pixels begins here
    write_cifar100(folders.own / "cifar-100-binary", train, test)
    images = incremental_cifar100()[42 % 20].train.images
    (image,) = images[(images[:, 2] == 30).all(-1).all(-1)]
    assert image[:, 5, 5].tolist() == [10, 20, 30]
    assert int(image[0, 1, 0]) == 255


def test_fine_labels_five_at_a_time(cifar100: tuple[Rows, Rows]):
    stream = incremental_cifar100(split="fine")
    assert [task.classes for task in stream] == [tuple(range(first, first + 5)) for first in range(0, 100, 5)]
    assert stream[1].name == "fine_5, fine_6, fine_7, fine_8, fine_9"
    for task in stream:
        assert set(task.train.y.tolist()) == set(task.test.y.tolist()) == set(task.classes)


def test_the_seed_draws_the_order_of_training_and_nothing_else(cifar100: tuple[Rows, Rows]):
    first, again, other = (incremental_cifar100(seed, tasks=3) for seed in (1, 1, 2))
    assert same(first, again)
    for one, two in zip(first, other, strict=True):
        assert as_rows(one, "train") != as_rows(two, "train")
        assert sorted(as_rows(one, "train")) == sorted(as_rows(two, "train"))
        assert as_rows(one, "test") == as_rows(two, "test")
    labels = first[0].train.y
    assert not torch.equal(labels, labels.sort().values)


def test_less_of_a_stream_is_its_beginning(cifar100: tuple[Rows, Rows]):
    whole, less = incremental_cifar100(), incremental_cifar100(tasks=2, train_examples=7, test_examples=4)
    assert len(less) == 2
    for one, two in zip(whole, less, strict=False):
        assert as_rows(two, "train") == as_rows(one, "train")[:7]
        assert as_rows(two, "test") == as_rows(one, "test")[:4]
        assert two.classes == one.classes


def test_the_order_of_the_rows_in_the_files_does_not_matter(folders: Folders, cifar100: tuple[Rows, Rows]):
    before = incremental_cifar100()
    train, test = (part[np.argsort(part[:, 1], kind="stable")] for part in cifar100)
    write_cifar100(folders.own / "cifar-100-binary", train, test)
    assert same(incremental_cifar100(), before)


def test_validation_holds_out_a_tenth_of_each_class_and_leaves_the_test_set_alone(cifar100: tuple[Rows, Rows]):
    train, _ = cifar100
    for number, task in enumerate(incremental_cifar100(validation=True)):
        trained, held = as_rows(task, "train"), as_rows(task, "test")
        assert sorted(y for y, _ in held) == list(task.classes)
        assert sorted(trained + held) == sorted(in_file(train[train[:, 0] == number]))


def test_the_archive_serves_as_well_as_the_folder(
    folders: Folders, cifar100: tuple[Rows, Rows], monkeypatch: pytest.MonkeyPatch
):
    before = incremental_cifar100()
    pack(folders.own / "cifar-100-binary.tar.gz", folders.own / "cifar-100-binary", monkeypatch, "CIFAR100")
    assert same(incremental_cifar100(), before)
    assert [path.name for path in folders.own.iterdir()] == ["cifar-100-binary.tar.gz"]


def test_a_file_that_was_cut_off_is_refused(folders: Folders, cifar100: tuple[Rows, Rows]):
    path = folders.own / "cifar-100-binary" / "train.bin"
    path.write_bytes(path.read_bytes()[:-3074])
    with pytest.raises(ValueError, match="CIFAR-100, training: 3070926 bytes: accepted are 3074000, 1000 rows of 3074"):
        incremental_cifar100()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tasks": 0}, "tasks=0"),
        ({"tasks": 21}, "tasks=21: accepted are 1 to 20"),
        ({"train_examples": 0}, "train_examples=0"),
        ({"test_examples": 0}, "test_examples=0"),
        ({"split": "both"}, "split='both': accepted are 'coarse', 'fine'"),
        ({"seed": -1}, "seed=-1"),
    ],
)
def test_it_refuses(arguments: dict[str, int], message: str):
    with pytest.raises(ValueError, match=message):
        incremental_cifar100(**arguments)  # pyright: ignore[reportArgumentType]


def test_cifar10_is_one_task(folders: Folders, batches: Rows, monkeypatch: pytest.MonkeyPatch):
    task = cifar10(seed=1)
    assert task.classes == tuple(range(10))
    assert sorted(as_rows(task, "train")) == sorted(in_file(batches[:100], labels=1))
    assert sorted(as_rows(task, "test")) == sorted(in_file(batches[100:], labels=1))
    assert as_rows(cifar10(seed=1, train_examples=9), "train") == as_rows(task, "train")[:9]
    assert as_rows(cifar10(seed=2), "train") != as_rows(task, "train")
    pack(folders.own / "cifar-10-binary.tar.gz", folders.own / "cifar-10-batches-bin", monkeypatch, "CIFAR10")
    assert same([cifar10(seed=1)], [task])


def test_cifar10_has_a_validation_set_too(batches: Rows):
    task = cifar10(validation=True)
    assert sorted(as_rows(task, "train") + as_rows(task, "test")) == sorted(in_file(batches[:100], labels=1))
    per_class = np.bincount(batches[:100, 0], minlength=10)
    assert torch.bincount(task.test.y, minlength=10).tolist() == (per_class // 10).tolist()
