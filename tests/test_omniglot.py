"""Omniglot, from a few drawings in the layouts of the published ones."""

from __future__ import annotations

import hashlib
import io
import shutil
import zipfile
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch
from PIL import Image

from conftest import Folders
from recollect.data import omniglot as files
from recollect.streams import omniglot

# Characters of each alphabet, written in an order that is not the one they are read in.
ALPHABETS = {"images_background": {"Greek": 2, "Arcadian": 3}, "images_evaluation": {"Tengwar": 2, "Angelic": 1}}
ORDER = ["Arcadian", "Greek", "Angelic", "Tengwar"]
CLASSES = [(0, 1, 2), (3, 4), (5,), (6, 7)]

Ink = npt.NDArray[np.bool_]


def png(ink: Ink) -> bytes:
    """A drawing as it is published: one bit a pixel, ink black."""
    file = io.BytesIO()
    Image.fromarray(~ink).save(file, "PNG")
    return file.getvalue()


@pytest.fixture
def drawn(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> npt.NDArray[np.bool_]:
    """A small Omniglot, written as folders; its ink, characters x 20 x 105 x 105 in the order of the labels."""
    rng = np.random.default_rng(0)
    ink = {}
    for part, alphabets in ALPHABETS.items():
        for alphabet, count in alphabets.items():
            ink[alphabet] = rng.random((count, 20, 105, 105)) < rng.random((count, 20, 1, 1))
            for character in range(count):
                folder = folders.own / "omniglot" / part / alphabet / f"character{character + 1:02d}"
                folder.mkdir(parents=True)
                for drawer in range(20):
                    (folder / f"0{700 + character}_{drawer + 1:02d}.png").write_bytes(
                        png(ink[alphabet][character, drawer])
                    )
    counts = {part: sum(alphabets.values()) for part, alphabets in ALPHABETS.items()}
    monkeypatch.setattr(files, "CHARACTERS", counts)
    return np.concatenate([ink[alphabet] for alphabet in ORDER])


def pack(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folders as the published archives, the folders themselves gone."""
    archives = {}
    for part in ALPHABETS:
        path = folder / f"{part}.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("__MACOSX/._nothing.png", b"")
            for file in (folder / part).rglob("*"):  # folders too
                archive.write(file, f"{part}/{file.relative_to(folder / part).as_posix()}")
        shutil.rmtree(folder / part)
        md5 = hashlib.md5(path.read_bytes()).hexdigest()
        archives[part] = files.ARCHIVES[part]._replace(md5=md5)
    monkeypatch.setattr(files, "ARCHIVES", archives)


def overlaps() -> npt.NDArray[np.float64]:
    """How much of each of 105 pixels lies in each of 28, as lengths on a line."""
    width = 105 / 28
    first, last = np.arange(28)[:, None] * width, np.arange(1, 29)[:, None] * width
    return np.clip(np.minimum(last, np.arange(1, 106)) - np.maximum(first, np.arange(105)), 0, None) / width


def test_pixels_are_the_share_of_ink_in_their_area(drawn: Ink):
    images, alphabets = files.omniglot()
    assert images.shape == (8, 20, 28, 28)
    assert images.dtype == torch.uint8
    assert alphabets == np.repeat(ORDER, [3, 2, 1, 2]).tolist()
    expected = 255 * np.einsum("ij,cdjk,lk->cdil", overlaps(), drawn, overlaps())
    assert np.abs(images.numpy() - expected).max() <= 0.5 + 1e-9  # rounded to 8 bits
    assert files.averaged(np.ones((1, 105, 105), bool)).min() == 255  # ink is bright
    assert files.averaged(np.zeros((1, 105, 105), bool)).max() == 0


def test_the_tasks_are_the_alphabets(drawn: Ink):
    stream = omniglot()
    images, _ = files.omniglot()
    assert [task.name for task in stream] == ORDER
    assert [task.classes for task in stream] == CLASSES
    for task in stream:
        assert task.train.images.shape == (18 * len(task.classes), 1, 28, 28)
        assert task.test.images.shape == (2 * len(task.classes), 1, 28, 28)
        for label in task.classes:
            parts = [part.images[part.y == label] for part in (task.train, task.test)]
            assert [len(part) for part in parts] == [18, 2]
            together = {image.numpy().tobytes() for image in torch.cat(parts)}
            assert together == {image.numpy().tobytes() for image in images[label]}


def test_the_seed_draws_the_order_of_training_and_nothing_else(drawn: Ink):
    first, again, other = omniglot(1), omniglot(1), omniglot(2)
    for one, same, different in zip(first, again, other, strict=True):
        assert torch.equal(one.train.images, same.train.images)
        assert torch.equal(one.train.y, same.train.y)
        assert not torch.equal(one.train.images, different.train.images)
        assert sorted(map(bytes, one.train.images.flatten(1).numpy())) == sorted(
            map(bytes, different.train.images.flatten(1).numpy())
        )
        assert torch.equal(one.test.images, different.test.images)


def test_less_of_a_stream_is_its_beginning(drawn: Ink):
    for one, two in zip(omniglot(), omniglot(tasks=2, train_examples=25, test_examples=3), strict=False):
        assert len(two.train) == 25
        assert len(two.test) == 3
        assert torch.equal(two.train.images, one.train.images[:25])
        assert torch.equal(two.test.y, one.test.y[:3])
        assert two.classes == one.classes
    assert len(omniglot(tasks=2)) == 2


def test_validation_holds_out_two_training_images_of_each_character(drawn: Ink):
    for task, other in zip(omniglot(validation=True), omniglot(), strict=True):
        train, held, allowed, test = (
            set(map(bytes, part.images.flatten(1).numpy())) for part in (task.train, task.test, other.train, other.test)
        )
        assert train | held == allowed
        assert not train & held
        assert not held & test
        assert torch.bincount(task.test.y)[list(task.classes)].tolist() == [2] * len(task.classes)


def test_archives_serve_as_well_as_folders(folders: Folders, drawn: Ink, monkeypatch: pytest.MonkeyPatch):
    images, alphabets = files.decoded()
    pack(folders.own / "omniglot", monkeypatch)
    again, same = files.decoded()
    assert torch.equal(again, images)
    assert same == alphabets


def test_images_are_decoded_once(folders: Folders, drawn: Ink):
    before = files.omniglot()
    shutil.rmtree(folders.own / "omniglot")
    after = files.omniglot()
    assert torch.equal(after.images, before.images)
    assert after.alphabets == before.alphabets
    assert [path.name for path in folders.cache.iterdir()] == ["omniglot-28x28.npz"]


@pytest.mark.parametrize("content", [b"", b"PK\3\4 cut off", None])
def test_a_cache_that_is_not_whole_is_made_again(folders: Folders, drawn: Ink, content: bytes | None):
    before = files.omniglot()
    (kept,) = folders.cache.iterdir()
    whole = kept.stat().st_size
    if content is None:
        np.savez(kept, images=before.images[:3].numpy(), alphabets=before.alphabets[:3])
    else:
        kept.write_bytes(content)
    assert torch.equal(files.omniglot().images, before.images)
    assert kept.stat().st_size == whole


def test_a_cache_that_cannot_be_written_is_done_without(folders: Folders, drawn: Ink):
    folders.cache.write_text("in the place of a folder")
    assert len(files.omniglot().images) == sum(files.CHARACTERS.values())


def test_drawings_that_are_missing_or_of_another_size_are_noticed(folders: Folders, drawn: Ink):
    folder = folders.own / "omniglot" / "images_evaluation" / "Angelic" / "character01"
    (folder / "0700_20.png").write_bytes(png(np.ones((28, 28), bool)))
    with pytest.raises(ValueError, match=r"an image of \(28, 28\) pixels: accepted are those of \(105, 105\)"):
        omniglot()
    (folder / "0700_20.png").unlink()
    with pytest.raises(ValueError, match="images_evaluation/Angelic/character01 has 19 images: accepted are 20"):
        omniglot()
    shutil.rmtree(folder)
    with pytest.raises(ValueError, match="images_evaluation has 2 characters: accepted are 3"):
        omniglot()
    assert not folders.cache.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tasks": 0}, "tasks=0"),
        ({"tasks": 51}, "tasks=51: accepted are 1 to 50"),
        ({"train_examples": 0}, "train_examples=0"),
        ({"test_examples": 0}, "test_examples=0"),
    ],
)
def test_it_refuses(arguments: dict[str, int], message: str):
    with pytest.raises(ValueError, match=message):
        omniglot(**arguments)  # pyright: ignore[reportArgumentType]
