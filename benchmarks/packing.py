"""Items a second that are packed and unpacked, beside numpy.packbits on the same bits as the bound."""

from __future__ import annotations

import numpy as np

from benchmarks.harness import report, seconds
from recollect.packing import Scheme, bits_per_item, pack, unpack

ITEMS = 20_000
SHAPES = [(104, 4), (620, 3), (139, 8)]
SCHEMES: tuple[Scheme, Scheme] = ("binary", "radix")


def main() -> None:
    rows = []
    for variables, categories in SHAPES:
        codes = np.random.default_rng(0).integers(0, categories, (ITEMS, variables)).astype(np.uint8)
        for scheme in SCHEMES:
            code = {"categories": categories, "scheme": scheme}
            packed = pack(codes, **code)
            bits = np.unpackbits(packed, axis=1)
            bound = ITEMS / seconds(lambda bits=bits: np.packbits(bits, axis=1))
            packing = ITEMS / seconds(lambda codes=codes, code=code: pack(codes, **code))
            unpacking = ITEMS / seconds(
                lambda packed=packed, code=code, variables=variables: unpack(packed, variables=variables, **code)
            )
            rows.append(
                {
                    "code": f"{variables}x{categories}",
                    "scheme": scheme,
                    "bits_an_item": bits_per_item(variables=variables, **code),
                    "pack_items_a_second": round(packing),
                    "unpack_items_a_second": round(unpacking),
                    "packbits_items_a_second": round(bound),
                    "pack_to_packbits": packing / bound,
                    "unpack_to_packbits": unpacking / bound,
                }
            )
    report("packing", rows)


if __name__ == "__main__":
    main()
