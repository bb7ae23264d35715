"""One seed for many purposes: what is drawn for one has nothing to do with what is drawn for another."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import torch

from recollect.checks import check_at_least

if TYPE_CHECKING:
    from collections.abc import Iterator


def derived(seed: int, purpose: str) -> int:
    """A seed of its own for ``purpose``.

    >>> derived(0, "weights") == derived(0, "weights")
    True
    >>> derived(0, "weights") == derived(0, "noise")
    False
    """
    check_at_least("seed", seed, 0)
    return int(np.random.SeedSequence([seed, *purpose.encode()]).generate_state(1, np.uint64)[0])


@contextmanager
def initial_weights(seed: int, model: str) -> Iterator[None]:
    """Make the layers created inside start from weights that ``seed`` fixes, and leave all other generators alone."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(derived(seed, model))
        yield
