"""Bitmaps: strings whose bits are set one by one. Nothing marks them, so this is a guess that says so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

SPARSE_BITS: Final = 1
"""A byte counts as typical of a bitmap when all its bits but this many are equal."""

TYPICAL_SHARE: Final = 0.75
"""What part of a window must be typical. Of random bytes it is 7 %."""

_TYPICAL: Final = bytes(value for value in range(256) if not SPARSE_BITS < value.bit_count() < 8 - SPARSE_BITS)


def may_be_bitmap(window: bytes) -> bool:
    """Whether most bytes are nearly all zeros or nearly all ones, as where few or almost all bits are set."""
    if not window:
        return False
    return len(window) - len(window.translate(None, _TYPICAL)) >= TYPICAL_SHARE * len(window)


def count_bits(window: bytes) -> int:
    """Count the bits that are set, as BITCOUNT does."""
    return int.from_bytes(window, "big").bit_count()


def set_bits(window: bytes, offset_bytes: int = 0) -> Iterator[int]:
    """Give the positions of the set bits as GETBIT counts them: from the most significant bit of the first byte."""
    for index, byte in enumerate(window):
        if byte:
            base = (offset_bytes + index) * 8
            for bit in range(8):
                if byte & (0x80 >> bit):
                    yield base + bit
