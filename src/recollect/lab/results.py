"""Recorded runs: a file each, ``FOLDER/EXPERIMENT/PROFILE/ROW/seedN.json``, written whole or not at all."""

from __future__ import annotations

import json
import math
import os
import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Generic, cast

from recollect.lab.experiment import P, R, U

if TYPE_CHECKING:
    from pathlib import Path

    from recollect.lab.experiment import Experiment, Run


def path_of(folder: Path, experiment: str, profile: str, row: str, seed: int) -> Path:
    """The file of a run.

    >>> from pathlib import Path
    >>> path_of(Path("results"), "table1", "quick", "Replay, 14x14 pixels 100", 2).as_posix()
    'results/table1/quick/replay-14x14-pixels-100/seed2.json'
    """
    return folder / experiment / profile / slug(row) / f"seed{seed}.json"


def kept_at(folder: Path, experiment: Experiment[R, P, U], profile: P, row: R, seed: int) -> Path:
    """The file of a row's run, which may be that of another row that does the same."""
    kept = experiment.kept(row, profile)
    return path_of(folder, kept.experiment, profile.name, kept.row, seed)


def slug(name: str) -> str:
    """A name for a folder.

    >>> slug("Replay, 14x14 pixels 100")
    'replay-14x14-pixels-100'
    """
    return re.sub("[^a-z0-9]+", "-", name.lower()).strip("-")


def sheet_of(path: Path) -> Path:
    """The picture beside the file of a run, for a run that leaves one: the first seed of a row with recollections."""
    return path.with_suffix(".png")


def write(folder: Path, run: Run) -> Path:
    """Write a run. It has its name only once it is whole, so that a stop in between leaves no half file."""
    path = path_of(folder, run.experiment, run.profile, run.row, run.seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}.part")
    exact = {"settings": run.settings, "amounts": run.amounts}  # what `read` compares
    partial.write_text(json.dumps(_rounded(asdict(run)) | exact, indent=1, allow_nan=False) + "\n")
    partial.replace(path)
    return path


def read(folder: Path, experiment: Experiment[R, P, U], profile: P, row: R, seed: int) -> U | None:
    """The recorded run, or None if there is none with the settings of the row and the amounts of the profile."""
    path = kept_at(folder, experiment, profile, row, seed)
    if not path.exists():
        return None
    try:
        run = experiment.kind(**json.loads(path.read_text()))
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: not a recorded run ({error}); remove it to have it run again") from error
    same = run.settings == _plain(row.described) and run.amounts == _plain(profile.amounts)
    return cast("U", run) if same else None


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """As they are once they were written and read."""
    return json.loads(json.dumps(values))


def _rounded(value: Any) -> Any:
    """Numbers to six digits behind the point; what is not a number, as after a codec diverged, is null in JSON."""
    match value:
        case float():
            return round(value, 6) if math.isfinite(value) else None
        case dict():
            return {key: _rounded(part) for key, part in value.items()}
        case list() | tuple():
            return [_rounded(part) for part in value]
        case _:
            return value


@dataclass(frozen=True)
class Summary(Generic[R, U]):
    """A row over its seeds."""

    row: R
    runs: list[U]


def summaries(
    folder: Path, experiment: Experiment[R, P, U], profile: P, rows: list[R], seeds: int | None = None
) -> list[Summary[R, U]]:
    """All rows with recorded runs, of so many seeds or of all that are there."""
    found = []
    for row in rows:
        numbers = _seeds(kept_at(folder, experiment, profile, row, 0).parent) if seeds is None else range(seeds)
        runs = [read(folder, experiment, profile, row, seed) for seed in numbers]
        if kept := [run for run in runs if run is not None]:
            found.append(Summary(row, kept))
    return found


def _seeds(folder: Path) -> list[int]:
    names = (re.fullmatch(r"seed(\d+)\.json", path.name) for path in folder.glob("seed*.json"))
    return sorted(int(name[1]) for name in names if name)
