"""`recollect compare`: the same images through several codecs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import recollect as rc
from commands import call
from recollect.data import mnist
from recollect.inspection.comparison import COLUMN, LABEL, compared


def committed(codec: rc.Codec, path: Path) -> Path:
    rc.Memory(codec, capacity=5).commit(path)
    return path


def gray(picture: Path, row: int, column: int) -> int:
    """In the middle of an image."""
    with Image.open(picture) as image:
        pixels = np.asarray(image.convert("L"))
    return int(pixels[round(150 * COLUMN * (row + 0.5)), round(150 * (LABEL + COLUMN * (column + 0.5)))])


def test_each_has_its_bits_and_its_distortion_on_mnist(tmp_path: Path):
    codec = rc.ResizedPixels((1, 28, 28), size=(14, 14), bits=1)
    file, picture = committed(codec, tmp_path / "mine.rec"), tmp_path / "picture.png"
    before = file.read_bytes()
    printed, _ = call("compare", file, "raw", "jpeg:416", "pixels:14x14x1", "--items", "4", "--out", picture)
    x = mnist("test").images[:4].float() / 255
    lost = float((codec.decode(codec.encode(x)) - x).abs().mean())
    mine, raw, jpeg, pixels, last = printed.splitlines()
    assert mine == f"mine.rec, 196 bits an item, distortion {lost:.4f}"
    assert raw == "raw, 6,272 bits an item, distortion 0.0000"
    assert jpeg.startswith("jpeg:416, 416 bits an item, distortion 0.0")
    assert pixels == mine.replace("mine.rec", "pixels:14x14x1")
    assert last == f"4 images: {picture}"
    assert file.read_bytes() == before
    with Image.open(picture) as image:
        assert image.size == (round(150 * (LABEL + 4 * COLUMN)), 150 * 5 * COLUMN)


def test_files_of_one_name_are_told_apart(tmp_path: Path):
    files = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        files.append(committed(rc.RawPixels((1, 28, 28)), tmp_path / folder / "memory.rec"))
    printed, _ = call("compare", *files, "--items", "1", "--out", tmp_path / "picture.png")
    assert [line.split(", ")[0] for line in printed.splitlines()[:2]] == [str(file) for file in files]


def test_images_of_a_folder_stand_above_what_is_made_of_them(tmp_path: Path):
    file, picture = (
        committed(rc.ResizedPixels((3, 8, 8), size=(1, 1), bits=1), tmp_path / "mine.rec"),
        tmp_path / "p.png",
    )
    folder = tmp_path / "images"
    folder.mkdir()
    for value in (40, 100, 220):
        Image.new("L", (20, 30), value).save(folder / f"{value:03}.png")
    (folder / "notes.txt").write_text("not an image")
    printed, _ = call("compare", file, "raw", "--images", folder, "--out", picture)
    assert printed.splitlines()[-1] == f"3 images: {picture}"
    shown = [[gray(picture, row, column) for column in range(3)] for row in range(3)]
    assert shown == [[40, 100, 220], [0, 0, 255], [40, 100, 220]]  # one bit is black or white


def test_images_in_folders_of_their_classes_come_in_turn(tmp_path: Path):
    picture, folder = tmp_path / "p.png", tmp_path / "images"
    file = committed(rc.RawPixels((1, 8, 8)), tmp_path / "memory.rec")
    for kind, values in (("ash", (10, 20, 30)), ("elm", (110,))):
        (folder / kind).mkdir(parents=True)
        for value in values:
            Image.new("L", (8, 8), value).save(folder / kind / f"{value:03}.png")
    call("compare", file, "--images", folder, "--items", "3", "--out", picture)
    assert [gray(picture, 0, column) for column in range(3)] == [10, 110, 20]


def test_a_file_that_takes_another_program_to_be_decoded_is_not_opened(tmp_path: Path):
    (tmp_path / "a.png").write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n")
    _, said = call("compare", "raw", "--images", tmp_path, "--out", tmp_path / "b.png", code=2)
    assert "cannot identify image file" in said


def test_images_of_a_stream(tmp_path: Path):
    picture = tmp_path / "p.png"
    printed, _ = call("compare", "raw", "--images", "mnist_rotations", "--items", "3", "--out", picture)
    assert printed.splitlines()[-1] == f"3 images: {picture}"


def test_distortion_is_the_mean_absolute_error():
    x = torch.full((2, 1, 8, 8), 0.75)
    found = compared("half", rc.ResizedPixels((1, 8, 8), size=(8, 8), bits=1), 64, x)
    assert found.distortion == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("absent.rec",), "'absent.rec': accepted are memory files, and raw"),
        (("pixels:99x99x1",), "size=(99, 99): accepted are"),
        (("one.rec", "two.rec"), "shapes (1, 8, 8), (3, 8, 8): accepted are memories of images of one shape"),
        (("one.rec",), "images of MNIST are 1x28x28: accepted are 1x8x8"),
        (("raw", "--images", "elsewhere"), "images='elsewhere': accepted are a folder, and mnist_rotations"),
        (("raw", "--images", "."), "has no images"),
        (("raw", "--out", "p.jpg"), "p.jpg: accepted is another file, with a name that ends in .png"),
    ],
)
def test_mistakes_are_answered(
    arguments: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    committed(rc.RawPixels((1, 8, 8)), tmp_path / "one.rec")
    committed(rc.RawPixels((3, 8, 8)), tmp_path / "two.rec")
    assert message in call("compare", *arguments, code=2)[1]
    assert not (tmp_path / "comparison.png").exists()
