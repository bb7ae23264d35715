"""What a file keeps beside a memory, and what cannot be opened though nothing in it is damaged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from torch import nn

import recollect as rc
from battery import CODECS, SHAPE, batches, mlp, parameters, replay
from recollect import rebuild
from recollect.memory import file
from recollect.memory.file import MemoryFileError
from recollect.rebuild import rebuildable
from torture import raw, write


def trained() -> rc.Replay:
    learner = replay(CODECS["autoencoder"](), "reservoir")
    for batch in batches():
        learner.observe(*batch)
    return learner


def test_dropout_goes_on_with_the_draws_that_it_would_have_had(path: Path):
    model = nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Linear(144, 10))
    learner = rc.Online(model, learning_rate=0.1)
    learner.observe(*batches()[0])
    learner.save(path)
    for batch in batches(3):
        learner.observe(*batch)
    torch.rand(7)
    loaded = rc.Online.load(path, model=nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Linear(144, 10)))
    for batch in batches(3):
        loaded.observe(*batch)
    assert torch.equal(parameters(loaded), parameters(learner))


def test_saving_changes_nothing_of_what_is_saved(path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rebuild, "_KNOWN", dict(rebuild._KNOWN))
    made: list[rc.Online] = []

    @rebuildable
    class Drawing(rc.Online):
        def __init__(self, model: nn.Module, *, learning_rate: float = 0.1, weight: float = 1.0) -> None:
            super().__init__(model, learning_rate=learning_rate)
            self.weight = weight
            torch.rand(3)
            model.register_forward_hook(lambda *_: made.append(self))

    learner = Drawing(mlp())
    for number in range(3):
        learner.learning_rate, learner.weight = 0.1 / (number + 1), 2.0 * number
        state = torch.get_rng_state()
        learner.save(path)
        assert torch.equal(torch.get_rng_state(), state)
        assert len(learner.model._forward_hooks) == 1
    assert Drawing.load(path).weight == 4


def test_a_memory_that_forgets_leaves_the_learner_in_the_file(path: Path):
    learner = trained()
    learner.save(path, {"batches": 8})
    memory = rc.Memory.open(path)
    gone = memory.forget(task=3)
    memory.commit(path)
    loaded = rc.Replay.load(path)
    assert loaded.progress == {"batches": 8}
    assert torch.equal(parameters(loaded), parameters(learner))
    assert (len(loaded.memory), loaded.memory.audit) == (len(learner.memory) - gone, memory.audit)
    for batch in batches(2):
        loaded.observe(*batch)
    loaded.save(path)


def test_a_memory_that_saw_more_does_not_go_beside_an_older_learner(path: Path):
    learner = trained()
    learner.save(path)
    before = path.read_bytes()
    learner.observe(*batches()[0])
    with pytest.raises(MemoryFileError, match=r"learner, model, optimiser, state as of 24 examples.*has seen 27"):
        learner.memory.commit(path)
    assert path.read_bytes() == before
    learner.memory.commit(path.with_name("other.rec"))
    assert rc.Memory.open(path.with_name("other.rec")).seen == 27
    learner.memory.commit(path.with_name("other.rec"))


def test_what_is_opened_is_gone_on_with_by_patches(path: Path):
    raw(200).commit(path)
    for count in (1, 2):
        memory = rc.Memory.open(path)
        write(memory, 1, Random(count))
        memory.commit(path)
        with file.reading(path) as reader:
            assert (len([*reader.segments()]), len([*reader.patches()])) == (3, count)


def test_commits_without_new_records_leave_the_file_as_long_as_it_was(path: Path):
    memory = raw(200)
    memory.commit(path)
    write(memory, 1, Random(0))
    memory.commit(path)
    length = path.stat().st_size
    for _ in range(60):
        memory.commit(path)
    assert path.stat().st_size == length
    with file.reading(path) as reader:
        assert len([*reader.segments(), *reader.patches()]) == 3 + 1
        assert reader.home.commits == 62
    write(memory, 1, Random(1))  # numbers of patches go on
    memory.commit(path)
    assert rc.Memory.open(path).ids.tolist() == memory.ids.tolist()


class Mine(rc.RawPixels):
    """A codec of one's own."""


def test_a_codec_of_ones_own_is_not_damage(path: Path):
    memory = rc.Memory(Mine(SHAPE), capacity=12)
    memory.write(torch.rand(3, *SHAPE), 0)
    memory.commit(path)
    with pytest.raises(MemoryFileError, match=r"Mine, .* Memory.open\(path, codec=...\)") as caught:
        rc.Memory.open(path)
    assert "damaged" not in str(caught.value)
    assert len(rc.Memory.open(path, codec=Mine(SHAPE))) == 3


MISFITS: dict[str, Callable[[], rc.Codec]] = {
    "another shape": lambda: rc.DiscreteAutoencoder((1, 14, 14), 8, 3),
    "more variables": lambda: rc.DiscreteAutoencoder(SHAPE, 12, 3),
    "more categories": lambda: rc.DiscreteAutoencoder(SHAPE, 8, 4),
    "another class": CODECS["raw"],
    "other weights": lambda: rc.DiscreteAutoencoder(SHAPE, 8, 3, normalised=True),
}


@pytest.mark.parametrize("load", [rc.Memory.open, rc.Learner.load])
@pytest.mark.parametrize("codec", MISFITS.values(), ids=MISFITS)
def test_a_codec_that_does_not_fit_is_not_damage_and_stays_as_it_is(
    codec: Callable[[], rc.Codec], load: Callable[..., object], path: Path
):
    trained().save(path)
    given = codec()
    with pytest.raises(MemoryFileError, match=r"given .*: accepted is") as caught:
        load(path, codec=given)
    assert "damaged" not in str(caught.value)
    weights, before = (each.state_dict() if isinstance(each, nn.Module) else {} for each in (given, codec()))
    assert all(torch.equal(weights[name], before[name]) for name in before)
    load(path, codec=CODECS["autoencoder"]())


def test_a_codec_that_decodes_in_another_way_does_not_fit(path: Path):
    rc.Memory(Mine(SHAPE), capacity=12).commit(path)
    with pytest.raises(MemoryFileError, match=r"is a RawPixels with .* \[1, 12, 12, 144, 256\]: accepted is.* a Mine"):
        rc.Memory.open(path, codec=rc.RawPixels(SHAPE))


def test_a_model_that_does_not_fit_is_not_damage(path: Path):
    trained().save(path)
    with pytest.raises(MemoryFileError, match="the MLP given has other weights than the file") as caught:
        rc.Learner.load(path, model=rc.models.MLP(inputs=144, hidden=(8,)))
    assert "damaged" not in str(caught.value)


class Unmarked(rc.Replay):
    """A learner of one's own."""


class UnmarkedModule(rc.RecollectionModule):
    """A module of one's own."""


@rebuildable
class Marked(rc.Replay):
    """A learner of one's own that a file can tell how to make."""

    def __init__(self, model: nn.Module, module: rc.RecollectionModule, *, mine: int) -> None:
        super().__init__(model, module, batch_size=5)
        self.mine = mine


def test_what_could_not_be_loaded_is_not_saved(path: Path):
    memory = rc.Memory(rc.RawPixels(SHAPE), capacity=12)
    for learner, name in (
        (Unmarked(mlp(), rc.RecollectionModule(memory)), "Unmarked"),
        (rc.Replay(mlp(), UnmarkedModule(memory)), "UnmarkedModule"),
    ):
        with pytest.raises(
            MemoryFileError, match=f"a {name} cannot be built again from a file: accepted .*rebuildable"
        ):
            learner.save(path)
    assert not path.exists()


def test_a_learner_of_ones_own_that_is_marked_goes_on(path: Path, monkeypatch: pytest.MonkeyPatch):
    learner = Marked(mlp(), rc.RecollectionModule(rc.Memory(rc.RawPixels(SHAPE), capacity=12)), mine=7)
    learner.observe(*batches()[0])
    learner.save(path)
    for load in (Marked.load, rc.Replay.load, rc.Learner.load):
        loaded = load(path)
        assert isinstance(loaded, Marked)
        assert (loaded.mine, loaded.batch_size) == (7, 5)
        assert torch.equal(parameters(loaded), parameters(learner))
    monkeypatch.delitem(rebuild._KNOWN, "Marked")  # as where it was not imported
    with pytest.raises(
        MemoryFileError, match=r"holds a Marked, which is not known here, or takes other arguments: accepted are"
    ) as caught:
        rc.Learner.load(path)
    assert "damaged" not in str(caught.value)


@rebuildable
class MarkedCodec(rc.RawPixels):
    """A codec of one's own that a file can tell how to make."""


def test_a_codec_of_ones_own_that_is_marked_need_not_be_given(path: Path, monkeypatch: pytest.MonkeyPatch):
    rc.Memory(MarkedCodec(SHAPE), capacity=12).commit(path)
    assert type(rc.Memory.open(path).codec) is MarkedCodec
    monkeypatch.delitem(rebuild._KNOWN, "MarkedCodec")
    with pytest.raises(MemoryFileError, match="a MarkedCodec, a class of your own: give one made as it was"):
        rc.Memory.open(path)


def test_classes_that_a_file_could_not_tell_how_to_make_are_not_marked():
    class Replay(rc.Replay): ...

    class Many(rc.Replay):
        def __init__(self, *args: Any, mine: int, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)

    with pytest.raises(ValueError, match=r"recollect.learners.replay has a class Replay: accepted is another name"):
        rebuildable(Replay)
    with pytest.raises(ValueError, match="Many takes any args and kwargs: accepted are arguments that have names"):
        rebuildable(Many)
    assert rebuild._KNOWN["Replay"] is rc.Replay
    assert "Many" not in rebuild._KNOWN


def test_a_learner_without_a_memory_is_not_damage(path: Path):
    rc.Online(rc.models.MLP(inputs=144, hidden=(4,))).save(path)
    with pytest.raises(MemoryFileError, match="holds no memory") as caught:
        rc.Memory.open(path)
    assert "damaged" not in str(caught.value)


@rebuildable
class Tied(nn.Sequential):
    """One layer in two places."""

    def __init__(self) -> None:
        layer = nn.Linear(64, 64)
        super().__init__(nn.Flatten(), layer, nn.ReLU(), layer, nn.ReLU(), nn.Linear(64, 10))


def test_tied_weights_stay_tied(path: Path):
    learner = rc.Online(Tied(), learning_rate=0.1)
    learner.observe(torch.rand(5, 1, 8, 8), torch.arange(5))
    learner.save(path)
    again = rc.Online.load(path)
    x = torch.rand(5, 1, 8, 8)
    assert torch.equal(again.model(x), learner.model(x))
    assert again.model[1].weight is again.model[3].weight  # pyright: ignore[reportIndexIssue]


def test_parts_of_a_model_that_stay_in_evaluation_stay_in_it(path: Path):
    def model() -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.BatchNorm1d(144), nn.Linear(144, 10))

    learner = rc.Online(model())
    learner.model[1].eval()  # pyright: ignore[reportIndexIssue]
    learner.save(path)
    loaded = rc.Online.load(path, model=model())
    assert [part.training for part in loaded.model.modules()] == [True, True, False, True]


def test_another_kind_of_small_pictures_does_not_fit(path: Path):
    rc.Memory(rc.ResizedPixels((1, 8, 8), size=(4, 2), bits=1), capacity=3).commit(path)
    with pytest.raises(MemoryFileError, match=r"arguments .*\[2, 4\].*accepted are, as in the file, .*\[4, 2\]"):
        rc.Memory.open(path, codec=rc.ResizedPixels((1, 8, 8), size=(2, 4), bits=1))
    with pytest.raises(TypeError, match="codec is str: accepted is a Codec"):
        rc.Memory.open(path, codec="pixels")  # pyright: ignore[reportArgumentType]


def test_a_part_that_no_file_holds_is_refused_before_anything_is_written(path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(file, "MOST_OF_A_PART", 2000)
    memory = rc.Memory(rc.DiscreteAutoencoder(SHAPE, variables=4, categories=2), capacity=3)
    with pytest.raises(MemoryFileError, match=r"codec has [0-9,]+ bytes: accepted are up to 2,000"):
        memory.commit(path)
    assert not path.exists()


def test_a_device_that_is_not_there_is_not_damage(path: Path):
    trained().save(path)
    with pytest.raises(ValueError, match="device='mps' is not to be had here"):
        rc.Replay.load(path, device="mps")


def test_after_a_commit_that_failed_the_file_is_what_it_was(path: Path, monkeypatch: pytest.MonkeyPatch):
    learner = trained()
    learner.memory.commit(path)
    learner.observe(*batches()[0])

    def full(*_: Any) -> None:
        raise file.sqlite3.OperationalError("disk full")

    with monkeypatch.context() as patched:
        patched.setattr(file, "_write_parts", full)
        with pytest.raises(MemoryFileError, match="disk full"):
            learner.save(path)
    learner.observe(*batches()[1])
    learner.memory.commit(path)  # there is no learner in the file that would be older
    assert rc.Memory.open(path).seen == learner.memory.seen


def test_where_a_file_cannot_be_made_the_reason_is_said(tmp_path: Path):
    memory = trained().memory
    for place, reason in {
        tmp_path: "it is a folder",
        tmp_path / "none" / "memory.rec": "there is no folder .*none",
    }.items():
        with pytest.raises(MemoryFileError, match=reason):
            memory.commit(place)
    memory.commit(tmp_path / "memory.rec")
    (tmp_path / "memory.rec").unlink()
    with pytest.raises(MemoryFileError, match="is not there any more: commit to another one"):
        memory.commit(tmp_path / "memory.rec")
    memory.commit(tmp_path / "another.rec")
