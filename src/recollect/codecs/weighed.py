"""What a learned codec weighs."""

from __future__ import annotations

from torch import nn


class Weighed(nn.Module):
    """A network that says how much it takes to keep it."""

    @property
    def parameter_count(self) -> int:
        """Number of parameters; 100 f^2 + 50 ch f + 5 f + ch for the paper's codec with f filters, up to 64x64."""
        return sum(parameter.numel() for parameter in self.parameters())

    @property
    def storage_bits(self) -> int:
        """Bits of the parameters."""
        return sum(8 * parameter.nbytes for parameter in self.parameters())
