"""The memories that are tried: a line of `candidates` for each kind, and what each of them would take."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from torch import nn

from recollect.advice.fitting import fitted_pixels, jpeg_bits
from recollect.budget import LARGEST, SMALLEST, Bill, BudgetError, plan, raw_bits
from recollect.codecs.autoencoder import DiscreteAutoencoder
from recollect.codecs.cosines import Cosines
from recollect.codecs.jpeg import JPEG
from recollect.codecs.pixels import RawPixels, ResizedPixels
from recollect.codecs.sketch import Sketch
from recollect.memory.memory import Memory
from recollect.memory.room import widths_of
from recollect.memory.targets import ClassLabels
from recollect.module import RecollectionModule
from recollect.packing import bits_per_item

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import torch

# Items for each raw example of the storage, as long as there are examples for so many.
PIXELS = (4, 8, 16, 32, 64, 128)
LEARNED = (32, 128)
MOST_BITS = 256  # of a learned code: the parameters of the codec, and the time of a trial, grow with its square
QUALITIES = (10, 50)  # of JPEG
SKETCHES = (0.36, 0.5, 0.65)  # height and width of a sketch, to those of the image
LEAST_CODED = 2**15  # bits in which it pays to learn what codes are like
COSINES = (0.015, 0.025, 0.04)  # a step, as the error that it makes in one pixel if all frequencies were wrong by it
CODEC_TRAINING: dict[str, Any] = {"steps": 1, "learning_rate": 1e-3, "most": 10, "warm_up": (1000, 10)}


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A memory that may be chosen: its codec with the arguments of its class, its items, and how the codec learns.

    Where codes are entropy-coded, ``code_bits`` is what they may take, and items and bits are about what
    comes of that.
    """

    name: str
    kind: str
    shape: tuple[int, int, int]
    codec: type[Any]
    code: dict[str, Any]
    items: int
    bits_per_item: int
    training: dict[str, Any] = field(default_factory=dict)  # of RecollectionModule
    code_bits: int | None = None

    def build(
        self, *, classes: int, tasks: int, examples: int | None = None, items: int | None = None, seed: int = 0
    ) -> RecollectionModule:
        """The memory, empty, in the module that trains its codec."""
        learned = issubclass(self.codec, nn.Module)
        codec = self.codec(self.shape, **self.code, **({"seed": seed} if learned else {}))
        items = self.items if items is None else items
        made = partial(Memory, codec, classes=classes, tasks=tasks, examples=examples, seed=seed)
        if self.code_bits is None:
            memory = made(capacity=items)
        else:
            share = self.code_bits * items // self.items
            memory = made(code_bits=max(share, min(LEAST_CODED, self.code_bits)), scheme="entropy")
        return RecollectionModule(memory, **self.training)

    def bill(self, *, classes: int, tasks: int) -> Bill:
        """What the memory takes when it is full."""
        codec = self.codec(self.shape, **self.code)
        widths = widths_of(codec, ClassLabels(classes), tasks, None, "radix")
        return Bill(
            codes=self.code_bits or self.items * self.bits_per_item,
            labels=self.items * widths["label_bits"],
            tasks=self.items * widths["task_bits"],
            ids=self.items * widths["id_bits"],
            codec=codec.storage_bits,
            example=raw_bits(self.shape),
        )


def candidates(x: torch.Tensor, bits: int, examples: int) -> list[Candidate]:
    """The memories whose codes fit in ``bits``, for a stream of ``examples`` of which ``x`` are some.

    >>> import torch
    >>> x = torch.linspace(0, 1, 64).view(1, 1, 8, 8)
    >>> for each in candidates(x, bits=10 * 8 * 8 * 8, examples=200):
    ...     print(f"{each.name}: {each.items} items of {each.bits_per_item} bits")
    raw pixels: 10 items of 512 bits
    pixels 4x4 of 8 bits: 40 items of 128 bits
    pixels 4x4 of 4 bits: 80 items of 64 bits
    pixels 3x2 of 4 bits: 213 items of 24 bits
    pixels 3x2 of 3 bits: 284 items of 18 bits
    JPEG of 5 bytes: 128 items of 40 bits
    JPEG of 8 bytes: 80 items of 64 bits
    autoencoder 16x2: 320 items of 16 bits
    """
    channels, height, width = x.shape[1:]
    shape, whole = (channels, height, width), raw_bits((channels, height, width))
    of, coded = partial(_candidate, shape=shape, bits=bits), partial(_coded, x=x, bits=bits)
    found = [of("raw pixels", "raw pixels", RawPixels, {})]
    for most in item_bits(bits, whole, examples, PIXELS):
        if (code := fitted_pixels(x, most)) is not None:
            down, right = code["size"]
            name = f"pixels {down}x{right} of {code['bits']} bit{'s' * (code['bits'] > 1)}"
            found.append(of("resized pixels", name, ResizedPixels, code))
    slots = (jpeg_bits(x, quality) for quality in QUALITIES)
    found += [of("JPEG", f"JPEG of {slot // 8} bytes", JPEG, {"bits": slot}) for slot in slots if slot and slot < whole]
    for code in _learned_codes(shape, [min(most, MOST_BITS) for most in item_bits(bits, whole, examples, LEARNED)]):
        name = f"autoencoder {code['variables']}x{code['categories']}"
        found.append(of("autoencoder", name, DiscreteAutoencoder, code, training=CODEC_TRAINING))
    for size in [(round(share * height), round(share * width)) for share in SKETCHES]:
        if min(size) >= 2:
            name = f"sketch of {size[0]}x{size[1]}"
            found.append(coded("sketch", name, Sketch, {"size": size}))
    for step in COSINES:
        code = {"size": (math.ceil(height / 2), math.ceil(width / 2)), "step": step * math.sqrt(height * width)}
        name = f"cosines in steps of {step:.1%}"
        found.append(coded("cosines", name, Cosines, code))
    different = {candidate.name: candidate for candidate in found if candidate.items}
    return [*different.values()]


def item_bits(bits: int, whole: int, examples: int, compressions: Sequence[int]) -> list[int]:
    """Bits of an item where each raw example of the storage makes room for so many.

    They are no smaller than it takes to keep all examples, and no larger than with the first of the compressions.

    >>> item_bits(bits=10_000, whole=1000, examples=100, compressions=(4, 8, 16, 32))
    [250, 125, 100]
    """
    counts = dict.fromkeys(min(each * bits // whole, examples) for each in compressions)
    return [min(bits // count, whole // compressions[0]) for count in counts if count]


def _learned_codes(shape: tuple[int, int, int], most_bits: list[int]) -> Iterator[dict[str, Any]]:
    """The code of the paper's autoencoder for each of so many bits, where images and bits allow one."""
    if not SMALLEST <= min(shape[1:]) <= max(shape[1:]) <= LARGEST:
        return
    for most in most_bits:
        try:
            code = plan(shape=shape, storage_examples=(most + 0.5) / raw_bits(shape), items=1)
        except BudgetError:
            continue
        yield {"variables": code.variables, "categories": code.categories}


def _coded(kind: str, name: str, codec: type[Any], code: dict[str, Any], *, x: torch.Tensor, bits: int) -> Candidate:
    """As many items as are likely to fit, each in as few bits as what is learned from the images allows."""
    shape = (x.shape[1], x.shape[2], x.shape[3])
    memory = Memory(codec(shape, **code), code_bits=2 * raw_bits(shape) * len(x), scheme="entropy")
    memory.write(x, 0)
    bill = memory.footprint()
    each = -(-bill.codes // len(x))
    items = max(0, bits - bill.tables) // each if bits >= LEAST_CODED else 0
    plain = _candidate(kind, name, codec, code, shape=shape, bits=bits)
    return replace(plain, items=items, bits_per_item=each, code_bits=bits)


def _candidate(
    kind: str,
    name: str,
    codec: type[Any],
    code: dict[str, Any],
    *,
    shape: tuple[int, int, int],
    bits: int,
    training: dict[str, Any] | None = None,
) -> Candidate:
    """As many items as fit."""
    made = codec(shape, **code)
    width = bits_per_item(variables=made.variables, categories=made.categories)
    return Candidate(
        name=name,
        kind=kind,
        shape=shape,
        codec=codec,
        code=code,
        items=bits // width,
        bits_per_item=width,
        training=training or {},
    )
