"""A sheet of what a memory holds when a run ends: originals above their recollections, a tile for each task."""

from __future__ import annotations

import base64
import io
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from PIL import Image
from PIL.PngImagePlugin import PngImageFile, PngInfo

from recollect.memory.records import items_by_task, overview

if TYPE_CHECKING:
    from pathlib import Path

    import recollect as rc

PAIRS = 2  # on a tile
CHANNELS = (1, 3)  # that a picture can have
NAMES = "tasks"  # where a sheet keeps the names of its tasks


@dataclass(frozen=True)
class Tile:
    """Recollections of a task under their originals, as an address that holds the picture itself."""

    task: str
    address: str


def draw_sheet(memory: rc.Memory, stream: list[rc.streams.Task]) -> torch.Tensor:
    """Pixels of 8 bits, C x H x W: of each task that is held two items at most, the oldest and the newest.

    Ids count the examples of the stream.
    """
    images = torch.cat([task.train.images for task in stream])
    tiles = []
    for number in items_by_task(memory):
        batch = overview(memory, PAIRS, task=number)
        pairs = torch.stack([images[batch.ids], (255 * batch.x.cpu()).round().byte()])  # 2 x n x C x H x W
        if len(batch) < PAIRS:
            pairs = torch.cat([pairs, torch.zeros_like(pairs)], dim=1)
        tiles.append(pairs.permute(2, 0, 3, 1, 4).flatten(3).flatten(1, 2))
    return torch.cat(tiles, dim=2)


def write_sheet(memory: rc.Memory, stream: list[rc.streams.Task], path: Path) -> None:
    """Write the sheet as a PNG that names its tasks."""
    if not len(memory) or memory.codec.shape[0] not in CHANNELS:
        return
    names = [stream[number].name for number in items_by_task(memory)]
    notes = PngInfo()
    notes.add_text(NAMES, json.dumps(names))
    pixels = draw_sheet(memory, stream).permute(1, 2, 0).squeeze(-1).numpy()
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, pnginfo=notes, optimize=True)


def read_tiles(path: Path) -> list[Tile]:
    """The tiles of a sheet, none if there is no sheet."""
    if not path.exists():
        return []
    with Image.open(path) as sheet:
        if not isinstance(sheet, PngImageFile) or NAMES not in sheet.text:
            raise ValueError(f"{path}: not a sheet of recollections that a run left; remove it")
        names = json.loads(sheet.text[NAMES])
        width = sheet.width // len(names)
        return [
            Tile(name, _address(sheet.crop((place * width, 0, (place + 1) * width, sheet.height))))
            for place, name in enumerate(names)
        ]


def _address(image: Image.Image) -> str:
    file = io.BytesIO()
    image.save(file, "WEBP", lossless=True)  # a quarter smaller than PNG
    return f"data:image/webp;base64,{base64.b64encode(file.getvalue()).decode()}"
