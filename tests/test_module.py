"""The recollection module, against a literal reading of the first phase of Algorithm 1."""

from __future__ import annotations

import copy

import pytest
import torch

from recollect import Codec, DiscreteAutoencoder, Memory, RawPixels, RecollectionModule, ResizedPixels, Sketch

SHAPE = (1, 12, 12)


def memory_of(codec: Codec, items: int = 30) -> Memory:
    memory = Memory(codec, capacity=20, classes=10, tasks=1)
    if items:
        generator = torch.Generator().manual_seed(0)
        memory.write(torch.rand(items, *SHAPE, generator=generator), torch.arange(items) % 10)
    return memory


def weights(codec: Codec) -> list[torch.Tensor]:
    assert isinstance(codec, DiscreteAutoencoder)
    return [parameter.detach().clone() for parameter in codec.parameters()]


@pytest.mark.parametrize("steps", [1, 3])
def test_it_does_what_algorithm_1_says(steps: int):
    memory = memory_of(DiscreteAutoencoder(SHAPE, 8, 3))
    literal = copy.deepcopy(memory)
    x = torch.rand(4, *SHAPE)

    first = RecollectionModule(memory, steps=steps, learning_rate=0.01).rehearse(x, size=6)

    codec = literal.codec
    assert isinstance(codec, DiscreteAutoencoder)
    optimiser = torch.optim.Adam(codec.parameters(), lr=0.01)
    X = [torch.cat([x, literal.sample(6).x]) for _ in range(steps)]  # create N recollection sample sets
    for s in range(steps):  # train the recollection module
        logits = codec(X[s])
        loss = torch.nn.functional.binary_cross_entropy(torch.sigmoid(logits), X[s])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    assert first is not None
    assert torch.equal(first.x, X[0][4:])
    for ours, theirs in zip(weights(memory.codec), weights(codec), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)  # a step is 1e-2


def test_without_rehearsal_the_codec_sees_the_new_examples_alone():
    rehearsing, online, empty = (memory_of(DiscreteAutoencoder(SHAPE, 8, 3), items=n) for n in (30, 30, 0))
    empty.codec = copy.deepcopy(online.codec)  # the same draws so far
    x = torch.rand(4, *SHAPE)
    first = RecollectionModule(online, steps=2, rehearse="none").rehearse(x, size=6)
    assert RecollectionModule(empty, steps=2).rehearse(x, size=6) is None
    RecollectionModule(rehearsing, steps=2).rehearse(x, size=6)
    assert first is not None
    assert len(first) == 6
    assert all(map(torch.equal, weights(online.codec), weights(empty.codec)))
    assert not all(map(torch.equal, weights(online.codec), weights(rehearsing.codec)))


@pytest.mark.parametrize("codec", [RawPixels(SHAPE), ResizedPixels(SHAPE, size=(4, 4), bits=2)])
def test_a_codec_that_does_not_learn_only_gives_recollections(codec: Codec):
    memory = memory_of(codec)
    expected = copy.deepcopy(memory).sample(6)
    first = RecollectionModule(memory, steps=5).rehearse(torch.rand(4, *SHAPE), size=6)
    assert first is not None
    assert torch.equal(first.ids, expected.ids)
    assert torch.equal(first.x, expected.x)


def test_rehearsal_keeps_the_codec_from_forgetting():
    """Question 7 in small: learn one set of images, then another; with rehearsal less of the first is lost."""
    generator = torch.Generator().manual_seed(0)
    blocks = (torch.rand(40, 1, 3, 3, generator=generator) > 0.5).float()
    old, new = torch.nn.functional.interpolate(blocks, SHAPE[1:]).split(20)
    errors = {}
    for rehearse in ("recollections", "none"):
        codec = DiscreteAutoencoder(SHAPE, 32, 2)
        memory = Memory(codec, capacity=20)
        module = RecollectionModule(memory, rehearse=rehearse)
        for _ in range(200):
            module.rehearse(old, size=20)
        memory.write(old, 0)
        for _ in range(150):
            module.rehearse(new, size=20)
        errors[rehearse] = float((codec.decode(codec.encode(old)) - old).abs().mean())
    assert errors["recollections"] < 0.75 * errors["none"]


def test_a_frozen_codec_is_left_as_it_is():
    memory = memory_of(DiscreteAutoencoder(SHAPE, 8, 3).requires_grad_(False))
    before = weights(memory.codec)
    assert RecollectionModule(memory, steps=2).rehearse(torch.rand(4, *SHAPE), size=6) is not None
    assert all(map(torch.equal, weights(memory.codec), before))


def test_a_codec_may_be_frozen_on_the_way_and_let_go_again():
    memory, x = memory_of(DiscreteAutoencoder(SHAPE, 8, 3)), torch.rand(4, *SHAPE)
    module, codec = RecollectionModule(memory), memory.codec
    assert isinstance(codec, DiscreteAutoencoder)
    module.rehearse(x, size=6)
    codec.requires_grad_(False)
    before = weights(codec)
    assert module.rehearse(x, size=6) is not None
    assert not module.rehearses
    assert all(map(torch.equal, weights(codec), before))
    codec.requires_grad_(True)
    module.rehearse(x, size=6)
    assert not any(map(torch.equal, weights(codec), before))


BAD = [
    torch.full((2, *SHAPE), torch.nan),
    torch.full((2, *SHAPE), 255.0),
    torch.rand(0, *SHAPE),
    torch.rand(2, 1, 9, 9),
]


@pytest.mark.parametrize("x", BAD, ids=["nan", "255", "empty", "shape"])
def test_bad_input_does_not_reach_the_codec(x: torch.Tensor):
    memory = memory_of(DiscreteAutoencoder(SHAPE, 8, 3))
    module, before = RecollectionModule(memory), weights(memory.codec)
    with pytest.raises(ValueError, match="accepted"):
        module.rehearse(x, size=6)
    assert all(map(torch.equal, weights(memory.codec), before))


def test_it_refuses():
    memory = memory_of(RawPixels(SHAPE))
    with pytest.raises(ValueError, match="steps=0: accepted is a whole number of at least 1"):
        RecollectionModule(memory, steps=0)
    with pytest.raises(ValueError, match="rehearse='always': accepted are 'recollections', 'none'"):
        RecollectionModule(memory, rehearse="always")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="learning_rate=-3: accepted is a number above 0"):
        RecollectionModule(memory, learning_rate=-3)
    with pytest.raises(ValueError, match="warm_up=5: accepted are two whole numbers: examples, steps"):
        RecollectionModule(memory, warm_up=5)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="memory is RawPixels: accepted is a Memory"):
        RecollectionModule(memory.codec)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="size=-1"):
        RecollectionModule(memory).rehearse(torch.rand(1, *SHAPE), size=-1)


def test_it_takes_more_steps_until_enough_was_seen(monkeypatch: pytest.MonkeyPatch):
    memory = memory_of(DiscreteAutoencoder(SHAPE, 8, 3), items=0)
    codec = memory.codec
    assert isinstance(codec, DiscreteAutoencoder)
    module, steps, loss = RecollectionModule(memory, steps=2, warm_up=(8, 5)), [], codec.loss
    monkeypatch.setattr(codec, "loss", lambda x: steps.append(memory.seen) or loss(x))
    for _ in range(4):
        x = torch.rand(4, *SHAPE)
        module.rehearse(x, size=6)
        memory.write(x, 0)
    assert [steps.count(seen) for seen in (0, 4, 8, 12)] == [5, 5, 2, 2]
    with pytest.raises(ValueError, match="warm_up steps=0"):
        RecollectionModule(memory, warm_up=(10, 0))


def test_a_codec_that_could_learn_and_has_nothing_to_learn():
    module = RecollectionModule(Memory(Sketch((1, 8, 8), size=(4, 4), filters=0), capacity=5))
    assert not module.learns
    assert module.rehearse(torch.rand(3, 1, 8, 8), 2) is None
