"""All experiments by name."""

from __future__ import annotations

from recollect.lab import table1

EXPERIMENTS = {module.EXPERIMENT.name: module.EXPERIMENT for module in (table1,)}
