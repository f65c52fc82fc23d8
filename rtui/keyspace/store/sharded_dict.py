"""A dictionary that never takes long to grow, for namespaces with hundreds of thousands of namespaces below them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Generic, TypeVar

V = TypeVar("V")

WIDE = 1 << 13
"""From so many entries on a dictionary is divided: to move them when it grows takes half a millisecond."""

PARTS = 64
"""Entries are divided among so many dictionaries by their hashes; a power of two."""


class WideDict(Generic[V]):
    """Many dictionaries that look like one; each grows on its own."""

    __slots__ = ("parts",)

    parts: list[dict[bytes, V]]
    """An entry is in the part that the last bits of its hash say."""

    def __init__(self, entries: dict[bytes, V]) -> None:
        self.parts = [{} for _ in range(PARTS)]
        for key, value in entries.items():
            self[key] = value

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def __contains__(self, key: bytes) -> bool:
        return key in self.parts[hash(key) & PARTS - 1]

    def __getitem__(self, key: bytes) -> V:
        return self.parts[hash(key) & PARTS - 1][key]

    def __setitem__(self, key: bytes, value: V) -> None:
        self.parts[hash(key) & PARTS - 1][key] = value

    def __delitem__(self, key: bytes) -> None:
        del self.parts[hash(key) & PARTS - 1][key]

    def get(self, key: bytes) -> V | None:
        """The value of this key, None if it has none."""
        return self.parts[hash(key) & PARTS - 1].get(key)

    def values(self) -> Iterator[V]:
        """All values, in no particular order."""
        return chain.from_iterable(part.values() for part in self.parts)
