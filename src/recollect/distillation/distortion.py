"""Distortions: how far a reconstruction is from its original, and a sample from all that was seen (Question 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from recollect.checks import check_images

if TYPE_CHECKING:
    from recollect.codecs.interface import Codec

BATCH = 500  # images that are encoded at once
BLOCK = 1 << 23  # distances that are bounded at once
LIKELY = 16  # images of the lowest bounds, whose distances are computed first
PAIRS = 1 << 10  # distances that are computed at once, in a processor's cache


def reconstruction_distortion(codec: Codec, x: torch.Tensor) -> float:
    """The mean absolute error of images that went through the codec, a value of [0, 1] a channel.

    >>> from recollect.codecs.pixels import RawPixels
    >>> reconstruction_distortion(RawPixels((1, 28, 28)), torch.ones(3, 1, 28, 28))
    0.0
    """
    x = check_images(x, codec.shape)
    errors = (codec.decode(codec.encode(batch)).to(x.device) - batch for batch in x.split(BATCH))
    return sum(float(error.abs().sum(dtype=torch.float64)) for error in errors) / x.numel()


def nearest_neighbour_distortion(samples: torch.Tensor, training: torch.Tensor) -> float:
    """The mean absolute error between each sample and the training image nearest to it by that error, on average.

    >>> training = torch.rand(20, 1, 28, 28)
    >>> nearest_neighbour_distortion(training[3:5], training)
    0.0
    """
    return float(nearest_neighbour_distances(samples, training).double().mean())


def nearest_neighbour_distances(samples: torch.Tensor, training: torch.Tensor) -> torch.Tensor:
    """For each sample the least mean absolute error to an image of ``training``, exactly, without trying every one.

    For a and b in [0, 1], |a - b| = a + b - 2 a b - 2 min(a, b) (1 - max(a, b)), and the last product is at most
    a (1 - a) and at most b (1 - b). So one matrix product bounds every distance from below, and tightly where one of
    two images is nearly black and white. Only those are computed whose bound is below the best known.
    """
    a = check_images(samples).flatten(1)
    channels, height, width = samples.shape[1:]
    b = check_images(training, (channels, height, width)).flatten(1).to(a.device)
    grey = (b * (1 - b)).sum(1)
    total = b.sum(1)
    return torch.cat([_nearest(part, b, total, grey) for part in a.split(max(1, BLOCK // len(b)))]) / b.shape[1]


def _nearest(a: torch.Tensor, b: torch.Tensor, total: torch.Tensor, grey: torch.Tensor) -> torch.Tensor:
    """The least sum of absolute differences of each row of ``a`` to a row of ``b``."""
    bounds = torch.addmm(total, a, b.T, alpha=-2)  # all but the sum of the row of a
    bounds.sub_(torch.minimum(grey, (a * (1 - a)).sum(1, keepdim=True)), alpha=2)
    best = a.new_full((len(a),), torch.inf)
    likely = bounds.topk(min(LIKELY, len(b)), largest=False).indices
    rows = torch.arange(len(a), device=a.device)[:, None].expand_as(likely)
    _lower(best, a, b, rows.flatten(), likely.flatten())
    # Each sum is of as many terms as there are pixels, and rounded as often.
    rounding = torch.finfo(a.dtype).eps * a.shape[1] * (a.sum(1) + total.max())
    rows, columns = (bounds < (best - a.sum(1) + rounding)[:, None]).nonzero(as_tuple=True)
    _lower(best, a, b, rows, columns)
    return best


def _lower(best: torch.Tensor, a: torch.Tensor, b: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor) -> None:
    """Compute the distances of these pairs; where one is below the best of its row, it is the best."""
    for row, column in zip(rows.split(PAIRS), columns.split(PAIRS), strict=True):
        difference = b[column].sub_(a[row])
        best.scatter_reduce_(0, row, difference.abs_().sum(1), "amin")
