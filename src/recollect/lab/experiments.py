"""All experiments by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.lab import codec_transfer, self_stabilisation, table1

if TYPE_CHECKING:
    from recollect.lab.experiment import AnyExperiment

EXPERIMENTS: dict[str, AnyExperiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT for module in (table1, self_stabilisation, codec_transfer)
}
