"""Longitude and latitude of the members of a geo key, which GEOADD keeps as the scores of a sorted set.

A score is a whole number of 52 bits, 26 of the longitude and 26 of the latitude, the highest bits first and in turns,
that of the longitude before that of the latitude. Each bit halves the range: -180° to 180° of longitude, ±85.05112878°
of latitude, where Web Mercator ends. See geohash.c in the sources of the server.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Final

STEPS: Final = 26
MAX_LONGITUDE: Final = 180.0
MAX_LATITUDE: Final = 85.05112878

MIN_SCORE: Final = 1 << 42
"""The smallest likely score: lower ones are a part of the Antarctic, or milliseconds since 1970 until the year 2109."""

RECENT_MICROSECONDS: Final = (1_420_070_400_000_000, 2_051_222_400_000_000)
"""The years 2015 to 2034 in microseconds since 1970, which are places on both sides of the North Atlantic as scores."""

_SPREAD: Final = (0x5555555555555555, 0x3333333333333333, 0x0F0F0F0F0F0F0F0F, 0x00FF00FF00FF00FF, 0x0000FFFF0000FFFF)


class Likeness(Enum):
    """How likely the scores of a sorted set are to be geo hashes."""

    NO = "no"
    POSSIBLE = "possible"
    """The scores may also be times in microseconds."""
    LIKELY = "likely"


def longitude_latitude(score: float) -> tuple[float, float] | None:
    """Return the position of a score in degrees, as GEOPOS does; None if it is not a score of a geo key."""
    if not 0 <= score < 4 << 2 * STEPS or score != int(score):
        return None
    longitude, latitude = _every_other(int(score) >> 1), _every_other(int(score))
    if max(longitude, latitude) > 1 << STEPS:  # the last degree itself has the number behind that of the last cell
        return None
    return _degrees(longitude, MAX_LONGITUDE), _degrees(latitude, MAX_LATITUDE)


def _every_other(bits: int) -> int:
    """Return the even bits of a number, packed together."""
    bits &= _SPREAD[0]
    for shift, mask in enumerate(_SPREAD[1:]):
        bits = (bits | bits >> (1 << shift)) & mask
    return (bits | bits >> 16) & 0xFFFFFFFF


def _degrees(cell: int, most: float) -> float:
    """Return the middle of a cell of the range from -most to most, computed in the same order as the server does."""
    low, width = -most, 2 * most
    first = low + (cell / (1 << STEPS)) * width
    last = low + ((cell + 1) / (1 << STEPS)) * width
    return max(-most, min(most, (first + last) / 2))


def geo_likeness(scores: Sequence[float]) -> Likeness:
    """Return how likely a page of scores of a sorted set is to be of a geo key.

    Geo scores are large whole numbers below 2^52. Numbers of whole milliseconds or seconds, and larger identifiers, are
    not.
    """
    if not scores or not all(MIN_SCORE <= score < 1 << 2 * STEPS and score == int(score) for score in scores):
        return Likeness.NO
    if all(score % 1_000 == 0 for score in scores):
        return Likeness.NO
    first, last = RECENT_MICROSECONDS
    return Likeness.POSSIBLE if all(first <= score < last for score in scores) else Likeness.LIKELY
