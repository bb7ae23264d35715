"""A decoder that is averaged over its training, against the average by its formula."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

import recollect as rc
from recollect import DiscreteAutoencoder

SMALL = (1, 12, 12)


def test_an_averaged_decoder_is_the_average_of_what_the_decoder_was():
    codec = DiscreteAutoencoder(SMALL, 8, 2, averaging=0.75)
    optimiser = torch.optim.SGD(codec.encoder.parameters(), lr=0.02)
    optimiser.add_param_group({"params": [*codec.decoder.parameters()]})
    first = was = [weight.detach().clone().double() for weight in codec.decoder.parameters()]
    x, codes = torch.rand(6, *SMALL), codec.encode(torch.rand(6, *SMALL))
    for step in range(1, 61):  # from the 26th on as much stays as was wanted
        stays = min(0.75, (1 + step) / (10 + step))
        now = [weight.detach().clone().double() for weight in codec.decoder.parameters()]
        was = [stays * before + (1 - stays) * after for before, after in zip(was, now, strict=True)]
        optimiser.zero_grad()
        codec.loss(x).backward()
        optimiser.step()
    assert codec.averaged is not None
    assert not all(map(torch.equal, was, first))
    for average, expected in zip(codec.averaged.parameters(), was, strict=True):
        torch.testing.assert_close(average.double(), expected, rtol=1e-5, atol=1e-6)
    read = codec.decode(codes)
    with torch.no_grad():
        codec.loss(x)  # only asked for, not trained on
        for weight, average in zip(codec.decoder.parameters(), codec.averaged.parameters(), strict=True):
            weight.copy_(average)
    codec.averaged = None
    torch.testing.assert_close(codec.decode(codes), read)


def test_an_average_changes_neither_what_is_learned_nor_what_is_written_and_is_billed():
    plain, averaged = DiscreteAutoencoder(SMALL, 8, 2), DiscreteAutoencoder(SMALL, 8, 2, averaging=0.9)
    x = torch.rand(6, *SMALL)
    for codec in (plain, averaged):
        optimiser = torch.optim.Adam(codec.parameters(), lr=0.01)
        for _ in range(3):
            optimiser.zero_grad()
            codec.loss(x).backward()
            optimiser.step()
    ours, theirs = (dict(codec.named_parameters()) for codec in (averaged, plain))
    assert all(torch.equal(ours[name], weight) for name, weight in theirs.items())
    assert torch.equal(plain.encode(x), averaged.encode(x))
    decoder = sum(weight.numel() for weight in plain.decoder.parameters())
    assert averaged.storage_bits == plain.storage_bits + 32 * decoder
    assert "averaged" not in "".join(plain.state_dict())


def test_an_average_is_there_from_the_start_or_never():
    """Without it the codec has other weights, and a file that says otherwise could not be opened."""
    codec = rc.DiscreteAutoencoder((1, 8, 8), 4, 2, averaging=0.9)
    with pytest.raises(AttributeError, match="averaging"):
        codec.averaging = 0.0  # pyright: ignore[reportAttributeAccessIssue]
    assert codec.averaging == 0.9


@pytest.mark.parametrize("averaging", [-0.1, 1.0, float("nan")])
def test_an_average_that_never_ends_is_refused(averaging: float):
    with pytest.raises(ValueError, match=r"averaging=.*: accepted are numbers from 0"):
        DiscreteAutoencoder(SMALL, 8, 2, averaging=averaging)


def test_a_learner_with_an_averaged_decoder_goes_on_bit_for_bit_from_its_file(tmp_path: Path):
    def after(batches: int, learner: rc.Replay) -> rc.Replay:
        for number in range(batches):
            generator = torch.Generator().manual_seed(number)
            learner.observe(torch.rand(4, *SMALL, generator=generator), torch.arange(4), 0)
        return learner

    def made() -> rc.Replay:
        memory = rc.Memory(DiscreteAutoencoder(SMALL, 8, 2, averaging=0.9), capacity=9, classes=10, tasks=1)
        model = rc.models.MLP(inputs=math.prod(SMALL), hidden=(8,), classes=10)
        return rc.Replay(model, rc.RecollectionModule(memory, steps=2), batch_size=3)

    stopped = after(3, made())
    stopped.save(tmp_path / "learner.rec")
    resumed, whole = after(2, rc.Replay.load(tmp_path / "learner.rec")), after(2, stopped)
    ours, theirs = resumed.memory.recollections(), whole.memory.recollections()
    assert ours is not None
    assert theirs is not None
    assert torch.equal(ours.x, theirs.x)
