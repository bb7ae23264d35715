"""How many records a segment of the file has: few, so that a change costs little, and so that they fill their pages."""

from __future__ import annotations

PAGE = 1024  # bytes of a page of the database
ROW = 26  # bytes that a row has beside its data: header, number and checksum
SMALLEST, LARGEST = 3_500, 40_000  # bytes of a segment
GOOD = 0.015  # overhead that is not worth a larger segment


def segment_slots(record_bits: int) -> int:
    """Slots of a segment, a multiple of eight: so many fields of any width are whole bytes.

    >>> segment_slots(416 + 64 + 4 + 5)
    120
    """
    fewest = 8 * -(-SMALLEST // record_bits)
    tried = range(fewest, max(fewest, 8 * LARGEST // record_bits) + 1, 8)
    overheads = ((slots, overhead(slots // 8 * record_bits)) for slots in tried)
    best = fewest, overhead(fewest // 8 * record_bits)
    for slots, found in overheads:
        if found < best[1]:
            best = slots, found
        if found <= GOOD:
            break
    return best[0]


def overhead(data: int) -> float:
    """The share by which a database is larger than segments of ``data`` bytes.

    A row that does not fit a page has its end on pages of its own, and only what is left over shares a page with other
    rows. The format of SQLite says how much that is (section 1.6, cell payload overflow pages).
    """
    payload, most = data + ROW, PAGE - 35
    local, pages = payload, 0
    if payload > most:
        least = (PAGE - 12) * 32 // 255 - 23
        local = least + (payload - least) % (PAGE - 4)
        local = local if local <= most else least
        pages = -(-(payload - local) // (PAGE - 4))
    shared = (PAGE - 8) // (local + 6)
    return (PAGE * pages + PAGE / shared) / data - 1
