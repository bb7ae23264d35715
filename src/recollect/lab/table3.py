"""Table 3 of the paper: Incremental CIFAR-100 in a total storage of 200 images, in which the codec counts, too.

A codec of 76x2 takes 196 images by itself and leaves room for 1392 items. So small a codec has to know other images
before the stream begins: CIFAR-10, without labels.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import recollect as rc
from recollect.lab.continual import Continual, ContinualRow
from recollect.lab.course import CIFAR100
from recollect.lab.memories import real
from recollect.lab.table2 import AVERAGING, WARM_UP, gem, replay
from recollect.lab.table2 import EXPERIMENT as TABLE2

if TYPE_CHECKING:
    from recollect.lab.experiment import Settings

STORAGE, ITEMS, CANDIDATES = 200, 1392, 50
ICARL: Settings = {"codec": rc.RawPixels, "items": STORAGE + CANDIDATES, "admission": "chosen"}


def small(learning_rate: float, paper_rate: float, *, transfer: bool) -> Settings:
    """Recollections of the codec that fits, as it is or after 20 passes over CIFAR-10; 100 in the paper."""
    training = {"steps": 1, "learning_rate": learning_rate, "most": 10}
    return {
        "codec": rc.DiscreteAutoencoder,
        "code": {"variables": 76, "categories": 2},
        "items": ITEMS,
        "training": training if transfer else training | {"warm_up": WARM_UP},
        "paper_training": {"steps": 1, "learning_rate": paper_rate},
        "pretraining": {"passes": 20} if transfer else {},
        "pretraining_in": {"quick": {"passes": 5, "examples": 10_000}, "paper": {"passes": 100}} if transfer else {},
    }


def renamed(row: ContinualRow, name: str) -> ContinualRow:
    """The row under the paper's name in this table, where GEM has one memory strength in the paper."""
    paper = row.paper_settings | ({"memory_strength": 0.1} if row.learner is rc.GEM else {})
    return replace(row, name=name, paper_settings=paper)


EXPERIMENT = Continual(
    name="table3",
    title="Table 3: Incremental CIFAR-100 in a total storage of 200 images",
    answers="Do recollections win even if their codec is counted?",
    course=CIFAR100,
    shares=TABLE2,
    rows=(
        renamed(replay("Real Storage", STORAGE, 43.0, real(STORAGE)), "Replay Real Storage"),
        renamed(
            replay("Recollections", STORAGE, 43.7, small(1e-3, 1e-3, transfer=False)),
            "Replay Recollections, No Transfer",
        ),
        renamed(
            replay("Recollections", STORAGE, 49.7, small(3e-4, 3e-4, transfer=True)),
            "Replay Recollections, CIFAR-10 Transfer",
        ),
        renamed(gem("Real Storage", STORAGE, 48.7, real(STORAGE)), "GEM Real Storage"),
        renamed(
            gem("Recollections", STORAGE, 43.7, small(1e-3, 1e-3, transfer=False)),
            "GEM Recollections, No Transfer",
        ),
        renamed(
            gem("Recollections", STORAGE, 54.2, small(3e-4, 1e-4, transfer=True)),
            "GEM Recollections, CIFAR-10 Transfer",
        ),
        ContinualRow(
            name="iCaRL",
            storage=STORAGE,
            paper=43.6,
            learner=rc.ICaRL,
            settings={
                "learning_rate": 0.03,
                "strength": 1.0,
                "exemplars": STORAGE,
                "memory_batch": 5,
                "averaging": AVERAGING,
            },
            paper_settings={"averaging": 0.0},
            seeds=1,
            **ICARL,
        ),
    ),
    profiles={
        name: replace(profile, rows=("Replay",) if name == "quick" else ()) for name, profile in TABLE2.profiles.items()
    },
    notes=(
        "Storage, in images, is that of codes; with its codec a row of recollections takes 200 in all.",
        f"iCaRL keeps {STORAGE} images, and {CANDIDATES} candidates of the current task to choose from.",
    ),
)
