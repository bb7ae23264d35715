"""Several memories or codecs on the same images: `recollect compare`."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Annotated

import torch
import typer

import recollect as rc
from recollect.cli.common import app, remarks, say
from recollect.cli.files import opened
from recollect.data import mnist
from recollect.inspection.waiting import waiting
from recollect.streams.folder import decoded, image_files

STREAMS = {
    "mnist_rotations": rc.streams.mnist_rotations,
    "incremental_cifar100": rc.streams.incremental_cifar100,
    "omniglot": rc.streams.omniglot,
}
CODECS = "raw, pixels:14x14x1 (height, width and bits of a value), jpeg:416 (bits of an item)"


@app.command()
def compare(
    what: Annotated[
        list[str], typer.Argument(metavar="MEMORY...", help=f"memory files, or codecs without learning: {CODECS}")
    ],
    *,
    picture: Annotated[Path, typer.Option("--out", dir_okay=False, help="the picture, a PNG")] = Path("comparison.png"),
    source: Annotated[
        str | None,
        typer.Option(
            "--images",
            help="a folder of images, or with a folder for each class, which are brought to the size that is needed; "
            f"or a stream, of which test images are taken: {', '.join(STREAMS)} (default: MNIST, where its images fit)",
        ),
    ] = None,
    items: Annotated[int, typer.Option(min=1, max=100, help="images at most")] = 10,
) -> None:
    """Draw the same images as several memories would recollect them: originals above, a line for each memory.

    The images are encoded and decoded by the codec of each memory as it is in the file; no file changes. Distortion is
    the mean absolute error on these images, values in [0, 1].
    """
    from recollect.inspection.comparison import compared, draw_comparison  # noqa: PLC0415 - matplotlib is slow to load

    files = [name for name in what if Path(name).is_file()]
    if picture.suffix.lower() != ".png" or picture.resolve() in {Path(name).resolve() for name in files}:
        raise typer.BadParameter(f"{picture}: accepted is another file, with a name that ends in .png")
    memories = {name: opened(Path(name)) for name in files}
    try:
        shape = _shape([memory.codec for memory in memories.values()])
        memories |= {name: rc.Memory(_codec(name, shape), capacity=1) for name in what if name not in memories}
        originals = _images(source, shape, items)
        with waiting(remarks, f"Drawing {picture}"):
            found = [
                compared(label, memories[name].codec, memories[name].bits_per_item, originals)
                for name, label in zip(what, _labels(what), strict=True)
            ]
            draw_comparison(originals, found, picture)
    except (ValueError, OSError) as error:
        raise typer.BadParameter(str(error)) from None
    for each in found:
        say(", ".join(each.facts))
    say(f"{len(originals)} images: {picture}")


def _labels(what: list[str]) -> list[str]:
    """Names of files without their folders, where that tells them apart."""
    short = [Path(name).name for name in what]
    return [own if short.count(own) == 1 else name for own, name in zip(short, what, strict=True)]


def _shape(codecs: list[rc.Codec]) -> tuple[int, int, int]:
    """Of the images that all of them take; that of MNIST if there is none to ask."""
    shapes = {codec.shape for codec in codecs} or {(1, 28, 28)}
    if len(shapes) > 1:
        raise ValueError(f"shapes {', '.join(map(str, sorted(shapes)))}: accepted are memories of images of one shape")
    return shapes.pop()


def _codec(name: str, shape: tuple[int, int, int]) -> rc.Codec:
    if name == "raw":
        return rc.RawPixels(shape)
    if found := re.fullmatch(r"pixels:(\d{1,4})x(\d{1,4})x(\d)", name):
        height, width, bits = map(int, found.groups())
        return rc.ResizedPixels(shape, size=(height, width), bits=bits)
    if found := re.fullmatch(r"jpeg:(\d{1,7})", name):
        return rc.JPEG(shape, bits=int(found[1]))
    raise ValueError(f"{name!r}: accepted are memory files, and {CODECS}")


def _images(source: str | None, shape: tuple[int, int, int], items: int) -> torch.Tensor:
    """Images of the shape, in [0, 1]."""
    if source is not None and Path(source).is_dir():
        return _from_folder(Path(source), shape, items)
    if source is None:
        found = mnist("test").images[:items].float() / 255
    elif source in STREAMS:
        stream = STREAMS[source]()
        pool = torch.cat([task.test[:items][0] for task in stream])
        found = pool[torch.linspace(0, len(pool) - 1, items).long()]  # of all tasks alike
    else:
        raise ValueError(f"images={source!r}: accepted are a folder, and {', '.join(STREAMS)}")
    if found.shape[1:] != shape:
        sizes = "x".join(map(str, found.shape[1:]))
        wanted = "x".join(map(str, shape))
        raise ValueError(f"images of {source or 'MNIST'} are {sizes}: accepted are {wanted}, give a folder of images")
    return found


def _from_folder(folder: Path, shape: tuple[int, int, int], items: int) -> torch.Tensor:
    """Images right in the folder, or, where it has folders alone, of each of these in turn."""
    inside = sorted(place for place in folder.iterdir() if not place.name.startswith("."))
    folders = inside if inside and all(place.is_dir() for place in inside) else [folder]
    in_turn = itertools.chain(*itertools.zip_longest(*map(image_files, folders)))
    loaded = [torch.tensor(decoded(path, shape)) for path in itertools.islice(filter(None, in_turn), items)]
    return torch.stack(loaded).float() / 255
