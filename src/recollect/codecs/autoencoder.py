"""The paper's discrete autoencoder: three convolutions, a code of categorical variables, three deconvolutions."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import nn

from recollect.budget import check_autoencoder_shape, filters_of
from recollect.checks import check_codes, check_images
from recollect.codecs.convolution import KERNEL, Convolution, Deconvolution
from recollect.rebuild import rebuildable
from recollect.seeding import derived, initial_weights

if TYPE_CHECKING:
    from collections.abc import Sequence

LAYERS = 3
BOTTLENECK = 2  # the code is a 2x2 map


@rebuildable
class DiscreteAutoencoder(nn.Module):
    """A learned codec whose code is ``variables`` categorical variables of ``categories`` values.

    With its defaults it is the paper's, to the parameter. A code is drawn by the Gumbel-max trick (equation 1) and
    the gradient goes through the Gumbel-softmax at temperature ``tau`` (equation 2). The loss is binary cross entropy.

    Args:
        shape: channels, height and width of the images; height and width from 8 to 64.
        variables: the paper's c.
        categories: the paper's l. The product c l is a multiple of 4, since the code is a 2x2 map.
        tau: temperature of the softmax in the gradient; the paper keeps it at 1.0.
        stochastic: draw codes at random, in training and in encoding, as the paper does. Otherwise the most
            probable value is taken and the gradient goes through the plain softmax.
        normalised: add a group norm (one group) and a smooth activation (SiLU instead of ReLU) behind each hidden
            layer. Not in the paper; learns faster on a stream.
        seed: of the initial weights and of the draws.

    >>> codec = DiscreteAutoencoder(shape=(3, 32, 32), variables=76, categories=2)
    >>> codec.parameter_count
    150293
    >>> codes = codec.encode(torch.rand(4, 3, 32, 32))
    >>> codes.shape, codec.decode(codes).shape
    (torch.Size([4, 76]), torch.Size([4, 3, 32, 32]))
    """

    def __init__(
        self,
        shape: Sequence[int],
        variables: int,
        categories: int,
        *,
        tau: float = 1.0,
        stochastic: bool = True,
        normalised: bool = False,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.shape = channels, height, width = check_autoencoder_shape(shape)
        if not 0 < tau < math.inf:
            raise ValueError(f"tau={tau}: accepted is a temperature above 0")
        self.filters = filters_of(variables, categories)
        self.variables, self.categories = variables, categories
        self.tau, self.stochastic = tau, stochastic
        self._generator = torch.Generator().manual_seed(derived(seed, "Gumbel noise"))

        sizes = [*zip(_sizes(height), _sizes(width), strict=True)]
        strides = [*zip(_strides(height), _strides(width), strict=True)]
        widths = [channels, *[self.filters] * LAYERS]
        layers = [(widths[n], widths[n + 1], sizes[n], strides[n]) for n in range(LAYERS)]
        with initial_weights(seed, "DiscreteAutoencoder"):
            self.encoder = nn.Sequential(Convolution(*layers[0]))
            for layer in layers[1:]:
                self.encoder.extend([*self._between(normalised), Convolution(*layer)])
            self.decoder = nn.Sequential(Deconvolution(*layers[-1]))
            for layer in layers[-2::-1]:
                self.decoder.extend([*self._between(normalised), Deconvolution(*layer)])

    def _between(self, normalised: bool) -> list[nn.Module]:
        return [nn.GroupNorm(1, self.filters), nn.SiLU()] if normalised else [nn.ReLU()]

    @property
    def parameter_count(self) -> int:
        """Number of parameters; 100 f^2 + 50 ch f + 5 f + ch with f = c l / 4 filters for the paper's own."""
        return sum(parameter.numel() for parameter in self.parameters())

    @property
    def storage_bits(self) -> int:
        """Bits of the parameters."""
        return sum(8 * parameter.nbytes for parameter in self.parameters())

    def get_extra_state(self) -> torch.Tensor:
        """The state of the random draws, which goes with the weights in `state_dict`."""
        return self._generator.get_state()

    def set_extra_state(self, state: torch.Tensor) -> None:
        """Draw on from a state."""
        self._generator.set_state(state)

    @property
    def _device(self) -> torch.device:
        return next(self.parameters()).device

    @torch.no_grad()
    def encode(self, x: torch.Tensor, *, stochastic: bool | None = None) -> torch.Tensor:
        """Images in [0, 1] to codes; drawn or most probable, as ``stochastic`` says here or at construction."""
        x = check_images(x, self.shape).to(self._device)
        return self._scores(x, stochastic).argmax(-1)

    @torch.no_grad()
    def decode(self, codes: torch.Tensor) -> torch.Tensor:
        """Codes to images in [0, 1]."""
        codes = check_codes(codes, self.variables, self.categories).to(self._device)
        return self._picture(F.one_hot(codes, self.categories).float()).sigmoid()

    def loss(self, x: torch.Tensor) -> torch.Tensor:
        """Binary cross entropy between ``x`` and its reconstruction through a code."""
        return F.binary_cross_entropy_with_logits(self(x), x)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits of the reconstruction: a one-hot code on the way forward, its soft form on the way back."""
        scores = self._scores(x)
        hard = F.one_hot(scores.argmax(-1), self.categories).float()  # equation 1
        soft = torch.softmax(scores / self.tau, dim=-1)  # equation 2
        return self._picture(hard + soft - soft.detach())

    def _scores(self, x: torch.Tensor, stochastic: bool | None = None) -> torch.Tensor:
        """g_i + log p_i, n x c x l. Logits stand for log p_i: a constant a variable changes neither equation."""
        logits = self.encoder(x).permute(0, 2, 3, 1).reshape(len(x), self.variables, self.categories)
        if not (self.stochastic if stochastic is None else stochastic):
            return logits
        # Drawn on the CPU whatever the device, so that a seed means the same everywhere.
        uniform = torch.rand(logits.shape, generator=self._generator).clamp_min_(torch.finfo(torch.float32).tiny)
        return logits + uniform.log_().neg_().log_().neg_().to(logits.device)

    def _picture(self, one_hot: torch.Tensor) -> torch.Tensor:
        """Logits of the image from a code, hard or soft, n x c x l; each variable has its place in the 2x2 map."""
        codes = one_hot.reshape(len(one_hot), BOTTLENECK, BOTTLENECK, self.filters).permute(0, 3, 1, 2)
        return self.decoder(codes)


def _strides(size: int) -> tuple[int, ...]:
    """Strides that take ``size`` to 2 in three layers: as even as can be, then as small as can be.

    >>> _strides(28), _strides(32)
    ((3, 3, 2), (3, 3, 2))
    """
    # With kernel 5 and padding 2 a stride s takes n to ceil(n / s), so only the product of the strides counts.
    fitting = (
        strides
        for strides in itertools.combinations_with_replacement(range(KERNEL, 0, -1), LAYERS)
        if math.ceil(size / math.prod(strides)) == BOTTLENECK
    )
    return min(fitting, key=lambda strides: (strides[0], math.prod(strides)))


def _sizes(size: int) -> list[int]:
    """Sizes of the maps, from the image to the code.

    >>> _sizes(28), _sizes(32)
    ([28, 10, 4, 2], [32, 11, 4, 2])
    """
    return [*itertools.accumulate(_strides(size), lambda n, stride: math.ceil(n / stride), initial=size)]
