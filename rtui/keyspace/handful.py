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

_LENGTH = [bytes((length,)) for length in range(256)]
_ONE = [bytes((1, length)) for length in range(LONGEST_NAME + 1)]


def handful(names: Sequence[bytes]) -> bytes | None:
    """Pack names, or None where they are too many or too long."""
    if len(names) == 1:
        name = names[0]
        return _ONE[len(name)] + name if len(name) <= LONGEST_NAME else None
    if len(names) > MOST_NAMES or max(map(len, names)) > LONGEST_NAME:
        return None
    parts = [_LENGTH[len(names)]]
    for name in names:
        parts += (_LENGTH[len(name)], name)
    return b"".join(parts)


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
