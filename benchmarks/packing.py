"""Items a second that are packed and unpacked, beside numpy.packbits and unpackbits on the same bits as the bound."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.harness import Rows, in_turns, report
from recollect.packing import Scheme, bits_per_item, pack, unpack

ITEMS = 20_000
SHAPES = [(104, 4), (620, 3), (139, 8)]
SCHEMES: tuple[Scheme, Scheme] = ("binary", "radix")


def measured() -> Rows:
    rows = []
    for variables, categories in SHAPES:
        codes = np.random.default_rng(0).integers(0, categories, (ITEMS, variables)).astype(np.uint8)
        for scheme in SCHEMES:
            code = {"categories": categories, "scheme": scheme}
            packed = pack(codes, **code)
            bits = np.unpackbits(packed, axis=1)
            times = in_turns(
                partial(pack, codes, **code),
                partial(np.packbits, bits, axis=1),
                partial(unpack, packed, variables=variables, **code),
                partial(np.unpackbits, packed, axis=1),
            )
            packing, most_packed, unpacking, most_unpacked = (ITEMS / taken for taken in times)
            rows.append(
                {
                    "code": f"{variables}x{categories}",
                    "scheme": scheme,
                    "bits_an_item": bits_per_item(variables=variables, **code),
                    "pack_items_a_second": round(packing),
                    "unpack_items_a_second": round(unpacking),
                    "pack_to_packbits": packing / most_packed,
                    "unpack_to_unpackbits": unpacking / most_unpacked,
                }
            )
    return rows


if __name__ == "__main__":
    report("packing", measured)
