"""The paper's discrete autoencoder, whose code is categorical variables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F

from recollect.budget import filters_of
from recollect.checks import check_codes, check_flag, check_images, check_number
from recollect.codecs.convolutional import ConvolutionalAutoencoder
from recollect.packing import check_code_shape
from recollect.rebuild import rebuildable
from recollect.seeding import derived

if TYPE_CHECKING:
    from collections.abc import Sequence


@rebuildable
class DiscreteAutoencoder(ConvolutionalAutoencoder):
    """A learned codec whose code is ``variables`` categorical variables of ``categories`` values.

    With its defaults it is the paper's, to the parameter. A code is drawn by the Gumbel-max trick (equation 1) and
    the gradient goes through the Gumbel-softmax at temperature ``tau`` (equation 2). The loss is binary cross entropy.
    Images larger than 64x64 have more layers than the paper's, one for each doubling.

    Args:
        shape: channels, height and width of the images; height and width from 2 to 256.
        variables: the paper's c.
        categories: the paper's l. The product c l is a multiple of 4, since the code is a 2x2 map.
        tau: temperature of the softmax in the gradient; the paper keeps it at 1.0.
        stochastic: draw codes at random, in training and in encoding, as the paper does. Otherwise the most
            probable value is taken and the gradient goes through the plain softmax.
        normalised: add a group norm (one group) and a smooth activation (SiLU instead of ReLU) behind each hidden
            layer. Not in the paper; learns faster on a stream.
        averaging: decode by an exponential moving average of the decoder's weights, of which so much stays in each step
            of training, such as 0.995, and less in the first of them; 0 for the decoder as it is. Not in the paper;
            codes age less. The average is billed like all other weights.
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
        averaging: float = 0.0,
        seed: int = 0,
    ) -> None:
        super().__init__(
            shape, filters_of(variables, categories), normalised=normalised, averaging=averaging, seed=seed
        )
        self.variables, self.categories = check_code_shape(variables, categories)
        self.tau, self.stochastic = check_number("tau", tau, above=0), check_flag("stochastic", stochastic)
        self._generator = torch.Generator().manual_seed(derived(seed, "Gumbel noise"))

    def get_extra_state(self) -> torch.Tensor:
        """The state of the random draws, which goes with the weights in `state_dict`."""
        return self._generator.get_state()

    def set_extra_state(self, state: torch.Tensor) -> None:
        """Draw on from a state."""
        self._generator.set_state(state)

    @torch.no_grad()
    def encode(self, x: torch.Tensor, *, stochastic: bool | None = None) -> torch.Tensor:
        """Images in [0, 1] to codes; drawn or most probable, as ``stochastic`` says here or at construction."""
        x = check_images(x, self.shape).to(self._device)
        return self._scores(x, stochastic).argmax(-1)

    @torch.no_grad()
    def decode(self, codes: torch.Tensor) -> torch.Tensor:
        """Codes to images in [0, 1]."""
        codes = check_codes(codes, self.variables, self.categories).to(self._device)
        return self._picture(F.one_hot(codes, self.categories).float(), self.averaged).sigmoid()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits of the reconstruction: a one-hot code on the way forward, its soft form on the way back."""
        scores = self._scores(x)
        hard = F.one_hot(scores.argmax(-1), self.categories).float()  # equation 1
        soft = torch.softmax(scores / self.tau, dim=-1)  # equation 2
        return self._picture(hard + soft - soft.detach())

    def _scores(self, x: torch.Tensor, stochastic: bool | None = None) -> torch.Tensor:
        """g_i + log p_i, n x c x l. Logits stand for log p_i: a constant a variable changes neither equation."""
        logits = self._bottleneck(x).reshape(len(x), self.variables, self.categories)
        if not (self.stochastic if stochastic is None else stochastic):
            return logits
        # Drawn on the CPU whatever the device, so that a seed means the same everywhere.
        uniform = torch.rand(logits.shape, generator=self._generator).clamp_min_(torch.finfo(torch.float32).tiny)
        return logits + uniform.log_().neg_().log_().neg_().to(logits.device)
