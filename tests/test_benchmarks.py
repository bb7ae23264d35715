"""The benchmarks still run: with sizes that take no time, and without recording."""

from __future__ import annotations

import sys

import pytest
import torch
from benchmarks import checkpoint, codec, commit, entropy, gem, harness, memory, packing, replay

from recollect.models import MLP, ResNet18


def resnet() -> ResNet18:
    return ResNet18([range(10)] * 3, classes=10)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmark"])
    monkeypatch.setattr(torch, "set_num_threads", lambda threads: None)  # more of them would wait for busy cores
    monkeypatch.setattr(packing, "ITEMS", 5)
    monkeypatch.setattr(memory, "SIZES", (200, 400))
    monkeypatch.setattr(entropy, "CODECS", {name: entropy.CODECS[name] for name in [*entropy.CODECS][::4]})
    monkeypatch.setattr(entropy, "TASKS", 2)
    monkeypatch.setattr(entropy, "EXAMPLES", 100)
    monkeypatch.setattr(replay, "MODELS", [("MLP", MLP, (1, 28, 28), 2, 1), ("ResNet-18", resnet, (3, 8, 8), 2, 1)])
    monkeypatch.setattr(gem, "TASKS", 2)
    monkeypatch.setattr(gem, "CASES", [("MLP", MLP, (1, 28, 28), 5), ("ResNet-18", resnet, (3, 16, 16), 5)])
    monkeypatch.setattr(codec, "CODES", ((codec.CIFAR, 8, 2, 4),))
    monkeypatch.setattr(codec, "SIZE", 16)
    monkeypatch.setattr(commit, "ITEMS", 300)
    monkeypatch.setattr(checkpoint, "CODES", ((8, 2),))
    for module in (memory, entropy, packing, gem, codec):
        monkeypatch.setattr(module, "seconds", lambda call: harness.seconds(call, at_least=0, rounds=1))


PRINTED = [
    (packing.main, ["620x3", "radix"]),
    (memory.main, ["ring", "write 10"]),
    (entropy.main, ["10x10", "sketch", "entropy"]),
    (replay.main, ["bare steps a second", "ratio"]),
    (gem.main, ["loop milliseconds", "times as fast"]),
    (codec.main, ["8x2", "share of peak"]),
    (commit.main, ["percent of first"]),
    (checkpoint.main, ["8x2", "percent of a run"]),
]


@pytest.mark.parametrize(("main", "words"), PRINTED)
def test_it_prints_its_table(main: object, words: list[str], capsys: pytest.CaptureFixture[str]):
    assert callable(main)
    main()
    printed = capsys.readouterr().out
    assert all(word in printed for word in words)
