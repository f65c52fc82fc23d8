"""How long the strings of a pattern are: few figures that tell small values from large ones.

Only strings whose length stands for that of others are counted: all where every key is asked, one in eight where that
is sampled. Tiny ones are counted by what is left of their lives as well: cached nulls are such.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from operator import add
from typing import Final, NamedTuple

from rtui.analysis.report.members import MOST_SHORT, MOST_TINY
from rtui.table import buckets

TTL_EDGES_MS: Final = buckets.TTL_EDGES_MS


class StringLengths(NamedTuple):
    """What the lengths of some strings add up to."""

    keys: int
    sum: int
    """Of their lengths."""
    long_keys: int
    """Of more than MOST_SHORT bytes."""
    tiny_keys: int
    """Of at most MOST_TINY bytes."""
    tiny_ttl: tuple[int, ...]
    """Those of them whose time to live is known, by TTL_EDGES_MS."""

    def joined(self, other: StringLengths | None) -> StringLengths:
        """Return the sum of both."""
        if other is None:
            return self
        return StringLengths(
            self.keys + other.keys,
            self.sum + other.sum,
            self.long_keys + other.long_keys,
            self.tiny_keys + other.tiny_keys,
            tuple(map(add, self.tiny_ttl, other.tiny_ttl)),
        )


def lengths_of(lengths: Sequence[int], ttl_ms: Sequence[int] | None) -> StringLengths:
    """Count strings, at least one, by their lengths; `ttl_ms` is parallel, or None where it is not known."""
    bins = [0] * (len(TTL_EDGES_MS) + 1)
    tiny = [at for at, length in enumerate(lengths) if length <= MOST_TINY] if min(lengths) <= MOST_TINY else []
    if ttl_ms is not None:
        for at in tiny:
            bins[bisect_right(TTL_EDGES_MS, ttl_ms[at])] += 1
    long_keys = sum(map(MOST_SHORT.__lt__, lengths)) if max(lengths) > MOST_SHORT else 0
    return StringLengths(len(lengths), sum(lengths), long_keys, len(tiny), tuple(bins))
