"""The paper's continuous autoencoder, the control of Question 4: the same layers, and a code of float32 numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from recollect.checks import check_at_least, check_codes, check_images
from recollect.codecs.convolutional import BOTTLENECK, ConvolutionalAutoencoder
from recollect.rebuild import rebuildable

if TYPE_CHECKING:
    from collections.abc import Sequence

FLOAT = np.dtype("<f4")  # the order of its bytes is that of any machine's codes


@rebuildable
class ContinuousAutoencoder(ConvolutionalAutoencoder):
    """A learned codec whose code is ``latents`` numbers, as the encoder gives them: no noise, nothing rounded.

    To a memory a number is its four bytes, so that a code is 4 h variables of 256 categories in 32 h bits. The paper's
    table of continuous codes counts filters: its h = 5 are 20 numbers here, a compression of 9.8.

    Args:
        shape: channels, height and width of the images; height and width from 2 to 256.
        latents: numbers in a code, the h of the paper's 32 h bits. A multiple of 4, since the code is a 2x2 map.
        normalised: add a group norm (one group) and a smooth activation (SiLU instead of ReLU) behind each hidden
            layer. Not in the paper.
        seed: of the initial weights.

    >>> codec = ContinuousAutoencoder(shape=(1, 28, 28), latents=20)
    >>> codec.parameter_count
    2776
    >>> codes = codec.encode(torch.rand(3, 1, 28, 28))
    >>> codes.shape, codec.decode(codes).shape
    (torch.Size([3, 80]), torch.Size([3, 1, 28, 28]))
    """

    categories = 256
    codes_are_bytes = True  # of something else, so that most codes mean nothing

    def __init__(self, shape: Sequence[int], latents: int, *, normalised: bool = False, seed: int = 0) -> None:
        latents = check_at_least("latents", latents, BOTTLENECK**2)
        if latents % BOTTLENECK**2:
            raise ValueError(f"latents={latents}: accepted is a multiple of 4, since the code is a 2x2 map")
        super().__init__(shape, latents // BOTTLENECK**2, normalised=normalised, seed=seed)
        self.latents = latents
        self.variables = FLOAT.itemsize * latents

    def encode(self, x: torch.Tensor) -> torch.Tensor:
        """Images in [0, 1] to the bytes of their latents."""
        latents = self.encode_latents(x).cpu().numpy().astype(FLOAT)
        return torch.from_numpy(latents.view(np.uint8).astype(np.int64))

    def decode(self, codes: torch.Tensor) -> torch.Tensor:
        """Bytes of latents to images in [0, 1]."""
        codes = check_codes(codes, self.variables, self.categories)
        latents = codes.cpu().numpy().astype(np.uint8).view(FLOAT)
        return self.decode_latents(torch.from_numpy(latents.astype(np.float32)))

    @torch.no_grad()
    def encode_latents(self, x: torch.Tensor) -> torch.Tensor:
        """Images in [0, 1] to latents, n x h of float32."""
        return self._bottleneck(check_images(x, self.shape).to(self._device))

    @torch.no_grad()
    def decode_latents(self, latents: torch.Tensor) -> torch.Tensor:
        """Latents to images in [0, 1]."""
        if latents.ndim != 2 or latents.shape[1] != self.latents:
            raise ValueError(f"latents have shape {tuple(latents.shape)}: accepted is n x {self.latents}")
        images = self._picture(latents.float().to(self._device)).sigmoid()
        # Four bytes may be no number at all, or one so large that sums of it are none.
        if bool(images.isnan().any()):
            raise ValueError("latents decode to NaN: accepted are finite numbers such as the encoder gives")
        return images

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits of the reconstruction."""
        return self._picture(self._bottleneck(x))
