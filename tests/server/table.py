"""A hash table that is scanned as dict.c scans it, for properties that need any table at any moment."""

from __future__ import annotations

from bisect import bisect_left, insort

from rtui.server.cursor import POSITION_END, bitreverse64


class Table:
    """Keys at fixed positions, 2^bits buckets; `resize` while a scan is under way is what makes SCAN repeat keys."""

    def __init__(self, positions: dict[bytes, int], bits: int) -> None:
        self.bits = bits
        self._keys = sorted((position, key) for key, position in positions.items())

    @property
    def keys(self) -> set[bytes]:
        """All keys that are there now."""
        return {key for _, key in self._keys}

    def resize(self, bits: int) -> None:
        """Have 2^bits buckets from now on."""
        self.bits = bits

    def remove(self, keys: set[bytes]) -> None:
        """Delete keys."""
        self._keys = [(position, key) for position, key in self._keys if key not in keys]

    def put(self, key: bytes, position: int) -> None:
        """Add a key."""
        insort(self._keys, (position, key))

    def scan(self, cursor: int, count: int) -> tuple[int, list[bytes]]:
        """A page: whole buckets from where the cursor points, until `count` keys or ten times as many buckets."""
        width = POSITION_END >> self.bits
        bucket = bitreverse64(cursor) // width
        found: list[bytes] = []
        for _ in range(10 * count):
            first = bisect_left(self._keys, (bucket * width, b""))
            last = bisect_left(self._keys, ((bucket + 1) * width, b""))
            found += [key for _, key in self._keys[first:last]]
            bucket += 1
            if bucket == 1 << self.bits:
                return 0, found
            if len(found) >= count:
                break
        return bitreverse64(bucket * width), found
