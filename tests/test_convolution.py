"""Convolutions by matrix products, against PyTorch's own."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from recollect.codecs.convolution import Convolution, Deconvolution

SIZES, STRIDES, CHANNELS = st.integers(1, 20), st.integers(1, 5), st.integers(1, 4)
GEOMETRY = {"height": SIZES, "width": SIZES, "down": STRIDES, "right": STRIDES, "large": CHANNELS, "small": CHANNELS}


def assert_same(ours: torch.Tensor, theirs: torch.Tensor, *inputs: torch.Tensor) -> None:
    """Values and gradients with respect to the inputs."""
    gradient = torch.rand_like(theirs)
    mine = torch.autograd.grad(ours, inputs, gradient)
    reference = torch.autograd.grad(theirs, inputs, gradient)
    for value, expected in zip((ours, *mine), (theirs, *reference), strict=True):
        torch.testing.assert_close(value, expected)


@given(**GEOMETRY)
def test_convolution_is_that_of_pytorch(height: int, width: int, down: int, right: int, large: int, small: int):
    layer = Convolution(large, small, (height, width), (down, right)).double()
    x = torch.rand(3, large, height, width, dtype=torch.double, requires_grad=True)
    expected = F.conv2d(x, layer.weight.permute(3, 2, 0, 1), layer.bias, (down, right), padding=2)
    assert_same(layer(x), expected, x, layer.weight, layer.bias)


@given(**GEOMETRY)
def test_deconvolution_is_that_of_pytorch(height: int, width: int, down: int, right: int, large: int, small: int):
    layer = Deconvolution(large, small, (height, width), (down, right)).double()
    rows, columns = -(-height // down), -(-width // right)
    lost = height - 1 - (rows - 1) * down, width - 1 - (columns - 1) * right
    x = torch.rand(3, small, rows, columns, dtype=torch.double, requires_grad=True)
    weight = layer.weight.permute(3, 2, 0, 1)
    expected = F.conv_transpose2d(x, weight, layer.bias, (down, right), padding=2, output_padding=lost)
    assert_same(layer(x), expected, x, layer.weight, layer.bias)


def test_signals_keep_their_size_from_layer_to_layer():
    """He's rule: a rectified signal of mean square 1 comes out with a variance of 2, and rectified again with 1."""
    torch.manual_seed(0)
    down, up = Convolution(40, 60, (30, 30), (3, 3)), Deconvolution(40, 60, (30, 30), (3, 3))
    for layer, shape in ((down, (20, 40, 30, 30)), (up, (20, 60, 10, 10))):
        x = torch.randn(shape).relu() * 2**0.5
        inner = layer(x).detach()[:, :, 3:-3, 3:-3]  # away from the border
        assert abs(float(inner.var()) - 2) < 0.15
