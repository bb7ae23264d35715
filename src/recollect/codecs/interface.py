"""What the memory asks of a codec, and all that it knows of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch


@runtime_checkable
class Codec(Protocol):
    """Turns images into codes of ``variables`` variables with ``categories`` values each, and back."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width of the images."""
        ...

    @property
    def variables(self) -> int:
        """Variables of a code, the paper's c."""
        ...

    @property
    def categories(self) -> int:
        """Values of a variable, the paper's l."""
        ...

    @property
    def storage_bits(self) -> int:
        """What the codec itself weighs, in bits: parameters, or a header that is kept once."""
        ...

    def encode(self, x: torch.Tensor) -> torch.Tensor:
        """Images in [0, 1], n x C x H x W, to int64 codes, n x variables."""
        ...

    def decode(self, codes: torch.Tensor) -> torch.Tensor:
        """Codes back to images in [0, 1]."""
        ...


@runtime_checkable
class LearnedCodec(Codec, Protocol):
    """A codec that can be trained while it is in use."""

    def parameters(self) -> Iterator[torch.nn.Parameter]:
        """What an optimiser trains."""
        ...

    def loss(self, x: torch.Tensor) -> torch.Tensor:
        """The reconstruction error to be made small, averaged over the batch."""
        ...


@runtime_checkable
class PictureCodec(Codec, Protocol):
    """A codec whose codes are pictures of bits, of the same size for each channel of the image."""

    @property
    def picture(self) -> tuple[int, int]:
        """Height and width; variables are pixels, channel after channel, row after row."""
        ...
