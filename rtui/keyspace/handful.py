"""A handful of short names in one bytes object: how many, then each with its length in front.

A namespace with a million namespaces of one key below it costs one such object each, and nothing that the garbage
collector has to walk.
"""

from __future__ import annotations

from collections.abc import Sequence

MOST_NAMES = 8
"""A handful holds at most so many names."""

LONGEST_NAME = 64
"""No name of a handful is longer, in bytes."""

ONE = [bytes((1, length)) for length in range(LONGEST_NAME + 1)]
"""What stands in front of a name that is alone, by its length."""

_BYTE = [bytes((value,)) for value in range(256)]


def handful(names: Sequence[bytes]) -> bytes | None:
    """Pack names, or None where they are too many or too long."""
    if len(names) == 1:
        name = names[0]
        return ONE[len(name)] + name if len(name) <= LONGEST_NAME else None
    if len(names) > MOST_NAMES or max(map(len, names)) > LONGEST_NAME:
        return None
    parts = [_BYTE[len(names)]]
    for name in names:
        parts += (_BYTE[len(name)], name)
    return b"".join(parts)


def with_one(packed: bytes, name: bytes) -> bytes | None:
    """The handful with one name more, or None where it is full or the name too long."""
    if packed[0] >= MOST_NAMES or len(name) > LONGEST_NAME:
        return None
    return _BYTE[packed[0] + 1] + packed[1:] + _BYTE[len(name)] + name


def count_of(packed: bytes) -> int:
    """How many names the handful holds."""
    return packed[0]


def names_of(packed: bytes) -> list[bytes]:
    """All names of the handful, in order."""
    names = []
    at = 1
    while at < len(packed):
        start = at + 1
        at = start + packed[start - 1]
        names.append(packed[start:at])
    return names
