"""The benchmarks still run: with sizes that take no time, and without recording."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import pytest
import torch
from benchmarks import checkpoint, codec, commit, entropy, gem, harness, memory, packing, replay
from benchmarks.harness import seconds

from recollect.models import MLP, ResNet18


def resnet() -> ResNet18:
    return ResNet18([range(10)] * 3, classes=10)


GEM_CASES = [
    ("MLP", MLP, (1, 28, 28), 5, False),
    ("ResNet-18", resnet, (3, 16, 16), 5, False),
    ("ResNet-18", resnet, (3, 16, 16), 5, True),
]


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
    monkeypatch.setattr(gem, "CASES", GEM_CASES)
    monkeypatch.setattr(codec, "CODES", ((codec.CIFAR, 8, 2, 4),))
    monkeypatch.setattr(codec, "SIZE", 16)
    monkeypatch.setattr(commit, "ITEMS", 300)
    monkeypatch.setattr(checkpoint, "CODES", ((8, 2),))
    at_once = partial(seconds, at_least=0)
    for module in (memory, entropy, harness, gem, codec):
        monkeypatch.setattr(module, "seconds", at_once)


PRINTED = [
    (packing, ["620x3", "radix"]),
    (memory, ["ring", "write 10"]),
    (entropy, ["10x10", "sketch", "entropy"]),
    (replay, ["bare steps a second", "ratio"]),
    (gem, ["loop milliseconds", "times as fast"]),
    (codec, ["8x2", "share of peak"]),
    (commit, ["percent of first"]),
    (checkpoint, ["8x2", "percent of a run"]),
]


@pytest.mark.parametrize(("benchmark", "words"), PRINTED)
def test_it_prints_its_table(benchmark: Any, words: list[str], capsys: pytest.CaptureFixture[str]):
    harness.report("benchmark", benchmark.measured)
    printed = capsys.readouterr().out
    assert all(word in printed for word in words)


def test_arguments_are_read_before_anything_is_measured(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "argv", ["benchmark", "--recrod"])
    with pytest.raises(SystemExit):
        harness.report("benchmark", lambda: pytest.fail("measured"))
