"""What memories keep, for rows of any table: real images, JPEG, and whatever is coded, as much of it as fits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import recollect as rc

if TYPE_CHECKING:
    from recollect.lab.experiment import Settings


def real(storage: int) -> Settings:
    """Images as they are."""
    return {"codec": rc.RawPixels, "items": storage}


def jpeg(room: int, bits: int) -> Settings:
    """JPEG without its header, as many images of so many bits as fit.

    >>> jpeg(room=10 * 28 * 28 * 8, bits=416)["items"]
    150
    """
    return {"codec": rc.JPEG, "code": {"bits": bits}, "items": room // bits}


def coded(codec: type[rc.Codec], room: int, code: Settings, training: Settings | None = None) -> Settings:
    """As many codes as fit, in as few bits as what is learned of them allows."""
    return {"codec": codec, "code": code, "code_bits": room, "scheme": "entropy", "training": training or {}}
