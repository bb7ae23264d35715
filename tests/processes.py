"""Processes of their own for tests: forked by a server that has loaded PyTorch once and has no threads of it."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from typing import Any

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["recollect.lab.experiments"])


def start(target: Callable[..., None], *args: object, times: int = 1) -> list[Any]:
    """So many processes that call ``target``, side by side."""
    processes = [CONTEXT.Process(target=target, args=args) for _ in range(times)]
    for process in processes:
        process.start()
    return processes


def wait(processes: list[Any]) -> None:
    """Until they have ended, all of them well."""
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * len(processes)
