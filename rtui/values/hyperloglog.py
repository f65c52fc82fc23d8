"""The number of different elements of a HyperLogLog, from its registers, as PFCOUNT computes it.

The value begins with 16 bytes: HYLL, how the registers are kept, three zeros, the count that PFCOUNT has cached. Behind
them 16,384 registers follow, each the length of the longest run of zeros, plus one, that a hash of its share of the
elements began with. Dense, a register takes 6 bits, the lowest first; sparse, runs of equal registers are written as

    00nnnnnn            n + 1 registers of 0
    01nnnnnn nnnnnnnn   the same, for up to 16,384
    1vvvvvnn            n + 1 registers of v + 1

The estimate is that of Otmar Ertl (arXiv:1702.01284), for which it matters how many registers have each value. See
hyperloglog.c in the sources of the server.
"""

from __future__ import annotations

import math
from collections import Counter
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
