"""The shelf: a part is made once, by one of many who need it, whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import recollect as rc
from processes import start, wait
from recollect.data import mnist
from recollect.lab import codec_training
from recollect.lab.codec_training import trained
from recollect.lab.shelf import Part, Shelf
from recollect.lab.training import fit

HOW = {"seed": 0, "epochs": 2}


def note_and_make(folder: Path) -> Part:
    """Leaves a trace of being asked, and takes so long that whoever does not wait would make it again."""
    with (folder / "made.txt").open("a") as file:
        file.write("made\n")
    torch.manual_seed(0)
    return Part({"accuracy": 97.5}, {"weight": torch.rand(300, 300) @ torch.rand(300, 300)})


def ask(folder: Path) -> None:
    Shelf(folder).part("teacher", HOW, lambda: note_and_make(folder))


def test_a_part_comes_back_as_it_was_made(tmp_path: Path):
    shelf = Shelf(tmp_path)
    weights = {"a": torch.rand(3, 4), "state": torch.arange(5, dtype=torch.uint8), "view": torch.rand(4, 6)[:, ::2]}
    made = shelf.part("codec", HOW, lambda: Part({"distortion": None, "seconds": 1.5}, weights))
    again = shelf.part("codec", HOW, lambda: pytest.fail("made again"))
    assert again.facts == made.facts == {"distortion": None, "seconds": 1.5}
    assert again.weights.keys() == weights.keys()
    assert all(torch.equal(again.weights[name], weight) for name, weight in weights.items())
    other = shelf.part("codec", HOW | {"seed": 1}, lambda: Part({"seconds": 2}))
    assert other.facts == {"seconds": 2}


def test_those_who_need_it_at_the_same_time_wait_for_one_of_them(tmp_path: Path):
    wait(start(ask, tmp_path, times=2))
    assert (tmp_path / "made.txt").read_text() == "made\n"
    assert len([*tmp_path.glob("*.safetensors")]) == 1


def test_what_fails_on_its_way_leaves_nothing_and_is_made_by_the_next(tmp_path: Path):
    def fails() -> Part:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Shelf(tmp_path).part("teacher", HOW, fails)
    assert [*tmp_path.glob("*.safetensors")] == []
    assert Shelf(tmp_path).part("teacher", HOW, lambda: Part({"ok": 1})).facts == {"ok": 1}
    assert [*tmp_path.glob("*.part")] == []


def test_a_damaged_part_is_named(tmp_path: Path):
    shelf = Shelf(tmp_path)
    shelf.part("teacher", HOW, lambda: Part({}, {"weight": torch.rand(9)}))
    path = shelf.path("teacher", HOW)
    path.write_bytes(path.read_bytes()[:30])
    with pytest.raises(ValueError, match=rf"{path.name}: not a part that runs share"):
        shelf.part("teacher", HOW, lambda: Part({}))


def test_without_a_folder_everything_is_made_anew():
    made: list[int] = []
    for _ in range(2):
        Shelf().part("teacher", HOW, lambda: made.append(1) or Part({}))
    assert len(made) == 2


def test_the_learning_rate_falls_along_half_a_cosine():
    model = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.zeros_(model.weight)
    seen, at = [], []

    def loss(rows: torch.Tensor) -> torch.Tensor:
        seen.append(rows)
        at.append(model.weight.item())
        return -model.weight.sum()

    fit(model, loss, 10, epochs=2, learning_rate=0.1, batch_size=4, seed=0)
    assert [len(rows) for rows in seen] == [4, 4, 2] * 2
    assert sorted(torch.cat(seen[:3]).tolist()) == sorted(torch.cat(seen[3:]).tolist()) == list(range(10))
    steps = torch.tensor([*at, model.weight.item()]).diff()  # Adam steps by its rate while gradients are the same
    expected = 0.1 * (1 + torch.cos(torch.arange(6) / 6 * torch.pi)) / 2
    assert torch.allclose(steps, expected, atol=1e-6)


def test_a_codec_from_the_shelf_is_the_one_that_was_trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    images = mnist("train").images[:100]

    def make() -> tuple[rc.DiscreteAutoencoder, dict[str, float]]:
        codec = rc.DiscreteAutoencoder((1, 28, 28), 8, 2, seed=3)
        facts = trained(codec, images, "MNIST", epochs=2, learning_rate=1e-2, seed=3, shelf=Shelf(tmp_path))
        return codec, facts

    codec, facts = make()
    monkeypatch.setattr(codec_training, "fit", lambda *_, **__: pytest.fail("trained again"))
    again, known = make()
    assert known == facts
    x = images.float() / 255
    codes = codec.encode(x)  # drawn at random, from a state that was kept as well
    assert torch.equal(codes, again.encode(x))
    assert torch.equal(codec.decode(codes), again.decode(codes))
    untrained = rc.DiscreteAutoencoder((1, 28, 28), 8, 2, seed=3)
    error = (untrained.decode(untrained.encode(x)) - x).abs().mean()
    assert facts["distortion"] < error
