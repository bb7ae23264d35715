"""All experiments by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.lab import (
    compression,
    distillation,
    distillation_active,
    distillation_mlp,
    distillation_omniglot,
    sampling,
    table1,
)

if TYPE_CHECKING:
    from recollect.lab.experiment import AnyExperiment

MODULES = (
    table1,
    compression,
    sampling,
    distillation,
    distillation_mlp,
    distillation_active,
    distillation_omniglot,
)
EXPERIMENTS: dict[str, AnyExperiment] = {module.EXPERIMENT.name: module.EXPERIMENT for module in MODULES}
