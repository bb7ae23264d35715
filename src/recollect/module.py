"""The Scalable Recollection Module: a codec, its memory, and the rehearsal that keeps the codec from forgetting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, get_args

import torch

from recollect.checks import check_at_least, check_images, check_number
from recollect.codecs.interface import LearnedCodec
from recollect.memory.memory import check_memory
from recollect.rebuild import rebuildable

if TYPE_CHECKING:
    from recollect.memory.batch import Batch
    from recollect.memory.memory import Memory

Rehearsal = Literal["recollections", "none"]


@rebuildable
class RecollectionModule:
    """Trains the memory's codec as new examples come in: the first phase of the paper's Algorithm 1.

    A codec that does not learn, such as raw pixels or an autoencoder while it is frozen, is left as it is. Real storage
    is this module with raw pixels.

    Args:
        memory: whose codec is trained.
        steps: optimisation steps for each call of `rehearse`, the paper's N.
        learning_rate: of Adam on the codec, the paper's β.
        rehearse: "recollections" joins recollections to the new examples in each step; with "none" the codec learns
            online, from the new examples alone.
        most: recollections that join the new examples at most; by default as many as the predictive model has.
        warm_up: two numbers (examples, steps), to take so many steps instead until the memory has seen so many
            examples: codes that are written by a codec that has learned little stay as they are.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        steps: int = 1,
        learning_rate: float = 1e-3,
        rehearse: Rehearsal = "recollections",
        most: int | None = None,
        warm_up: tuple[int, int] = (0, 1),
    ) -> None:
        self.memory = check_memory(memory)
        learning_rate = check_number("learning_rate", learning_rate, above=0)
        self.steps = check_at_least("steps", steps, 1)
        if rehearse not in get_args(Rehearsal):
            raise ValueError(f"rehearse={rehearse!r}: accepted are {', '.join(map(repr, get_args(Rehearsal)))}")
        self.most = None if most is None else check_at_least("most", most, 1)
        if not isinstance(warm_up, Sequence) or len(warm_up) != 2:
            raise ValueError(f"warm_up={warm_up!r}: accepted are two whole numbers: examples, steps")
        self.warm_up = check_at_least("warm_up examples", warm_up[0], 0), check_at_least("warm_up steps", warm_up[1], 1)
        self._rehearse = rehearse
        codec = memory.codec
        self._learner: LearnedCodec | None = None
        # One that could learn may have nothing that does, as a sketch without a painter.
        if isinstance(codec, LearnedCodec) and next(codec.parameters(), None) is not None:
            self._learner = codec
            self._optimiser = torch.optim.Adam(codec.parameters(), lr=learning_rate, fused=True)

    @property
    def learns(self) -> bool:
        """Whether the codec has something to learn; it may be frozen, and let go again, at any time."""
        return self._learner is not None and any(weight.requires_grad for weight in self._learner.parameters())

    @property
    def rehearses(self) -> bool:
        """Whether recollections join the new examples that the codec learns from."""
        return self._rehearse == "recollections" and self.learns

    def optimiser_state(self) -> dict[str, torch.Tensor]:
        """What Adam knows of each parameter of the codec, for a file."""
        if self._learner is None:
            return {}
        states = self._optimiser.state_dict()["state"]
        return {f"{name}.{number}": tensor for number, state in states.items() for name, tensor in state.items()}

    def restore_optimiser(self, tensors: dict[str, torch.Tensor]) -> None:
        """Take over what `optimiser_state` gave."""
        if self._learner is not None and tensors:
            states: dict[int, dict[str, torch.Tensor]] = {}
            parameters = [*self._learner.parameters()]
            for key, tensor in tensors.items():
                name, _, number = key.rpartition(".")
                expected = torch.Size() if name == "step" else parameters[int(number)].shape
                if tensor.shape != expected:  # which Adam does not look at: it would read and write beyond the end
                    raise ValueError(f"{key} has shape {tuple(tensor.shape)}: accepted is {tuple(expected)}")
                states.setdefault(int(number), {})[name] = tensor
            self._optimiser.load_state_dict(self._optimiser.state_dict() | {"state": states})

    def rehearse(self, x: torch.Tensor, size: int) -> Batch | None:
        """Train the codec on the new examples ``x`` and on sets of ``size`` recollections.

        All sets are drawn and decoded before the first step, with the decoder as it is. Returns the first of them for
        the predictive model to train on, or None while the memory is empty. With a size of 0 none are drawn.
        """
        return self.rehearse_checked(check_images(x, self.memory.codec.shape), check_at_least("size", size, 0))

    def rehearse_checked(self, x: torch.Tensor, size: int) -> Batch | None:
        """`rehearse` for images that were checked."""
        # Create N recollection sample sets; the predictive model needs the first of them whole.
        steps = self.warm_up[1] if self.memory.seen < self.warm_up[0] else self.steps
        few = size if self.most is None else min(size, self.most)
        sets, rehearses = [], self.rehearses
        if len(self.memory) and size:
            further = (steps - 1) * few if rehearses else 0
            drawn = self.memory.sample(size + further).to(x.device)
            sets = drawn.split([size, *[few] * (further // few)])
        # Train the recollection module.
        if self._learner is not None and self.learns:
            device = next(self._learner.parameters()).device
            for step in range(steps):
                joined = (torch.cat([x, sets[step].x[:few]]) if sets and rehearses else x).to(device)
                self._optimiser.zero_grad()
                self._learner.loss(joined).backward()
                self._optimiser.step()
        return sets[0] if sets else None


def check_module(module: RecollectionModule) -> RecollectionModule:
    """Refuse what is no module, such as a memory in its place."""
    if not isinstance(module, RecollectionModule):
        raise TypeError(f"module is {type(module).__name__}: accepted is a RecollectionModule")
    return module
