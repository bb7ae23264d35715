"""Streams of a user's own images: against the images that they were made of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from recollect.streams import class_names, from_arrays, from_dataset, from_folder, progress
from recollect.streams.task import Examples

RNG = np.random.default_rng(0)
SHAPE = (3, 8, 10)
IMAGES = RNG.integers(0, 256, (60, *SHAPE), dtype=np.uint8)
LABELS = np.arange(60) % 6


def same(examples: Examples, rows: list[int]) -> bool:
    return np.array_equal(examples.images.numpy(), IMAGES[rows]) and examples.y.tolist() == LABELS[rows].tolist()


def rows_of(examples: Examples) -> list[int]:
    """Which of the images these are."""
    places = {image.tobytes(): row for row, image in enumerate(IMAGES)}
    rows = [places[image.numpy().tobytes()] for image in examples.images]
    assert examples.y.tolist() == LABELS[rows].tolist()
    return rows


def of_classes(*groups: list[int]) -> list[list[int]]:
    return [[row for row in range(60) if row % 6 in group] for group in groups]


ROWS_EACH = {
    "none": (None, [[*range(60)]], ["all"]),
    "number": (3, of_classes([0, 1], [2, 3], [4, 5]), ["classes 0, 1", "classes 2, 3", "classes 4, 5"]),
    "uneven": (4, of_classes([0, 1], [2, 3], [4], [5]), ["classes 0, 1", "classes 2, 3", "classes 4", "classes 5"]),
    "groups": ([[5, 0], [3]], of_classes([5, 0], [3]), ["classes 5, 0", "classes 3"]),
    "numbers": (
        np.arange(60) // 24 * 7,
        [[*range(24)], [*range(24, 48)], [*range(48, 60)]],
        ["task 0", "task 7", "task 14"],
    ),
}


@pytest.mark.parametrize("name", ROWS_EACH)
def test_each_task_has_its_examples_and_a_share_of_each_class_is_held_out(name: str):
    tasks, expected, titles = ROWS_EACH[name]
    stream = from_arrays(IMAGES, LABELS, tasks=tasks, test_share=0.3)
    assert [task.name for task in stream] == titles
    for task, rows in zip(stream, expected, strict=True):
        trained, tested = rows_of(task.train), rows_of(task.test)
        assert sorted(trained + tested) == rows
        assert task.classes == tuple(sorted({*LABELS[rows].tolist()}))
        for label in task.classes:
            count = sum(LABELS[row] == label for row in rows)
            assert sum(LABELS[row] == label for row in tested) == max(1, round(0.3 * count))
        as_given = name in {"none", "numbers"}  # shuffled where tasks are of classes
        assert (trained == sorted(trained)) == as_given
        assert tested == sorted(tested) or not as_given


def test_the_order_is_that_which_is_asked_for():
    (mixed,), (same_again,), (other,) = (from_arrays(IMAGES, LABELS, shuffle=True, seed=seed) for seed in (0, 0, 1))
    assert rows_of(mixed.train) == rows_of(same_again.train) != sorted(rows_of(mixed.train))
    assert rows_of(mixed.test) == rows_of(same_again.test) != sorted(rows_of(mixed.test))
    assert {*rows_of(mixed.test)} != {*rows_of(other.test)}
    for task in from_arrays(IMAGES, LABELS, tasks=2, shuffle=False):
        assert rows_of(task.train) == sorted(rows_of(task.train))


def test_test_examples_that_are_given_are_those_tested_on():
    train, test = (IMAGES[:30], LABELS[:30]), (IMAGES[30:], LABELS[30:])
    (whole,) = from_arrays(*train, test=test)
    assert same(whole.train, [*range(30)])
    assert same(whole.test, [*range(30, 60)])
    groups = from_arrays(*train, tasks=[[1], [4, 2]], test=test)
    assert [sorted(rows_of(task.test)) for task in groups] == [
        [row for row in range(30, 60) if row % 6 in classes] for classes in ([1], [2, 4])
    ]
    numbers = from_arrays(*train, tasks=[0] * 10 + [1] * 20, test=test, test_tasks=[1, 0] * 15)
    assert [rows_of(task.test) for task in numbers] == [[*range(31, 60, 2)], [*range(30, 60, 2)]]
    (untested,) = from_arrays(*train, test_share=0)
    assert (len(untested.train), len(untested.test)) == (30, 0)


@pytest.mark.parametrize("two", [np.array(2), torch.tensor(2), np.int64(2)])
def test_a_number_of_tasks_may_be_of_any_kind(two: Any):
    names = [task.name for task in from_arrays(IMAGES, LABELS, tasks=two)]
    assert names == ["classes 0, 1, 2", "classes 3, 4, 5"]


def test_what_is_tested_on_is_images_and_labels():
    with pytest.raises(TypeError, match="test is ndarray: accepted is a pair, images and labels"):
        from_arrays(np.zeros((4, 5, 5)), [0, 1] * 2, test=np.zeros((2, 5, 5)))  # pyright: ignore[reportArgumentType]


def test_groups_may_be_of_any_kind():
    groups: list[Any] = [{4, 1}, np.array([0]), torch.tensor([2, 5])]
    assert [set(task.classes) for task in from_arrays(IMAGES, LABELS, tasks=groups)] == [{4, 1}, {0}, {2, 5}]


def test_maps_of_many_channels_may_be_small():
    (task,) = from_arrays(np.zeros((60, 16, 4, 4)), LABELS, test_share=0)
    assert task.train.images.shape == (60, 16, 4, 4)


KINDS: dict[str, Callable[[], Any]] = {
    "float": lambda: IMAGES / 255,
    "half": lambda: (IMAGES / 255).astype(np.float16),
    "tensor": lambda: torch.from_numpy(IMAGES),
    "float tensor": lambda: torch.from_numpy(IMAGES).float() / 255,
    "channels last": lambda: IMAGES.transpose(0, 2, 3, 1),
    "read-only": lambda: np.frombuffer(IMAGES.tobytes(), np.uint8).reshape(IMAGES.shape),
}


@pytest.mark.parametrize("kind", KINDS)
def test_images_of_every_kind_are_the_same_8_bit_images(kind: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("recollect.streams.arrays.CHUNK", 7)
    (task,) = from_arrays(KINDS[kind](), LABELS, test_share=0)
    assert same(task.train, [*range(60)])


def test_grey_images_have_one_channel():
    (task,) = from_arrays(IMAGES[:, 0], LABELS, test_share=0)
    assert np.array_equal(task.train.images.numpy(), IMAGES[:, :1])


@given(st.lists(st.integers(0, 4), min_size=1, max_size=60), st.floats(0.01, 0.99), st.integers(0, 5))
def test_every_class_is_trained_on_and_tested_on(labels: list[int], share: float, seed: int):
    pairs = labels * 2  # at least two of each
    (task,) = from_arrays(np.zeros((len(pairs), 1, 1)), pairs, test_share=share, seed=seed)
    assert len(task.train) + len(task.test) == len(pairs)
    assert {*task.train.y.tolist()} == {*task.test.y.tolist()} == {*labels}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"images": IMAGES.astype(np.int64)}, "images are int64: accepted are uint8, and floats"),
        ({"images": IMAGES.astype(np.float32)}, "values from 0.0 to 255.0: accepted are floats in"),
        ({"images": IMAGES * np.nan}, "values from nan"),
        ({"images": IMAGES[0, 0]}, "images have shape .8, 10.: accepted are n x C x H x W"),
        ({"images": IMAGES[:0], "labels": []}, "shape .0, 3, 8, 10.: accepted"),
        ({"labels": LABELS[:59]}, "labels has shape .59,.: accepted are one integer or 60"),
        ({"labels": LABELS - 1}, "labels has the value -1"),
        ({"labels": LABELS / 2}, "labels has type float64"),
        ({"tasks": 7}, "tasks=7: accepted are 1 to 6, as many as there are classes"),
        ({"tasks": 0}, "tasks=0"),
        ({"tasks": [[0, 1], [1]]}, "each class in one of them"),
        ({"tasks": [[0], []]}, "groups of one class or more"),
        ({"tasks": [[0, 9]]}, "tasks has the class 9: accepted are those of the examples"),
        ({"tasks": [0, 1]}, "tasks has shape .2,.: accepted are one integer or 60"),
        ({"tasks": range(60)}, "class 0 has a single example in its task"),
        ({"tasks": LABELS, "test": (IMAGES, LABELS)}, "test_tasks=None: accepted is a number for each test example"),
        ({"tasks": LABELS, "test": (IMAGES, LABELS), "test_tasks": [0] * 60}, "nothing to test 'task 1' on"),
        ({"test": (IMAGES[..., 1:], LABELS)}, "test images have shape .3, 8, 9.: accepted is .3, 8, 10."),
        ({"tasks": 2, "test": (IMAGES, LABELS + 1)}, "test examples have the class 6: accepted are those trained on"),
        ({"tasks": LABELS, "test": (IMAGES, LABELS), "test_tasks": LABELS + 1}, "test_tasks has the value 6"),
        ({"tasks": 2, "test": (IMAGES, LABELS), "test_tasks": LABELS}, "test_tasks is given: accepted is none"),
        ({"tasks": LABELS, "test_tasks": LABELS}, "test_tasks is given: accepted is none"),
        ({"tasks": [[0.9], [1.7]]}, "'float' object cannot be interpreted as an integer"),
        ({"images": np.zeros((60, 8, 10, 4))}, "shape .8, 10, 4. seem to have 4 channels, transparency among them"),
        ({"test_share": 1.0}, "test_share=1.0: accepted"),
        ({"seed": -1}, "seed=-1"),
    ],
)
def test_what_is_refused(arguments: dict[str, Any], message: str):
    with pytest.raises((ValueError, TypeError), match=message):
        from_arrays(**{"images": IMAGES, "labels": LABELS, **arguments})


# Folders.


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two classes of ten images of the right size; the names of the files are not in the order of their numbers."""
    for row in range(20):
        place = tmp_path / "animals" / ("cat", "ant")[row % 2]
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(IMAGES[row].transpose(1, 2, 0)).save(place / f"{99 - row}.png")
    return tmp_path / "animals"


def test_a_folder_has_its_classes_and_files_by_name(folder: Path):
    (folder / "cat" / "notes.txt").write_text("not an image, nor named like one")
    (folder / "cat" / "._12.png").write_bytes(b"as other systems leave them")
    (folder / ".cache").mkdir()
    assert class_names(folder) == ["ant", "cat"]
    (task,) = from_folder(folder, shape=SHAPE, test_share=0)
    assert np.array_equal(task.train.images.numpy(), IMAGES[[*range(19, 0, -2), *range(18, -1, -2)]])
    assert task.train.y.tolist() == [0] * 10 + [1] * 10


def test_tasks_of_a_folder_are_named_by_their_classes(folder: Path):
    by_name, by_label, halves = (
        from_folder(folder, shape=SHAPE, tasks=tasks) for tasks in ([["cat"], ["ant"]], [[1], [0]], 2)
    )
    assert [task.name for task in by_name] == [task.name for task in by_label] == ["cat", "ant"]
    assert [task.classes for task in by_name] == [(1,), (0,)]
    assert [task.name for task in halves] == ["ant", "cat"]
    assert [(len(task.train), len(task.test)) for task in halves] == [(8, 2), (8, 2)]


def test_a_folder_to_test_on_has_the_labels_of_the_other(folder: Path, tmp_path: Path):
    test = tmp_path / "test" / "cat"
    test.mkdir(parents=True)
    Image.fromarray(IMAGES[30].transpose(1, 2, 0)).save(test / "1.png")
    (task,) = from_folder(folder, shape=SHAPE, test=test.parent)
    assert len(task.train) == 20
    assert task.test.y.tolist() == [1]
    test.rename(test.with_name("cow"))
    with pytest.raises(ValueError, match="has the class 'cow': accepted are 'ant', 'cat'"):
        from_folder(folder, shape=SHAPE, test=test.parent)


GREY = np.array([[0, 85], [170, 255]], np.uint8)


def written(tmp_path: Path, image: Image.Image, name: str, **options: Any) -> Examples:
    place = tmp_path / "set" / "class"
    place.mkdir(parents=True)
    image.save(place / name, **options)
    (task,) = from_folder(place.parent, shape=(1, 2, 2), test_share=0)
    return task.train


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "LA", "P", "I;16", "CMYK"])
def test_every_mode_is_read(mode: str, tmp_path: Path):
    if mode == "I;16":
        image = Image.fromarray(GREY.astype(np.uint16) * 257)
        assert image.mode == mode
    else:
        image = Image.fromarray(GREY).convert(mode)
    found = written(tmp_path, image, "1.tif" if mode == "CMYK" else "1.png")
    assert np.abs(found.images[0, 0].numpy().astype(int) - GREY).max() <= 1  # by the rounding of colours


@pytest.mark.parametrize("values", [(0, 200), (0, 65536), (-1, 300)])
def test_pixels_of_32_bits_and_an_unknown_range_are_refused(values: tuple[int, int]):
    image = Image.fromarray(np.array([values], np.int32))
    with pytest.raises(ValueError, match=f"pixels of 32 bits from {values[0]} to {values[1]}: accepted are 8 or 16"):
        from_dataset(Listed(lambda row: (image, 0)))


def test_what_is_transparent_is_white(tmp_path: Path):
    image = Image.new("RGBA", (2, 2), (10, 20, 30, 0))
    assert written(tmp_path, image, "1.png").images.unique().tolist() == [255]


def test_pictures_are_turned_upright(tmp_path: Path):
    turned = Image.Exif()
    turned[0x0112] = 6  # a quarter turn clockwise shows it upright
    found = written(tmp_path, Image.fromarray(GREY), "1.png", exif=turned)
    assert np.array_equal(found.images[0, 0], np.rot90(GREY, -1))
    wide = np.hstack([GREY, GREY])
    Image.fromarray(wide).save(tmp_path / "wide.png", exif=turned)
    with Image.open(tmp_path / "wide.png") as image:
        (task,) = from_dataset([(image, 0)], test_share=0)
    assert np.array_equal(task.train.images[0, 0], np.rot90(wide, -1))  # in its own shape


@pytest.mark.parametrize("name", ["1.png", "1.jpg"])
def test_large_pictures_are_averaged_down(name: str, tmp_path: Path):
    large = Image.fromarray(GREY.repeat(300, 0).repeat(200, 1))
    found = written(tmp_path, large, name).images[0, 0].numpy().astype(int)
    assert np.abs(found - GREY).max() <= 40  # neighbours count at the edges
    assert np.abs(np.diff(np.sort(found.ravel()))).min() > 30


def test_all_files_that_cannot_be_read_are_named(folder: Path):
    for number, content in enumerate((b"", b"not an image", (folder / "ant" / "98.png").read_bytes()[:60])):
        (folder / "cat" / f"broken{number}.png").write_bytes(content)
    with pytest.raises(ValueError, match="3 of 23 images cannot be read:") as raised:
        from_folder(folder, shape=SHAPE)
    assert [f"broken{number}.png: " in str(raised.value) for number in range(3)] == [True] * 3


def test_a_file_is_read_only_as_an_image(folder: Path):
    """Pillow would have another program draw PostScript, whatever the file is called."""
    (folder / "cat" / "drawn.png").write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\n")
    with pytest.raises(ValueError, match=r"1 of 21 images cannot be read:\n.*drawn.png: cannot identify"):
        from_folder(folder, shape=SHAPE)


def test_a_folder_that_is_not_one_of_classes_is_refused(folder: Path, tmp_path: Path):
    with pytest.raises(FileNotFoundError, match="nowhere is not a folder"):
        from_folder(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="cat has no folders in it"):
        from_folder(folder / "cat")
    with pytest.raises(ValueError, match="animals has no images right in it"):
        from_folder(tmp_path)
    with pytest.raises(ValueError, match="tasks has the class 'cow': accepted are 'ant', 'cat'"):
        from_folder(folder, tasks=[["cow"]])
    with pytest.raises(ValueError, match="accepted are 1 or 3 channels"):
        from_folder(folder, shape=(4, 8, 8))


# Datasets.

ITEMS: dict[str, Callable[[int], Any]] = {
    "tensors": lambda row: (torch.from_numpy(IMAGES[row]).float() / 255, torch.tensor(LABELS[row])),
    "arrays": lambda row: (IMAGES[row].transpose(1, 2, 0), LABELS[row], "more"),
    "pictures": lambda row: {"image": Image.fromarray(IMAGES[row].transpose(1, 2, 0)), "label": int(LABELS[row])},
}


class Listed:
    """A map-style dataset."""

    def __init__(self, item: Callable[[int], Any], rows: range = range(60)) -> None:
        self.item, self.rows = item, rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Any:
        return self.item(self.rows[index])


@pytest.mark.parametrize("kind", ITEMS)
def test_a_dataset_gives_the_stream_of_its_arrays(kind: str):
    given = from_dataset(Listed(ITEMS[kind]), tasks=3)
    expected = from_arrays(IMAGES, LABELS, tasks=3)
    for one, other in zip(given, expected, strict=True):
        assert rows_of(one.train) == rows_of(other.train)
        assert rows_of(one.test) == rows_of(other.test)
    (whole,) = from_dataset(Listed(ITEMS[kind], range(20)), test=Listed(ITEMS[kind], range(40, 60)))
    assert rows_of(whole.train) + rows_of(whole.test) == [*range(20), *range(40, 60)]


@pytest.mark.parametrize("kind", ITEMS)
def test_a_dataset_is_scaled_as_pillow_does(kind: str):
    (task,) = from_dataset(Listed(ITEMS[kind]), shape=(1, 4, 5), test_share=0)
    pictures = (Image.fromarray(image.transpose(1, 2, 0)).convert("L") for image in IMAGES)
    small = [np.asarray(picture.resize((5, 4), Image.Resampling.BILINEAR)) for picture in pictures]
    assert np.array_equal(task.train.images[:, 0].numpy(), np.stack(small))


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (lambda row: {"img": 0, "label": 0}, "items have no 'image': accepted as keys are two of 'img', 'label'"),
        (lambda row: 3, "an item is int: accepted are pairs"),
        (lambda row: (IMAGES[row], "cat"), "item 0 of the dataset: 'str' object"),
        (
            lambda row: (IMAGES[row, :, : 8 - row], 0),
            "item 1 of the dataset has shape .3, 7, 10.: accepted is .3, 8",
        ),
        (lambda row: (IMAGES, 0), "item 0 of the dataset: an image of shape"),
        (lambda row: (IMAGES[row], -1), "label has the value -1"),
    ],
)
def test_items_of_another_kind_are_refused(item: Callable[[int], Any], message: str):
    with pytest.raises((ValueError, TypeError), match=message):
        from_dataset(Listed(item))


def test_a_dataset_without_a_length_is_refused():
    with pytest.raises(TypeError, match="dataset is generator: accepted is one with a length"):
        from_dataset(item for item in range(3))  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="accepted is a whole number of at least 1"):
        from_dataset(Listed(ITEMS["arrays"], range(0)))


def test_who_waits_longer_than_five_seconds_is_told_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    now = iter(np.arange(0, 100, 1.5).tolist())
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(now))
    assert [*progress.counted(range(9), "Reading")] == [*range(9)]
    said = capsys.readouterr().err.splitlines()
    assert said == ["Reading: 3 of 9 images, about 12 s left", "Reading: 7 of 9 images, about 3 s left"]
