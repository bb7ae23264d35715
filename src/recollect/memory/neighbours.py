"""Codes that are pictures of bits, in fewer bits: what stands around a pixel says what the pixel is.

How, is learned from codes by a network so small that it is kept with them.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Self, TypeVar

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F

from recollect.memory.coder import stream

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from recollect.memory.coder import Codes, Words

Numbers = npt.NDArray[np.float32]  # whole ones, below 2^24: sums and products of these are exact in any order
T = TypeVar("T", bound=np.generic)
Before = np.uint16  # a bit for each pixel that is looked at

REACH = 2  # a pixel is judged by those so far to its left, and up to so many rows above, so far to both sides
BEFORE = [(down, across) for down in range(-REACH, 1) for across in range(-REACH, REACH + 1) if (down, across) < (0, 0)]
POWERS = 2 ** np.arange(len(BEFORE), dtype=Before)[::-1, None]
PLACE = 16  # where a pixel is, from -16 to 16, down and across, and the squares of both
SEEN = len(BEFORE) + 4 + 1  # with a one, for the bias
HIDDEN = 16
UNIT = 32  # a weight of 1
BYTES = (SEEN + 1) * HIDDEN + 1
LEVELS = 16  # of a logit of 1, as it is looked up
MOST = 8 * LEVELS  # the largest that is told from larger ones
CHANCES = np.array([round(2**12 / (1 + math.exp(-level / LEVELS))) for level in range(-MOST, MOST + 1)]) / 2**12

EXAMPLES, BATCH = 2**18, 2**14  # pixels that a network is trained on at most, and in one step: in whole pictures
COLD, WARM = (300, 0.05), (100, 0.01)  # steps and learning rate: of a new network, and of one that learns on


class Neighbours:
    """How likely each pixel is to be 1, and the range coder that goes by it.

    A network with 16 hidden units sees the 12 pixels around that come before, and where it is. Its weights are whole
    numbers, a byte each, and all that is computed from them is exact: what one machine writes another reads. Without
    ``data`` there is no network, and 0 and 1 are as likely.

    Args:
        variables: pixels of a code, channel after channel, row after row.
        picture: height and width.
        data: the weights.

    >>> bars = np.arange(12) < np.random.default_rng(0).integers(13, size=(500, 12, 1))  # from the left, of any length
    >>> codes = bars.reshape(500, 144).astype(np.uint8)
    >>> coder = Neighbours(144, (12, 12)).learned([codes])
    >>> words = coder.encode(codes)
    >>> 8 * words.nbytes / 500 < 46  # of 144 bits: twelve bars of thirteen lengths tell 44.4
    True
    >>> np.array_equal(coder.decode([words], [500]), codes)
    True
    """

    categories = 2
    block = 32  # decoding takes longer than by frequencies

    def __init__(self, variables: int, picture: tuple[int, int], data: bytes = b"") -> None:
        self.variables, self.picture, self.data = variables, picture, data
        if data and len(data) != BYTES:
            raise ValueError(f"{len(data)} bytes that are no weights: accepted are {BYTES}")

    def holding(self, data: bytes) -> Self:
        """That of another network."""
        return type(self)(self.variables, self.picture, data)

    def learned(self, parts: Iterable[Codes], *, anew: bool = True) -> Self:
        """The network trained on with these codes; none if it does not make up for its own bits."""
        codes = _some(np.concatenate([self._pictures(part) for part in (np.empty(0, np.uint8), *parts)]))
        raw, own = codes.size, 8 * BYTES
        if raw <= own:
            return self.holding(b"")
        start = None if anew or not self.data else np.frombuffer(self.data, np.int8) / UNIT
        learned = self.holding(_trained(codes, self._places, start))
        chances = learned._chances(codes).T
        bits = -np.log2(np.where(codes.reshape(chances.shape), chances, 1 - chances)).sum()
        return learned if bits + own < raw else self.holding(b"")

    def encode(self, codes: Codes) -> Words:
        """Codes, n x variables, one diagonal after the other."""
        pictures = self._pictures(codes)
        order = np.concatenate(self._waves)
        chances = self._chances(pictures)[order].ravel()
        values = pictures.reshape(len(pictures), -1).T[order].ravel().astype(np.int32)
        encoder = stream.queue.RangeEncoder()
        encoder.encode(values, stream.model.Bernoulli(perfect=False), chances)
        return encoder.get_compressed()

    def decode(self, blocks: Sequence[Words], counts: Sequence[int]) -> Codes:
        """Blocks of so many codes back, all of them diagonal by diagonal."""
        height, width = self.picture
        columns = np.cumsum([0, *counts]) * (self.variables // (height * width))
        canvas = _framed(np.zeros((height, width, columns[-1]), Before))
        flat = canvas.reshape(-1, columns[-1])
        decoders = [stream.queue.RangeDecoder(words) for words in blocks]
        coin = stream.model.Bernoulli(perfect=False)
        for wave in self._waves:
            chances = self._judged(self._seen(flat, wave), wave)
            pixels = np.empty(chances.shape, Before)
            for decoder, start, stop in zip(decoders, columns, columns[1:], strict=False):
                try:
                    values = decoder.decode(coin, chances[:, start:stop].ravel())
                except AssertionError as error:
                    raise ValueError(f"a block of words that no {stop - start} pictures are coded in") from error
                pixels[:, start:stop] = values.reshape(len(wave), -1)
            flat[self._at[wave]] = pixels
        pictures = canvas[REACH:, REACH:-REACH].astype(np.uint8)
        return np.moveaxis(pictures, 2, 0).reshape(-1, self.variables)

    def _pictures(self, codes: Codes) -> Codes:
        """Each channel by itself."""
        return codes.reshape(-1, *self.picture)

    def _chances(self, pictures: Codes) -> npt.NDArray[np.float64]:
        """How likely each pixel is to be 1, by those before it, pixels x n."""
        flat = _framed(np.moveaxis(pictures, 0, 2).astype(Before)).reshape(-1, len(pictures))
        pixels = np.arange(pictures[0].size)
        return self._judged(self._seen(flat, pixels), pixels)

    def _seen(self, flat: npt.NDArray[Before], pixels: npt.NDArray[np.intp]) -> npt.NDArray[Before]:
        """What is before these pixels, pixels x n, a bit for each of BEFORE; ``flat`` has framed pixels x n."""
        return (flat[self._before[pixels]] * POWERS).sum(1, dtype=Before)

    def _judged(self, seen: npt.NDArray[Before], pixels: npt.NDArray[np.intp]) -> npt.NDArray[np.float64]:
        """How likely these pixels are to be 1, by what is before them, pixels x n."""
        if not self.data:
            return np.full(seen.shape, 0.5)
        levels, kinds = self._levels
        return CHANCES[levels[kinds[pixels, None], seen]]

    @functools.cached_property
    def _levels(self) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.intp]]:
        """The network as a table, for each kind of place and all that can be before it, and the kind of each pixel.

        There are at most 33 x 33 kinds, whatever the picture. To look up is faster than to compute.
        """
        weights = np.frombuffer(self.data, np.int8).astype(np.float32)
        first, second = weights[: SEEN * HIDDEN].reshape(SEEN, HIDDEN), weights[SEEN * HIDDEN :]
        places, kinds = np.unique(self._places, axis=0, return_inverse=True)
        every = np.arange(2 ** len(BEFORE)) >> np.arange(len(BEFORE))[::-1, None] & 1
        seen = PLACE * first[: len(BEFORE)].T @ every.astype(np.float32)
        levels = np.empty((len(places), len(seen[0])), np.uint16)
        for level, place in zip(levels, places @ first[len(BEFORE) :], strict=True):
            hidden = np.maximum(seen + place[:, None], 0)
            hidden = np.floor(hidden / PLACE)  # by UNIT
            logit = (second[:HIDDEN] @ hidden + UNIT * second[HIDDEN]) / UNIT**2
            level[:] = np.clip(np.floor(LEVELS * logit), -MOST, MOST) + MOST
        return levels, kinds.ravel()  # which some versions of numpy shape otherwise

    @functools.cached_property
    def _at(self) -> npt.NDArray[np.intp]:
        """Where each pixel is in its frame."""
        return self._framed_at(0, 0)

    @functools.cached_property
    def _before(self) -> npt.NDArray[np.intp]:
        """Where each of BEFORE is in its frame, pixels x 12."""
        return np.stack([self._framed_at(down, across) for down, across in BEFORE], 1)

    def _framed_at(self, down: int, across: int) -> npt.NDArray[np.intp]:
        rows, columns = np.divmod(np.arange(math.prod(self.picture)), self.picture[1])
        return (REACH + rows + down) * (self.picture[1] + 2 * REACH) + REACH + columns + across

    @functools.cached_property
    def _places(self) -> Numbers:
        """Where each pixel is, pixels x 5."""
        down, across = (PLACE * (2 * np.arange(size) - size + 1) // size for size in self.picture)
        down, across = (of.ravel() for of in np.meshgrid(down, across, indexing="ij"))
        columns = (down, across, down**2 // PLACE, across**2 // PLACE, np.full_like(down, PLACE))
        return np.stack(columns, 1).astype(np.float32)

    @functools.cached_property
    def _waves(self) -> list[npt.NDArray[np.intp]]:
        """Pixels that do not see each other, on diagonals; all that they see is on earlier ones."""
        height, width = self.picture
        time = np.add.outer((REACH + 1) * np.arange(height), np.arange(width)).ravel()
        return [np.flatnonzero(time == moment) for moment in np.unique(time)]


def _some(pictures: Codes) -> Codes:
    """Evenly spaced ones, if they are many."""
    most = max(1, EXAMPLES // pictures[0].size) if len(pictures) else 1
    return pictures[:: max(1, -(-len(pictures) // most))]


def _framed(pictures: npt.NDArray[T]) -> npt.NDArray[T]:
    """Height x width x n, with zeros above and at both sides."""
    return np.pad(pictures, ((REACH, 0), (REACH, REACH), (0, 0)))


def _around(pictures: Codes) -> Numbers:
    """What is before each pixel, pixels x BEFORE x n."""
    count, height, width = pictures.shape
    framed = _framed(np.moveaxis(pictures, 0, 2).astype(np.float32))
    shifted = [framed[REACH + row :, REACH + column :][:height, :width] for row, column in BEFORE]
    return np.stack(shifted, 2).reshape(height * width, len(BEFORE), count)


@torch.inference_mode(mode=False)
@torch.enable_grad()
def _trained(pictures: Codes, places: Numbers, start: npt.NDArray[np.float64] | None) -> bytes:
    """Weights with which the bits of pictures are few, from others on or from random ones."""
    seen, where = torch.from_numpy(_around(pictures)).permute(2, 0, 1).contiguous(), torch.from_numpy(places) / PLACE
    wanted = torch.from_numpy(pictures.reshape(len(pictures), -1).astype(np.float32))
    draws = torch.Generator().manual_seed(0)
    steps, rate = COLD if start is None else WARM
    weights = 0.3 * torch.randn(BYTES, generator=draws) if start is None else torch.from_numpy(start).float()
    weights.requires_grad_()
    optimiser = torch.optim.Adam([weights], rate)
    most, batch = 127 / UNIT, max(1, BATCH // len(places))
    for step in range(steps):
        optimiser.param_groups[0]["lr"] = rate * (1 - step / steps)
        rows = torch.randint(len(seen), (batch,), generator=draws)
        first, second = weights[: SEEN * HIDDEN].view(SEEN, HIDDEN), weights[SEEN * HIDDEN :]
        hidden = (seen[rows] @ first[: len(BEFORE)] + where @ first[len(BEFORE) :]).relu()
        logits = hidden @ second[:HIDDEN] + second[HIDDEN]
        loss = F.binary_cross_entropy_with_logits(logits, wanted[rows], reduction="sum") / batch
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        with torch.no_grad():
            weights.clamp_(-most, most)
    return (weights.detach() * UNIT).round().to(torch.int8).numpy().tobytes()
