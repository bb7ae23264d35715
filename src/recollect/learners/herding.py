"""Herding (Welling, 2009), as iCaRL chooses exemplars: a few examples whose mean is nearest the mean of all."""

from __future__ import annotations

import torch


def herd(features: torch.Tensor, count: int) -> torch.Tensor:
    """The rows of ``count`` examples, or of all if there are fewer, the most telling first.

    Each is the one that brings the mean of those chosen so far nearest the mean of all. So whichever number of them is
    kept, the first are what herding would have chosen, and the last can be dropped.

    >>> herd(torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]), 2).tolist()
    [2, 0]
    """
    mean = features.mean(0)
    total = torch.zeros_like(mean)
    chosen: list[int] = []
    for number in range(1, min(count, len(features)) + 1):
        distances = (mean - (total + features) / number).norm(dim=1)
        distances[chosen] = torch.inf
        chosen.append(int(distances.argmin()))
        total += features[chosen[-1]]
    return torch.tensor(chosen, device=features.device)
