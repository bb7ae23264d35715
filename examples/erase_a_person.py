"""A person asks to be forgotten: their images go from the memory at once, and from its file with the next commit.

Run it with `python examples/erase_a_person.py`. Each example gets an id when it is written, and you note whose it is.
The bytes of the file are searched for the person's images before and after.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import torch

import recollect as rc

PEOPLE, EACH, SHAPE = ("Ada", "Blaise", "Carl"), 40, (1, 16, 16)


def main(folder: Path) -> None:
    """Write, commit to ``folder``, erase, commit again, and look for what is left."""
    images = {name: torch.randint(256, (EACH, *SHAPE), dtype=torch.uint8) for name in PEOPLE}
    memory = rc.Memory(rc.RawPixels(SHAPE), capacity=200, classes=2, tasks=1)
    whose: dict[str, list[int]] = {}
    for name, own in images.items():
        ids = memory.write(own.float() / 255, y=torch.arange(EACH) % 2)
        whose[name] = ids.tolist()
    path = folder / "people.rec"
    memory.commit(path)
    report("Before", memory, path, images, whose)

    gone = memory.forget(ids=whose["Blaise"])
    memory.commit(path)
    print(f"Erased {gone} images.")
    report("After", memory, path, images, whose)
    line = rc.Memory.open(path).audit[-1]
    print(f"The audit says that {line.items} were erased by {line.rule} at {line.time}, and not which.")


def report(
    when: str, memory: rc.Memory, path: Path, images: dict[str, torch.Tensor], whose: dict[str, list[int]]
) -> None:
    """How many images of each person the memory holds, and of how many the file has any piece of 64 bytes."""
    content, held = path.read_bytes(), set(memory.ids.tolist())
    print(f"{when}:")
    for name, own in images.items():
        found = sum(any(piece.numpy().tobytes() in content for piece in image.flatten().split(64)) for image in own)
        print(f"  {name:7} {len(held & {*whose[name]}):3} in memory, {found:3} in the file")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(Path(sys.argv[1] if len(sys.argv) > 1 else temporary))
