"""The lengths of the strings of a pattern, as a report has them."""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

from msgspec import Meta, Struct

from rtui.analysis.report.members import TTL_EDGES_S, Count
from rtui.table import buckets

MOST_TINY: Final = buckets.MOST_TINY
MOST_SHORT: Final = buckets.MOST_SHORT

_TinyBins: TypeAlias = Annotated[
    tuple[Count, ...], Meta(min_length=len(TTL_EDGES_S) + 2, max_length=len(TTL_EDGES_S) + 2)
]


class StringReport(Struct, frozen=True, gc=False):
    """The strings of a pattern whose length was asked, chosen independently of it: all of them, or one in eight."""

    asked_keys: Count
    length_bytes: Count
    """The sum of their lengths."""
    long_keys: Count
    """Those of more than MOST_SHORT bytes."""
    tiny_keys: Count
    """Those of at most MOST_TINY bytes."""
    tiny_ttl: _TinyBins
    """The tiny ones whose TTL is known: first those that do not expire, then by TTL_EDGES_S."""

    @property
    def mean(self) -> float:
        """Their mean length."""
        return self.length_bytes / self.asked_keys if self.asked_keys else 0.0
