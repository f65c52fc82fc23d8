"""HyperLogLogs and geo keys: the count that PFCOUNT computes, and the positions that GEOPOS returns.

The value of a HyperLogLog begins with 16 bytes: HYLL, how the registers are kept, three zeros, the count that PFCOUNT
has cached. Behind them 16,384 registers follow, each the length of the longest run of zeros, plus one, that a hash of
its share of the elements began with. Dense, a register takes 6 bits, the lowest first; sparse, runs of equal registers
are written as

    00nnnnnn            n + 1 registers of 0
    01nnnnnn nnnnnnnn   the same, for up to 16,384
    1vvvvvnn            n + 1 registers of v + 1

The estimate is that of Otmar Ertl (arXiv:1702.01284), for which it matters how many registers have each value. See
hyperloglog.c in the sources of the server.

GEOADD keeps longitude and latitude of a member as its score in a sorted set: a whole number of 52 bits, 26 of the
longitude and 26 of the latitude, the highest bits first and in turns, starting with the longitude. Each bit halves the
range: -180° to 180° of longitude, ±85.05112878° of latitude, where Web Mercator ends. See geohash.c.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from enum import Enum
from typing import Final

MAGIC: Final = b"HYLL"
HEADER_BYTES: Final = 16
REGISTERS: Final = 1 << 14
DENSE_BYTES: Final = HEADER_BYTES + REGISTERS * 6 // 8
_MAX_VALUE: Final = 64 - 14 + 1
_ALPHA: Final = 0.721347520444481703680
"""1 / (2 ln 2)"""


def estimate(data: bytes) -> int | None:
    """Return PFCOUNT's estimate of the number of distinct elements; None if `data` is not a complete HyperLogLog."""
    if not data.startswith(MAGIC) or len(data) < HEADER_BYTES or data[5:8] != b"\0\0\0":
        return None
    if data[4] == 0:
        values = _dense(data) if len(data) == DENSE_BYTES else None
    else:
        values = _sparse(data) if data[4] == 1 else None
    if values is None or values.total() != REGISTERS or max(values) > _MAX_VALUE:
        return None
    return _estimate(values)


def _dense(data: bytes) -> Counter[int]:
    """Count the registers of each value in the dense encoding, in which four registers of 6 bits share three bytes."""
    first, second, third = (data[HEADER_BYTES + at :: 3] for at in range(3))
    values = Counter(byte & 0x3F for byte in first)
    values.update(byte >> 2 for byte in third)
    values.update((low >> 6 | high << 2) & 0x3F for low, high in zip(first, second, strict=True))
    values.update((low >> 4 | high << 4) & 0x3F for low, high in zip(second, third, strict=True))
    return values


def _sparse(data: bytes) -> Counter[int] | None:
    """Count the registers of each value in the sparse encoding; None if the last run is cut."""
    values: Counter[int] = Counter()
    at = HEADER_BYTES
    while at < len(data):
        code = data[at]
        at += 1
        if code & 0x80:
            values[(code >> 2 & 0x1F) + 1] += (code & 3) + 1
        elif not code & 0x40:
            values[0] += code + 1
        elif at < len(data):
            values[0] += ((code & 0x3F) << 8 | data[at]) + 1
            at += 1
        else:
            return None
    return values


def _estimate(values: Counter[int]) -> int:
    total = REGISTERS * _tau((REGISTERS - values[_MAX_VALUE]) / REGISTERS)
    for value in range(_MAX_VALUE - 1, 0, -1):
        total = (total + values[value]) * 0.5
    total += REGISTERS * _sigma(values[0] / REGISTERS)
    return math.floor(_ALPHA * REGISTERS * REGISTERS / total + 0.5)


def _sigma(share: float) -> float:
    """Return the sum of share^(2^k) 2^(k-1) over all k from 1 on, plus the share."""
    if share == 1.0:
        return math.inf
    weight, total, before = 1.0, share, -1.0
    while total != before:
        share *= share
        before = total
        total += share * weight
        weight += weight
    return total


def _tau(share: float) -> float:
    """Return a third of 1 - share minus the sum of (1 - share^(2^-k))² 2^-k."""
    if share in (0.0, 1.0):
        return 0.0
    weight, total, before = 1.0, 1 - share, -1.0
    while total != before:
        share = math.sqrt(share)
        before = total
        weight *= 0.5
        total -= (1 - share) ** 2 * weight
    return total / 3


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
