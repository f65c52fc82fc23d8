"""A dictionary that never takes long to grow, for namespaces with hundreds of thousands of namespaces below them.

A dict of half a million entries that grows moves all of them at once, for tens of milliseconds. Here, entries are
divided among 64 dicts by their hashes, and each grows on its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Generic, TypeVar

V = TypeVar("V")

SHARD_ABOVE = 1 << 13
"""A dict with more entries than this is turned into a `ShardedDict`: to grow one of this size takes half a
millisecond."""

SHARDS = 64
"""The number of dicts that the entries are divided among; a power of two."""


class ShardedDict(Generic[V]):
    """A dict of bytes keys, divided into shards; iteration order is not that of insertion."""

    __slots__ = ("shards",)

    shards: list[dict[bytes, V]]
    """An entry is in the shard whose number is in the last bits of its key's hash."""

    def __init__(self, entries: dict[bytes, V]) -> None:
        self.shards = [{} for _ in range(SHARDS)]
        for key, value in entries.items():
            self[key] = value

    def __len__(self) -> int:
        return sum(map(len, self.shards))

    def __contains__(self, key: bytes) -> bool:
        return key in self.shards[hash(key) & SHARDS - 1]

    def __getitem__(self, key: bytes) -> V:
        return self.shards[hash(key) & SHARDS - 1][key]

    def __setitem__(self, key: bytes, value: V) -> None:
        self.shards[hash(key) & SHARDS - 1][key] = value

    def __delitem__(self, key: bytes) -> None:
        del self.shards[hash(key) & SHARDS - 1][key]

    def get(self, key: bytes) -> V | None:
        """Return the value of this key, None if it has none."""
        return self.shards[hash(key) & SHARDS - 1].get(key)

    def values(self) -> Iterator[V]:
        """Return all values, in no particular order."""
        return chain.from_iterable(shard.values() for shard in self.shards)
