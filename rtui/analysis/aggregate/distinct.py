"""Counts different names in bounded memory, whatever their order: the smallest hashes stand for all (KMV).

Bar-Yossef et al., "Counting distinct elements in a data stream" (2002). Hashes are as good as drawn at random, so the
256th smallest of 50,000 different ones lies at about 256/50,000 of their range; that tells how many there are, to
within an eighth nineteen times in twenty. Up to 255 names the count is exact. The same name has the same hash, so names
that come again change nothing, and two sketches are merged by putting their hashes together.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import sqrt
from typing import Final
from zlib import crc32

from rtui.analysis.estimates import Estimate

MOST_HASHES: Final = 256
"""Hashes that a sketch keeps."""

_MOST_AT_ONCE: Final = 4 * MOST_HASHES
"""With more than so many, those that are not among the smallest are let go: choosing them each time would be slow."""

_RANGE: Final = 1 << 32
_MASK: Final = _RANGE - 1
_MIX: Final = 0x9E3779B1
"""A checksum is linear in the bits of a name: times an odd number, those of counted names are spread like others."""

_DEVIATIONS: Final = 1.96
"""Standard deviations on either side that hold 95 % of all estimates."""

_CODED: Final = re.compile(rb"[0-9=@]").search


def name_hash(name: bytes) -> int:
    """Return the hash of a name, of 32 bits; the last bit says that it looks like a code rather than a word."""
    return crc32(name) * _MIX & _MASK & ~1 | (_CODED(name) is not None)


class Distinct:
    """How many different hashes there are."""

    __slots__ = ("_hashes", "_limit")

    def __init__(self) -> None:
        self._hashes: set[int] = set()
        """The smallest of them, and some others."""
        self._limit = _RANGE
        """Larger hashes, and this one, are not kept."""

    @property
    def hashes(self) -> set[int]:
        """The smallest of them, at most MOST_HASHES."""
        if len(self._hashes) > MOST_HASHES:
            self._let_go()
        return self._hashes

    def _let_go(self) -> None:
        kept = sorted(self._hashes)[:MOST_HASHES]
        self._hashes, self._limit = set(kept), kept[-1]

    def add(self, hashes: Iterable[int]) -> None:
        """Count hashes."""
        limit = self._limit
        self._hashes.update([one for one in hashes if one < limit])
        if len(self._hashes) > _MOST_AT_ONCE:
            self._let_go()

    def add_names(self, names: Iterable[bytes]) -> None:
        """Count names that have been recognised as identifiers, or have a number in them."""
        limit = self._limit
        new = [one | 1 for crc in map(crc32, names) if (one := crc * _MIX & _MASK) < limit]
        if new:
            self.add(new)

    def count(self) -> int | Estimate:
        """Return how many different names there are: exact, or with an interval of 95 %."""
        smallest = self.hashes
        if len(smallest) < MOST_HASHES:
            return len(smallest)
        value = (MOST_HASHES - 1) * _RANGE / (max(smallest) + 1)
        spread = _DEVIATIONS / sqrt(MOST_HASHES - 2)
        return Estimate(round(value * (1 - spread)), round(value), round(value * (1 + spread)))

    def coded(self) -> float:
        """Return the share of names that look like codes rather than words."""
        smallest = self.hashes
        return sum(one & 1 for one in smallest) / max(1, len(smallest))
