"""What a recorded run says about where and when it was run."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import torch

import recollect


def environment() -> dict[str, str | int]:
    """Versions, processor and threads, and today's date.

    >>> sorted(environment())
    ['cpu', 'date', 'numpy', 'python', 'recollect', 'threads', 'torch']
    """
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "recollect": recollect.__version__,
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
