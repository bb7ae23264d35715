"""All experiments by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.lab import (
    ablation,
    ageing,
    codec_transfer,
    compression,
    distillation,
    distillation_active,
    distillation_mlp,
    distillation_omniglot,
    frontier,
    frontier_cifar100,
    frontier_omniglot,
    omniglot,
    retention,
    sampling,
    self_stabilisation,
    table1,
    table2,
    table3,
)

if TYPE_CHECKING:
    from recollect.lab.experiment import AnyExperiment

MODULES = (
    table1,
    table2,
    table3,
    omniglot,
    frontier,
    frontier_cifar100,
    frontier_omniglot,
    ablation,
    retention,
    compression,
    sampling,
    self_stabilisation,
    codec_transfer,
    ageing,
    distillation,
    distillation_mlp,
    distillation_active,
    distillation_omniglot,
)
EXPERIMENTS: dict[str, AnyExperiment] = {module.EXPERIMENT.name: module.EXPERIMENT for module in MODULES}
