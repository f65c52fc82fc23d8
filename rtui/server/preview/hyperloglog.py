"""HyperLogLog strings, read from their header: PFCOUNT would write the count back into the key."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

MAGIC: Final = b"HYLL"
"""The first four bytes."""

HEADER_BYTES: Final = 16
"""Magic, encoding, three zero bytes, cached count (hyperloglog.c, struct hllhdr)."""

DENSE_BYTES: Final = HEADER_BYTES + 16384 * 6 // 8
"""The size of each dense one: 16,384 registers of 6 bits."""

_STALE: Final = 0x80
"""The bit of the last header byte that says that the cached count is out of date."""


class HyperLogLogEncoding(StrEnum):
    """How the registers are kept."""

    DENSE = "dense"
    SPARSE = "sparse"


@dataclass(frozen=True, slots=True)
class HyperLogLog:
    """A HyperLogLog's header; the count is None when an element was added since PFCOUNT last ran."""

    encoding: HyperLogLogEncoding
    cached_count: int | None


def read_hyperloglog(head: bytes, size_bytes: int | None) -> HyperLogLog | None:
    """Read the first 16 bytes of a string of `size_bytes`, if that is known; None when it can't be a HyperLogLog."""
    if len(head) < HEADER_BYTES or not head.startswith(MAGIC) or head[5:8] != b"\0\0\0":
        return None
    if head[4] == 0 and size_bytes in (DENSE_BYTES, None):
        encoding = HyperLogLogEncoding.DENSE
    elif head[4] == 1 and (size_bytes is None or size_bytes > HEADER_BYTES):
        encoding = HyperLogLogEncoding.SPARSE
    else:
        return None
    stale = head[15] & _STALE
    return HyperLogLog(encoding, None if stale else int.from_bytes(head[8:16], "little"))
