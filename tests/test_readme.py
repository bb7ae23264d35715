"""Tables and figures of README and docs: they are those of the recorded runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from recollect.lab import table1
from recollect.lab.tables import DOCUMENTS, FIGURES, block, blocks, figures, recorded, rendered

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    return blocks(ROOT / "results")


@pytest.mark.parametrize("name", DOCUMENTS)
def test_tables_are_those_of_the_recorded_runs(name: str, texts: dict[str, str]):
    document = (ROOT / name).read_text()
    assert rendered(document, texts) == document, "run `make tables`"


def test_every_table_has_a_place(texts: dict[str, str]):
    documents = "".join((ROOT / name).read_text() for name in DOCUMENTS)
    for name in texts:
        assert f"<!-- {name} -->" in documents
        assert f"<!-- /{name} -->" in documents


def test_figures_are_those_of_the_recorded_runs():
    for name, (_, drawn_from) in figures(ROOT / "results").items():
        with Image.open(FIGURES / f"{name}.png") as picture:
            assert picture.info["Description"] == drawn_from, f"{name}: run `make tables`"


def test_rows_with_fewer_seeds_are_named(tmp_path: Path):
    kept = Path("table1", "standard")
    for row, seeds in {"online": 3, "replay-real-storage-100": 2}.items():
        (tmp_path / kept / row).mkdir(parents=True)
        for seed in range(seeds):
            name = Path(row, f"seed{seed}.json")
            (tmp_path / kept / name).write_text((ROOT / "results" / kept / name).read_text())
    text = block(table1.EXPERIMENT, *recorded(table1.EXPERIMENT, tmp_path))
    assert "of 2 to 3 seeds" in text
    assert "2 of 3 seeds so far: Replay Real Storage 100. Not yet run: " in text
    assert ", EwC, " in text
    found, missing = recorded(table1.EXPERIMENT, tmp_path)
    alone = [summary for summary in found if summary.row.name != "Online"]
    assert "2 of 3 seeds so far. Not yet run" in block(table1.EXPERIMENT, alone, missing)  # that is all there is
