"""The benchmarks still run: with sizes that take no time, and without recording."""

from __future__ import annotations

import sys

import pytest
from benchmarks import harness, memory, packing


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmark"])
    monkeypatch.setattr(packing, "ITEMS", 5)
    monkeypatch.setattr(memory, "SIZES", (200, 400))
    for module in (memory, packing):
        monkeypatch.setattr(module, "seconds", lambda call: harness.seconds(call, at_least=0, rounds=1))


@pytest.mark.parametrize(("main", "words"), [(packing.main, ["620x3", "radix"]), (memory.main, ["ring", "write 10"])])
def test_it_prints_its_table(main: object, words: list[str], capsys: pytest.CaptureFixture[str]):
    assert callable(main)
    main()
    printed = capsys.readouterr().out
    assert all(word in printed for word in words)
