"""The buckets of all histograms of keys: where each begins, and which holds a number. Standard library only.

Sizes that differ by up to 2 % share a bucket: 1, 2, … 98 have one each, 99 and 100 share one, 101 to 103 the next, and
those around a mebibyte lie in buckets 20 KiB wide, so that 1,600 buckets reach up to a pebibyte.
"""

from __future__ import annotations

from typing import Final

MINUTE_S: Final = 60
HOUR_S: Final = 3600
DAY_S: Final = 86_400

TTL_EDGES_S: Final = (MINUTE_S, 10 * MINUTE_S, HOUR_S, DAY_S, 7 * DAY_S, 30 * DAY_S, 365 * DAY_S)
"""Borders of the time-to-live histogram in seconds: bin i holds what is below edge i and not below the one before."""

TTL_EDGES_MS: Final = (0, *(edge * 1000 for edge in TTL_EDGES_S))
"""The same in milliseconds, and in front a bin for keys that do not expire."""

IDLE_EDGES_S: Final = (MINUTE_S, HOUR_S, DAY_S, 7 * DAY_S, 30 * DAY_S, 90 * DAY_S)
"""Borders of the idle-time histogram in seconds."""

FREQUENCY_EDGES: Final = (1, 6, 10, 20, 50, 100, 255)
"""Borders of the histogram of LFU counters, 0 … 255; the last bin is the top of the counter alone."""

MOST_TINY: Final = 4
"""Bytes of a string that may stand for nothing: `null`, `nil`, `None`, `{}`, or an empty one."""

MOST_SHORT: Final = 64
"""Bytes of a value that a hash keeps in a listpack, by default (hash-max-listpack-value)."""

HIGHEST: Final = 1 << 50
"""Sizes above share the last bucket."""


def _size_buckets() -> tuple[list[int], list[int]]:
    """Return the lowest size of each bucket, and the size that stands for all in it: within 1 % of both ends."""
    lows, middles = [0], [0]
    low = 1
    while low <= HIGHEST:
        middle = low * 101 // 100
        lows.append(low)
        middles.append(middle)
        low = middle * 100 // 99 + 1
    return lows, middles


SIZE_LOWS, SIZE_MIDDLES = _size_buckets()
"""By bucket of sizes."""

FINENESS: Final = 6
"""A bin of expiries is at most 2^-6 = 1/64 as wide as it is far from the start of the pass, and at least a minute."""

LEVELS: Final = 50
"""Widths of bins go up to 2^50 minutes: more than the longest time to live that a server can hold."""


def level_borders(origin_min: int) -> list[int]:
    """Return the first minute since the epoch of each level but the lowest, of bins for a pass that began then.

    A bin of level n is 2^n minutes wide. The levels change at multiples of 64 widths, so that up to 64 neighbours join
    into one bin of a higher level without remainder.
    """
    steps = [1 << (level + FINENESS) for level in range(1, LEVELS)]
    return [-(-(origin_min + step) // step) * step for step in steps]
