"""What is kept, by kind, and which code shape fits a storage constraint (the paper's appendix)."""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass, fields
from numbers import Real
from typing import TYPE_CHECKING

from recollect.checks import check_between, check_flag, check_image_shape
from recollect.packing import Scheme, bits_for, bits_per_item, check_code_shape, check_scheme

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MOST = 2**48  # items of a plan
FLOAT_BITS = 32  # the paper's parameters are float32
SMALLEST, LARGEST = 2, 256  # height and width of images that the autoencoder takes
LARGEST_OF_THREE = 64  # height and width that the paper's three layers are enough for
LEAST_FILTERS = 16  # in a layer that has fewer than others


class BudgetError(ValueError):
    """Nothing fits the storage that is allowed; the message says what is missing."""


@dataclass(frozen=True, kw_only=True)
class Bill:
    """Every bit that is kept, by kind.

    ``tables`` is what codes of different size need beside themselves: what they are like, and where they lie.
    ``free`` is room that is reserved and not used, down to the last byte; ``parameters`` are weights and what belongs
    to them that a learner keeps of earlier tasks.

    >>> bill = Bill(codes=3000 * 208, labels=3000 * 4, codec=32 * 1_087_321, example=28 * 28 * 8)
    >>> bill.total
    35430272
    >>> round(bill.examples["codes"], 1)
    99.5
    >>> print(bill)
    codes            624,000 bits      99.5 examples
    tables                 0 bits       0.0 examples
    labels            12,000 bits       1.9 examples
    tasks                  0 bits       0.0 examples
    ids                    0 bits       0.0 examples
    free                   0 bits       0.0 examples
    parameters             0 bits       0.0 examples
    codec         34,794,272 bits    5547.6 examples
    total         35,430,272 bits    5649.0 examples
    """

    codes: int
    tables: int = 0
    labels: int = 0
    tasks: int = 0
    ids: int = 0
    free: int = 0
    parameters: int = 0
    codec: int = 0
    example: int  # bits of one raw example, the unit of `examples`

    @property
    def bits(self) -> dict[str, int]:
        """Bits by kind, and their total."""
        kinds = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "example"}
        return kinds | {"total": sum(kinds.values())}

    @property
    def examples(self) -> dict[str, float]:
        """The same in raw examples: how many uncompressed examples would take as much."""
        return {kind: bits / self.example for kind, bits in self.bits.items()}

    @property
    def total(self) -> int:
        """All bits, the codec's own included."""
        return self.bits["total"]

    @property
    def incremental(self) -> int:
        """All bits but the codec's: what grows with experience."""
        return self.total - self.codec

    def __str__(self) -> str:
        rows = ((kind, bits, self.examples[kind]) for kind, bits in self.bits.items())
        return "\n".join(f"{kind:10}{bits:14,} bits{examples:10.1f} examples" for kind, bits, examples in rows)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A code shape, how many items are kept in it, and what that costs."""

    shape: tuple[int, int, int]
    variables: int
    categories: int
    items: int
    scheme: Scheme
    count_codec: bool

    @property
    def bits_per_item(self) -> int:
        """Bits of one stored code."""
        return bits_per_item(variables=self.variables, categories=self.categories, scheme=self.scheme)

    @property
    def capacity(self) -> float:
        """Effective bottleneck capacity, log2 l^c, in bits."""
        return self.variables * math.log2(self.categories)

    @property
    def parameter_count(self) -> int:
        """Parameters of the autoencoder with this code."""
        return autoencoder_parameters(self.shape, self.variables, self.categories)

    @property
    def bill(self) -> Bill:
        """Codes and codec. The codec stands on the bill whether the constraint counts it or not."""
        return Bill(
            codes=self.items * self.bits_per_item,
            codec=FLOAT_BITS * self.parameter_count,
            example=raw_bits(self.shape),
        )

    @property
    def compression(self) -> float:
        """How many times smaller than raw the items are; with ``count_codec`` the codec counts as stored."""
        stored = self.bill.total if self.count_codec else self.bill.codes
        return self.items * raw_bits(self.shape) / stored

    @property
    def hypothesis_1(self) -> bool:
        """Whether l^c >= L: an index buffer of this size is more efficient than sampling codes at random."""
        # l is at least 2, so that many variables always suffice: no need for the power.
        return self.variables >= self.items.bit_length() or self.categories**self.variables >= self.items


def plan(
    *,
    shape: Sequence[int],
    storage_examples: float | None = None,
    items: int | None = None,
    variables: int | None = None,
    categories: int | None = None,
    count_codec: bool = False,
    scheme: Scheme = "radix",
) -> Plan:
    """Find what is not given: the code shape for a number of items, or the items for a code shape.

    Storage is given in raw examples of ``shape``. With ``count_codec`` the codec's parameters count as storage
    (the paper's total constraint), without it only the codes do (its incremental constraint). The code shape has
    the largest capacity that is not above the raw image, and within 0.5 % of that the fewest parameters. Given items
    and code shape, the plan is checked against the storage, or only billed if no storage is given. Raises
    `BudgetError` if nothing fits.

    >>> best = plan(shape=(3, 32, 32), storage_examples=200, items=5000)
    >>> (best.variables, best.categories, best.bits_per_item, best.hypothesis_1)
    (620, 3, 983, True)
    >>> plan(shape=(3, 32, 32), storage_examples=200, variables=76, categories=2, count_codec=True).items
    1392
    >>> round(plan(shape=(1, 28, 28), items=50_000, variables=38, categories=2, count_codec=True).compression, 1)
    101.5
    """
    shape = check_autoencoder_shape(shape)
    check_scheme(scheme)
    check_flag("count_codec", count_codec)
    if items is not None:
        items = check_between("items", items, 1, MOST)
    storage = None
    if storage_examples is not None:
        if not isinstance(storage_examples, Real) or not 0 < storage_examples * raw_bits(shape) < math.inf:
            raise ValueError(f"storage_examples={storage_examples!r}: accepted is a positive number of raw examples")
        storage = int(storage_examples * raw_bits(shape))

    code = functools.partial(Plan, shape=shape, scheme=scheme, count_codec=count_codec)

    if variables is not None and categories is not None:
        variables, categories = _check_filters(variables, categories)
        if items is None and storage is not None:
            one = code(variables=variables, categories=categories, items=1)
            items = max(1, (storage - (one.bill.codec if count_codec else 0)) // one.bits_per_item)
        if items is not None:
            result = code(variables=variables, categories=categories, items=items)
            _check_fits(result, storage)
            return result
    elif (variables, categories) != (None, None):
        raise ValueError(f"variables={variables}, categories={categories}: accepted are both, or neither")
    elif items is not None and storage is not None:
        return _best_plan(functools.partial(code, items=items), storage)
    raise ValueError("plan() needs two of the three: storage_examples, items, variables with categories")


def autoencoder_parameters(shape: Sequence[int], variables: int, categories: int) -> int:
    """Parameters of the paper's autoencoder: 100 f^2 + 50 ch f + 5 f + ch with f = c l / 4 filters.

    That is for images up to 64x64, and for larger ones the sum over more layers: a convolution and a deconvolution of
    25 w v weights each between neighbours with w and v channels, and a bias for each channel that they give.

    >>> autoencoder_parameters((3, 32, 32), 76, 2), autoencoder_parameters((3, 256, 256), 76, 2)
    (150293, 198363)
    """
    channels = [shape[0], *filters_by_layer(shape, filters_of(variables, categories))]
    weights = sum(50 * large * small for large, small in itertools.pairwise(channels))
    return weights + sum(channels[1:]) + sum(channels[:-1])


def filters_by_layer(shape: Sequence[int], filters: int) -> list[int]:
    """Filters in each layer of an encoder from the image to the code, and of a decoder from the code to the image.

    The paper's three layers of as many filters each for images up to 64x64. Each doubling of the larger side has one
    more at the side of the image, where maps are large, with half the filters of the next; but not less than 16, unless
    all have less.

    >>> filters_by_layer((3, 32, 32), 104), filters_by_layer((3, 256, 200), 104)
    ([104, 104, 104], [26, 52, 104, 104, 104])
    """
    more = max(0, bits_for(max(shape[1:])) - bits_for(LARGEST_OF_THREE))
    halved = [max(min(filters, LEAST_FILTERS), filters >> n) for n in range(more, 0, -1)]
    return [*halved, *[filters] * 3]


def filters_of(variables: int, categories: int) -> int:
    """Filters at the bottleneck, whose 2x2 map holds exactly c l values."""
    variables, categories = _check_filters(variables, categories)
    return variables * categories // 4


def check_autoencoder_shape(shape: Sequence[int]) -> tuple[int, int, int]:
    """``shape``, after making sure that the autoencoder takes images of it."""
    channels, height, width = check_image_shape(shape)
    if not (min(height, width) >= SMALLEST and max(height, width) <= LARGEST):
        raise ValueError(
            f"shape={(channels, height, width)}: accepted are height and width from {SMALLEST} to {LARGEST}"
        )
    return channels, height, width


def raw_bits(shape: Sequence[int]) -> int:
    """Bits of one uncompressed example at 8 bits a channel."""
    return math.prod(shape) * 8


def _check_filters(variables: int, categories: int) -> tuple[int, int]:
    variables, categories = check_code_shape(variables, categories)
    if variables * categories % 4:
        raise ValueError(
            f"variables={variables}, categories={categories}: accepted are pairs whose product is a multiple of 4 "
            f"(the code is a 2x2 map; {variables} x {categories} = {variables * categories})"
        )
    return variables, categories


def _counted(result: Plan) -> int:
    return result.bill.total if result.count_codec else result.bill.codes


def _check_fits(result: Plan, storage: int | None, context: str = "") -> None:
    if storage is None or _counted(result) <= storage:
        return
    example, missing = raw_bits(result.shape), _counted(result) - storage
    codec = f" and a codec of {result.parameter_count:,} parameters" if result.count_codec else ""
    raise BudgetError(
        f"{context}{result.items:,} items of {result.variables}x{result.categories} ({result.bits_per_item} bits "
        f"each, {result.scheme}){codec} take {_counted(result):,} bits; the storage of {storage / example:.4g} "
        f"examples is {storage:,} bits, too little by {missing:,} bits ({missing / example:.4g} examples)"
    )


def _best_plan(code: Callable[..., Plan], storage: int) -> Plan:
    smallest = code(variables=2, categories=2)
    most_bits = min(storage // smallest.items, raw_bits(smallest.shape))  # of a code: none is larger than the image

    def most_variables(categories: int) -> int:
        """Cost grows with the variables, so the largest number that fits is found by halving."""
        step = _variable_step(categories)
        low, high = 0, int(most_bits / math.log2(categories)) // step + 1
        while low + 1 < high:
            middle = (low + high) // 2
            tried = code(variables=middle * step, categories=categories)
            fits = _counted(tried) <= storage and tried.bits_per_item <= most_bits
            low, high = (middle, high) if fits else (low, middle)
        return low * step

    most = {categories: most_variables(categories) for categories in range(2, 257)}
    best = max(variables * math.log2(categories) for categories, variables in most.items())
    if best == 0:
        _check_fits(smallest, storage, "no code shape fits, not even the smallest: ")
    candidates = []
    for categories, largest in most.items():
        step = _variable_step(categories)
        variables = math.ceil(0.995 * best / math.log2(categories) / step) * step
        if variables <= largest:
            candidates.append(code(variables=variables, categories=categories))
    return min(candidates, key=lambda plan: (plan.parameter_count, -plan.capacity, plan.categories))


def _variable_step(categories: int) -> int:
    """Variables come in multiples of this, for c l to be a multiple of 4."""
    return 4 // math.gcd(4, categories)
