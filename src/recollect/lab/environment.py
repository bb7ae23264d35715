"""What a recorded run says about where and when it was run."""

from __future__ import annotations

import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import torch

import recollect


def revision(checkout: Path) -> str:
    """The commit that a checkout is at, and whether it was changed since; nothing where there is no checkout."""
    if not (checkout / ".git").exists():
        return ""
    try:
        command = ["git", "-C", str(checkout), "describe", "--always", "--dirty", "--exclude=*", "--abbrev=12"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


REVISION = revision(Path(recollect.__file__).parents[2])  # when the code is loaded: it may change while a run goes on


def environment() -> dict[str, str | int]:
    """Versions, processor and threads, and today's date.

    >>> sorted(environment())
    ['cpu', 'date', 'numpy', 'python', 'recollect', 'revision', 'threads', 'torch']
    """
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "recollect": recollect.__version__,
        "revision": REVISION,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "cpu": _cpu(),
        "threads": torch.get_num_threads(),
    }


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
