"""Tables and figures of README and docs: they are those of the recorded runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from recollect.lab.tables import DOCUMENTS, FIGURES, blocks, figures, rendered

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
