"""The pictures of the docs: all of them are drawn by one command, and the bits in them are those of the codes."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import torch

import recollect as rc
from recollect.lab import illustrations
from recollect.lab.tables import figures

ROOT = Path(__file__).parents[1]


def test_every_picture_of_the_docs_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(illustrations.LEARNED_100, "training", {})  # one step a batch
    monkeypatch.setattr(illustrations, "tell", partial(illustrations.tell, train_examples=10, tasks=2))
    illustrations.main(tmp_path)
    drawn = {path.name for path in tmp_path.iterdir()} | {f"{name}.png" for name in figures(ROOT / "results")}
    assert drawn == {path.name for path in (ROOT / "docs" / "images").iterdir()}


def test_bits_are_those_of_the_code():
    codec = rc.DiscreteAutoencoder((1, 28, 28), variables=8, categories=3)
    codes = torch.randint(0, 3, (5, 8), generator=torch.Generator().manual_seed(0))
    for bits, code in zip(illustrations.bits_of(codes, codec), codes.tolist(), strict=True):
        assert int("".join(map(str, bits)), 2) == int("".join(map(str, code)), 3)


def test_a_mosaic_has_images_from_left_to_right():
    images = torch.arange(5).view(5, 1, 1, 1).expand(5, 1, 2, 3) / 10
    whole = illustrations.mosaic(images, columns=3, gap=1)[0]
    assert whole.shape == (5, 11)
    assert torch.equal(whole[:2, 4:7], images[1, 0])
    assert torch.equal(whole[3:, :3], images[3, 0])
    assert bool((whole[2] == 1).all())
