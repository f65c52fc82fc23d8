"""The segments of a whole column of names, as places in one string of bytes, with their hashes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

_STEP: Final = 0x9E3779B97F4A7C15
_INVERSE: Final = pow(_STEP, -1, 1 << 64)
_MIX: Final = np.uint64(0xBF58476D1CE4E5B9)
_SHIFT: Final = np.uint64(31)
_CODED: Final = tuple(b"0123456789=@")


def hashes(joined: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return a hash of the bytes between each start and end, the same in any process.

    A polynomial of the bytes, modulo 2^64: the difference of two running sums, moved to where the first byte is.
    """
    powers, inverses = _powers(1 << len(joined).bit_length())
    sums = np.zeros(len(joined) + 1, np.uint64)
    np.cumsum((joined.astype(np.uint64) + np.uint64(1)) * powers[: len(joined)], out=sums[1:])
    found = (sums[ends] - sums[starts]) * inverses[starts]
    return mixed(found + (ends - starts).astype(np.uint64))


def mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return values whose bits are spread over all others."""
    values = (values ^ values >> _SHIFT) * _MIX
    return values ^ values >> _SHIFT


@lru_cache(1)
def _powers(count: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    return tuple(  # type: ignore[return-value]
        np.cumprod(np.append(np.uint64(1), np.full(count - 1, step, np.uint64))) for step in (_STEP, _INVERSE)
    )


def name_hashes(names: Sequence[bytes]) -> NDArray[np.uint32]:
    """Return hashes of 32 bits; the last bit says that a name looks like a code rather than a word."""
    joined = np.frombuffer(b"".join(names), np.uint8)
    ends = np.cumsum(np.array([len(name) for name in names], np.int64))
    starts = np.append(0, ends[:-1])
    is_coded = np.append(0, np.cumsum(np.isin(joined, _CODED)))
    return distinct_hashes(hashes(joined, starts, ends), is_coded[ends] > is_coded[starts])


def distinct_hashes(of_names: NDArray[np.uint64], is_coded: NDArray[np.bool_]) -> NDArray[np.uint32]:
    """Return the hashes by which different names are counted."""
    return (of_names >> np.uint64(32)).astype(np.uint32) & ~np.uint32(1) | is_coded
