"""Strided convolutions of small maps and their transposes, as a few large matrix products.

Maps of 4x4 or 10x10 pixels with hundreds of channels are far from what convolution kernels are tuned for: up to half
of the taps fall on padding, and transposes are slow. Here a map lies in memory row by row, then image by image. Rows
whose windows overhang the border in the same way share one product, with only those rows of the kernel that lie inside.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

KERNEL, PADDING = 5, 2


def length(part: slice) -> int:
    """Elements between start and stop."""
    return part.stop - part.start


class Geometry:
    """How a large map of height x width pixels and the small map that a stride makes of it lie on each other.

    Maps are rows x images x columns x channels, contiguous; weights are kernel x kernel x large x small channels.
    """

    def __init__(self, height: int, width: int, stride: tuple[int, int]) -> None:
        self.height, self.width, self.stride = height, width, stride
        self.rows, self.columns = math.ceil(height / stride[0]), math.ceil(width / stride[1])
        self.padded = max(PADDING + width, (self.columns - 1) * stride[1] + KERNEL)
        taps = [
            (max(0, PADDING - row * stride[0]), min(KERNEL, height + PADDING - row * stride[0]))
            for row in range(self.rows)
        ]
        runs = [[*run] for _, run in itertools.groupby(range(self.rows), key=taps.__getitem__)]
        # Rows of the small map, with the rows of the kernel that lie on the large map.
        self.groups = [(slice(run[0], run[-1] + 1), slice(*taps[run[0]])) for run in runs]

    def gather(self, large: torch.Tensor) -> list[torch.Tensor]:
        """What the windows see: a matrix for each group of rows, a window a line."""
        padded = F.pad(large, (0, 0, PADDING, self.padded - PADDING - self.width))
        views = (self._windows(padded, rows, taps, slice(0, KERNEL)) for rows, taps in self.groups)
        return [view.reshape(view.shape[:3].numel(), -1) for view in views]

    def scatter(self, seen: list[torch.Tensor], images: int, channels: int) -> torch.Tensor:
        """The transpose of `gather`: what the windows hold is added up on the large map."""
        padded = seen[0].new_zeros(self.height, images, self.padded, channels)
        down, right = self.stride
        for (rows, taps), matrix in zip(self.groups, seen, strict=True):
            parts = matrix.view(length(rows), images, self.columns, length(taps), KERNEL, channels)
            # Taps closer together than the stride never meet, so that a block of them is added at once.
            for i, j in itertools.product(range(taps.start, taps.stop, down), range(0, KERNEL, right)):
                block = parts[:, :, :, i - taps.start : i - taps.start + down, j : j + right]
                target = self._windows(padded, rows, slice(i, i + block.shape[3]), slice(j, j + block.shape[4]))
                target.add_(block)
        return padded[:, :, PADDING : PADDING + self.width]

    def down(self, seen: list[torch.Tensor], weight: torch.Tensor) -> torch.Tensor:
        """The small map, from what its windows see of the large one."""
        lines = [matrix @ weight[taps].flatten(0, 2) for matrix, (_, taps) in zip(seen, self.groups, strict=True)]
        return torch.cat(lines).view(self.rows, -1, self.columns, weight.shape[3])

    def up(self, small: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """The large map, from a small one."""
        seen = [small[rows].flatten(0, 2) @ weight[taps].flatten(0, 2).T for rows, taps in self.groups]
        return self.scatter(seen, small.shape[1], weight.shape[2])

    def weight_gradient(self, seen: list[torch.Tensor], small: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """The gradient of the weights, in both directions that of windows against the small map."""
        gradient = torch.zeros_like(weight)
        for matrix, (rows, taps) in zip(seen, self.groups, strict=True):
            gradient[taps].flatten(0, 2).addmm_(matrix.T, small[rows].flatten(0, 2))
        return gradient

    def _windows(self, padded: torch.Tensor, rows: slice, taps: slice, columns: slice) -> torch.Tensor:
        """A view: rows x images x columns of the small map, then rows and columns of the kernel, then channels."""
        row, image, column, _ = padded.stride()
        down, right = self.stride
        return padded.as_strided(
            (length(rows), padded.shape[1], self.columns, length(taps), length(columns), padded.shape[3]),
            (down * row, image, right * column, row, column, 1),
            (down * rows.start + taps.start - PADDING) * row + columns.start * column,
        )


class _Down(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, large: torch.Tensor, weight: torch.Tensor, geometry: Geometry) -> torch.Tensor:
        seen = geometry.gather(large)
        ctx.geometry = geometry
        ctx.save_for_backward(weight, *seen)
        return geometry.down(seen, weight)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, torch.Tensor, None]:
        small = gradients[0].contiguous()
        weight, *seen = ctx.saved_tensors
        with torch.autocast(small.device.type, enabled=False):  # as on the way forward
            large = ctx.geometry.up(small, weight) if ctx.needs_input_grad[0] else None
            return large, ctx.geometry.weight_gradient(seen, small, weight), None


class _Up(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, small: torch.Tensor, weight: torch.Tensor, geometry: Geometry) -> torch.Tensor:
        ctx.geometry = geometry
        ctx.save_for_backward(small, weight)
        return geometry.up(small, weight)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None]:
        small, weight = ctx.saved_tensors
        seen = ctx.geometry.gather(gradients[0])
        with torch.autocast(small.device.type, enabled=False):
            return ctx.geometry.down(seen, weight), ctx.geometry.weight_gradient(seen, small, weight), None


class _Layer(nn.Module):
    """What both directions share. Images go in and come out as n x C x H x W; only their order in memory is another.

    Weights start as He et al. (2015) have it for rectified layers, biases at zero.
    """

    def __init__(self, large: int, small: int, geometry: Geometry, *, terms: float, biases: int) -> None:
        super().__init__()
        self.geometry = geometry
        self.weight = nn.Parameter(torch.empty(KERNEL, KERNEL, large, small).normal_(0, math.sqrt(2 / terms)))
        self.bias = nn.Parameter(torch.zeros(biases))


class Convolution(_Layer):
    """From the large map to the small one, with a kernel of 5x5 and a padding of 2.

    Args:
        large: channels of the large map.
        small: channels of the small map.
        size: height and width of the large map.
        stride: down and to the right.
    """

    def __init__(self, large: int, small: int, size: tuple[int, int], stride: tuple[int, int]) -> None:
        super().__init__(large, small, Geometry(*size, stride), terms=large * KERNEL**2, biases=small)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Images of the large size to images of the small size."""
        return _images(_Down.apply(_rows(x), self.weight, self.geometry) + self.bias)


class Deconvolution(_Layer):
    """From the small map to the large one: the transpose of the convolution with the same arguments."""

    def __init__(self, large: int, small: int, size: tuple[int, int], stride: tuple[int, int]) -> None:
        # A pixel of the large map is reached by one tap in stride x stride.
        terms = small * KERNEL**2 / math.prod(stride)
        super().__init__(large, small, Geometry(*size, stride), terms=terms, biases=large)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Images of the small size to images of the large size."""
        return _images(_Up.apply(_rows(x), self.weight, self.geometry) + self.bias)


def _rows(x: torch.Tensor) -> torch.Tensor:
    return x.permute(2, 0, 3, 1).contiguous()


def _images(x: torch.Tensor) -> torch.Tensor:
    return x.permute(1, 3, 0, 2)
