"""How much is kept of Incremental Omniglot in how much storage: its rows with one step a batch, and their runs."""

from __future__ import annotations

from dataclasses import replace

from recollect.lab.against_storage import BILLS, AgainstStorage
from recollect.lab.course import OMNIGLOT
from recollect.lab.omniglot import EXPERIMENT as ALPHABETS

EXPERIMENT = AgainstStorage(
    name="frontier_omniglot",
    shares=ALPHABETS,
    title="Incremental Omniglot: retention against storage, with the same training for every memory",
    answers="Which memory keeps most of drawings in so many bits?",
    course=OMNIGLOT,
    rows=tuple(row for row in ALPHABETS.rows if row.settings.get("steps") == 1 and not row.block),
    profiles={
        name: replace(profile, rows=tuple(row for row in profile.rows if row.startswith("Replay")))
        for name, profile in ALPHABETS.profiles.items()
    },
    notes=(BILLS, "Recollections are those of the paper's codec, sketches this project's. Runs are those of omniglot."),
)
