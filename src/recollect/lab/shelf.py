"""Parts that are long to make, such as a trained teacher: made once, kept as files, shared by all runs that need it."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from filelock import FileLock
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from recollect.lab.experiment import Settings


@dataclass(frozen=True, eq=False)
class Part:
    """What was made: facts in plain values, and weights where others go on with them."""

    facts: dict[str, Any]
    weights: dict[str, torch.Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class Shelf:
    """A folder of parts. Whoever needs one first makes it, while others that need it wait; None keeps nothing.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     shelf = Shelf(pathlib.Path(folder))
    ...     made = [shelf.part("answer", {"seed": 0}, lambda: Part({"is": 42})).facts for _ in range(2)]
    ...     len([*pathlib.Path(folder).glob("answer-*.safetensors")])
    1
    """

    folder: Path | None = None

    def part(self, name: str, how: Settings, make: Callable[[], Part]) -> Part:
        """The part, as it is on the shelf or as ``make`` makes it. ``how`` says all that it depends on."""
        if self.folder is None:
            return make()
        path = self.path(name, how)
        if path.exists():
            return _read(path)
        self.folder.mkdir(parents=True, exist_ok=True)
        with FileLock(path.with_suffix(".lock")):  # freed by the system when its holder ends, however that may be
            if path.exists():
                return _read(path)
            made = make()
            _write(path, made, how)
        return made

    def path(self, name: str, how: Settings) -> Path:
        """The file of a part: what is made in another way, or by another version of PyTorch, is another part."""
        assert self.folder is not None
        text = json.dumps({**how, "torch": torch.__version__}, sort_keys=True)
        return self.folder / f"{name}-{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}.safetensors"


def _write(path: Path, part: Part, how: Settings) -> None:
    """A part has its name only once it is whole, so that a stop in between leaves no half file."""
    partial = path.with_suffix(f".{os.getpid()}.part")
    weights = {name: weight.detach().cpu().contiguous() for name, weight in part.weights.items()}
    save_file(weights, partial, {"how": json.dumps(how), "facts": json.dumps(part.facts, allow_nan=False)})
    partial.replace(path)


def _read(path: Path) -> Part:
    try:
        with safe_open(path, "pt") as file:
            facts = json.loads(file.metadata()["facts"])
            return Part(facts, {name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118 - no mapping
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: not a part that runs share ({error}); remove it to have it made again") from error
