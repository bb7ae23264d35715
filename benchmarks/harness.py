"""Timing, printing and recording."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from recollect.lab.environment import environment

if TYPE_CHECKING:
    from collections.abc import Callable

Rows = list[dict[str, str | int | float]]
RESULTS = Path(__file__).parents[1] / "results" / "benchmarks"


def seconds(call: Callable[[], object], *, at_least: float = 0.3, rounds: int = 5) -> float:
    """The best time of one call over several rounds: what disturbs a measurement only ever adds to it."""
    call()
    best = float("inf")
    for _ in range(rounds):
        calls, started = 0, time.perf_counter()
        while (passed := time.perf_counter() - started) < at_least / rounds or calls == 0:
            call()
            calls += 1
        best = min(best, passed / calls)
    return best


def in_turns(*calls: Callable[[], object], rounds: int = 3) -> list[float]:
    """The best time of each call, taken one after the other in every round: what else the machine does meets all."""
    times = [[seconds(call, rounds=2) for call in calls] for _ in range(rounds)]
    return [min(taken) for taken in zip(*times, strict=True)]


def report(name: str, measured: Callable[[], Rows]) -> None:
    """Print what is measured as a table, and with ``--record`` on the command line write it to results/benchmarks."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description="Measures, and prints a table.")
    parser.add_argument("--record", action="store_true", help=f"write results/benchmarks/{name}.json")
    record = parser.parse_args().record  # before what takes long
    rows = measured()
    table = Table(title=name)
    for column in rows[0]:
        table.add_column(column.replace("_", " "), justify="left" if isinstance(rows[0][column], str) else "right")
    for row in rows:
        table.add_row(*map(_cell, row.values()))
    Console(width=120).print(table)
    if record:
        RESULTS.mkdir(parents=True, exist_ok=True)
        written = {"benchmark": name, "rows": rows, "environment": environment()}
        (RESULTS / f"{name}.json").write_text(json.dumps(written, indent=2) + "\n")


def _cell(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"
