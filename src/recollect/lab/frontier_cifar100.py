"""How much is kept of Incremental CIFAR-100 in how much storage: the rows of replay of Table 2, and their runs."""

from __future__ import annotations

from dataclasses import replace

from recollect.lab.against_storage import BILLS, AgainstStorage
from recollect.lab.course import CIFAR100
from recollect.lab.table2 import EXPERIMENT as TABLE2
from recollect.lab.table2 import REPLAY

EXPERIMENT = AgainstStorage(
    name="frontier_cifar100",
    shares=TABLE2,
    title="Incremental CIFAR-100: retention against storage, with the same training for every memory",
    answers="Which memory keeps most of photographs in so many bits?",
    course=CIFAR100,
    rows=REPLAY,
    profiles={
        name: replace(profile, rows=tuple(row for row in profile.rows if row.startswith("Replay")))
        for name, profile in TABLE2.profiles.items()
    },
    notes=(BILLS, "Recollections are those of the paper's codec, cosines this project's. Runs are those of Table 2."),
)
