"""A hash table that is scanned as dict.c scans it, for properties that need any table at any moment."""

from __future__ import annotations

from bisect import bisect_left, insort

from rtui.server.scan.cursor import POSITION_END, bitreverse64


class Table:
    """Keys at fixed positions, 2^bits buckets; `resize` while a scan is running is what makes SCAN repeat keys."""

    def __init__(self, positions: dict[bytes, int], bits: int) -> None:
        self.bits = bits
        self._keys = sorted((position, key) for key, position in positions.items())

    @property
    def keys(self) -> set[bytes]:
        return {key for _, key in self._keys}

    def resize(self, bits: int) -> None:
        self.bits = bits

    def remove(self, keys: set[bytes]) -> None:
        self._keys = [(position, key) for position, key in self._keys if key not in keys]

    def put(self, key: bytes, position: int) -> None:
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


class Dict:
    """A hash table as dict.c has it: two tables while it is rehashed, bucket by bucket, to a larger or smaller one.

    Buckets are hashes modulo a power of two. `scan` is `dictScan`: while there are two tables, a call emits the bucket
    of the smaller one that the cursor points into, and all buckets of the larger one that are expansions of it.
    """

    def __init__(self, hashes: dict[bytes, int], bits: int) -> None:
        self._hashes = dict(hashes)
        self._tables: list[dict[int, set[bytes]]] = [{}]
        self._bits = [bits]
        self._rehashed = 0
        for key in hashes:
            self._put(0, key)

    @property
    def keys(self) -> set[bytes]:
        return set(self._hashes)

    @property
    def is_rehashing(self) -> bool:
        return len(self._tables) == 2

    def resize(self, bits: int) -> None:
        """Begin to rehash to 2^bits buckets, unless that is under way already."""
        if not self.is_rehashing and bits != self._bits[0]:
            self._tables.append({})
            self._bits.append(bits)
            self._rehashed = 0

    def rehash(self, buckets: int) -> None:
        """Move the keys of so many buckets to the new table; the old one is gone after the last."""
        for _ in range(buckets):
            if not self.is_rehashing:
                return
            for key in self._tables[0].pop(self._rehashed, ()):
                self._put(1, key)
            self._rehashed += 1
            if self._rehashed == 1 << self._bits[0]:
                del self._tables[0], self._bits[0]

    def put(self, key: bytes, hashed: int) -> None:
        """Add a key: to the new table while there are two."""
        if key not in self._hashes:
            self._hashes[key] = hashed
            self._put(len(self._tables) - 1, key)

    def remove(self, key: bytes) -> None:
        hashed = self._hashes.pop(key)
        for bits, table in zip(self._bits, self._tables, strict=True):
            table.get(hashed & (1 << bits) - 1, set()).discard(key)

    def scan(self, cursor: int, count: int) -> tuple[int, list[bytes]]:
        """A page: steps from where the cursor points, until `count` keys or ten times as many steps."""
        found: list[bytes] = []
        for _ in range(10 * count):
            cursor = self._step(cursor, found)
            if cursor == 0 or len(found) >= count:
                break
        return cursor, found

    def _step(self, cursor: int, found: list[bytes]) -> int:
        order = sorted(range(len(self._tables)), key=lambda index: self._bits[index])
        masks = [(1 << self._bits[index]) - 1 for index in order]
        found += sorted(self._tables[order[0]].get(cursor & masks[0], ()))
        if len(order) == 1:
            return self._next(cursor, masks[0])
        while True:
            found += sorted(self._tables[order[1]].get(cursor & masks[1], ()))
            cursor = self._next(cursor, masks[1])
            if not cursor & (masks[0] ^ masks[1]):
                return cursor

    @staticmethod
    def _next(cursor: int, mask: int) -> int:
        """Count the masked bits of the cursor up by one, the highest first."""
        counted = bitreverse64(cursor | ~mask & (POSITION_END - 1)) + 1
        return bitreverse64(counted % POSITION_END)

    def _put(self, table: int, key: bytes) -> None:
        bucket = self._hashes[key] & (1 << self._bits[table]) - 1
        self._tables[table].setdefault(bucket, set()).add(key)
