"""A codec that learns from images as they come, with what it rehearses from: Algorithm 1 without a predictive model."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any, Literal, Self

from torch import nn

import recollect as rc
from recollect.lab.clock import timed
from recollect.memory import file
from recollect.memory.saved import BROKEN, bytes_to_tensors, commit, restored, tensors_to_bytes

if TYPE_CHECKING:
    from pathlib import Path

    import torch

    from recollect.lab.checkpoint import Checkpoint
    from recollect.lab.experiment import Settings

Buffer = Literal["recollections", "real", "none"]


class RealImages(nn.Module):
    """A learned codec whose memory keeps images as they are, so that what it rehearses is real."""

    def __init__(self, learned: rc.DiscreteAutoencoder) -> None:
        super().__init__()
        self.learned = learned
        self._raw = rc.RawPixels(learned.shape)
        self.shape, self.storage_bits = learned.shape, learned.storage_bits
        self.variables, self.categories = self._raw.variables, self._raw.categories

    def encode(self, x: torch.Tensor) -> torch.Tensor:
        """Pixels as they are."""
        return self._raw.encode(x.cpu())

    def decode(self, codes: torch.Tensor) -> torch.Tensor:
        """Back."""
        return self._raw.decode(codes)

    def loss(self, x: torch.Tensor) -> torch.Tensor:
        """Of the codec that learns."""
        return self.learned.loss(x)


class Trainee:
    """A codec that is trained by `observe`; saved and loaded as a checkpoint asks.

    Args:
        codec: that learns.
        buffer: what it rehearses: its own recollections, real images or nothing.
        items: that the buffer keeps, a reservoir of all that was observed.
        rehearsed: of them that join each batch.
        training: settings of `RecollectionModule`.
        classes: of the stream, for what is billed.
        tasks: the same.
        seed: of the buffer.
    """

    def __init__(
        self,
        codec: rc.DiscreteAutoencoder,
        training: Settings,
        *,
        buffer: Buffer = "none",
        items: int = 0,
        rehearsed: int = 0,
        classes: int = 1,
        tasks: int = 1,
        seed: int = 0,
    ) -> None:
        self.codec, self.buffer, self.training = codec, buffer, training
        self.rehearsed = 0 if buffer == "none" else rehearsed
        self.progress: dict[str, Any] = {}
        # Without a buffer the memory only says whose codec is trained: nothing is written to it.
        memory = rc.Memory(
            RealImages(codec) if buffer == "real" else codec,
            capacity=max(items, 1),
            classes=classes,
            tasks=tasks,
            seed=seed,
        )
        self.module = rc.RecollectionModule(memory, **training)

    @property
    def memory(self) -> rc.Memory | None:
        """The buffer, for a codec that has one."""
        return None if self.buffer == "none" else self.module.memory

    @property
    def device(self) -> torch.device:
        """Where the codec is."""
        return next(self.codec.parameters()).device

    def observe(self, x: torch.Tensor, y: torch.Tensor, task: int) -> None:
        """Train the codec on new images and on what it rehearses, then keep the new ones as the buffer decides."""
        self.module.rehearse(x.to(self.device), self.rehearsed)
        if self.memory is not None:
            self.memory.write(x, y, task)

    def study(
        self,
        examples: rc.streams.Examples,
        task: int,
        size: int,
        measured: Any,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        """Observe what is left of some examples, in batches. ``measured`` counts those that were, and the seconds."""
        for x, y in itertools.islice(examples.batches(size), measured.batches, None):
            with timed(measured, "seconds"):
                self.observe(x, y, task)
            measured.batches += 1
            if checkpoint is not None:
                checkpoint.save_if_due(self, vars(measured))

    def save(self, path: Path, progress: dict[str, Any]) -> None:
        """Commit codec, optimiser, random states and buffer in one transaction."""
        parts = {
            "training": tensors_to_bytes(self.module.optimiser_state()),
            "progress": json.dumps(progress).encode(),
        }
        commit(self.module.memory, path, parts)
        self.progress = progress

    def loaded(self, path: Path) -> Self:
        """This trainee, as it was saved by one that was made alike."""
        with file.reading(path) as reader:
            memory = restored(rc.Memory, reader, self.module.memory.codec)
            self.module = rc.RecollectionModule(memory, **self.training)
            try:
                self.module.restore_optimiser(bytes_to_tensors(reader.parts["training"]))
                self.progress = json.loads(reader.parts["progress"])
            except BROKEN as error:
                reader.damaged(f"its progress cannot be read ({error})")
        return self
