"""A run that is to be made: a row of an experiment with a seed, where, and what it may go on from."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic

import torch

from recollect.lab.environment import environment
from recollect.lab.experiment import P, R
from recollect.lab.shelf import Shelf

if TYPE_CHECKING:
    from pathlib import Path

    from recollect.lab.experiment import Experiment


CPU = torch.device("cpu")
NOTHING_KEPT = Shelf()


@dataclass(frozen=True, kw_only=True)
class Job(Generic[R, P]):
    """All that a run is made from."""

    experiment: Experiment[R, P, Any]
    profile: P
    row: R
    seed: int
    validation: bool = False  # measure on held-out training data
    device: torch.device = CPU
    saved: Path | None = None  # a file that a stopped run goes on from
    sheet: Path | None = None  # a picture of what its memory holds in the end
    diary: Path | None = None  # a folder for TensorBoard
    shelf: Shelf = NOTHING_KEPT  # of what runs share
    number: int = 0  # among those that are made together

    @property
    def title(self) -> str:
        """The row and its seed."""
        return f"{self.row.name}, seed {self.seed}"

    @property
    def described(self) -> dict[str, Any]:
        """What tells this run from others, in plain values."""
        settings = json.loads(json.dumps(self.row.described))
        return {"amounts": self.profile.amounts, "seed": self.seed, "settings": settings, "torch": torch.__version__}

    @property
    def recorded(self) -> dict[str, Any]:
        """What is recorded of a run of any kind."""
        kept = self.experiment.kept(self.row, self.profile)
        return {
            "experiment": kept.experiment,
            "profile": self.profile.name,
            "row": self.row.name if self.validation else kept.row,
            "seed": self.seed,
            "validation": self.validation,
            "amounts": self.profile.amounts,
            "settings": self.row.described,
            "environment": environment() | {"device": str(self.device)},
        }

    @property
    def cost(self) -> float:
        """Expected seconds of one core."""
        return self.experiment.cost(self.profile, self.row)

    @property
    def steps(self) -> int:
        """That are reported."""
        return self.experiment.steps(self.profile, self.row)


AnyJob = Job[Any, Any]
