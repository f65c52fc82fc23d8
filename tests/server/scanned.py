"""Scans of test servers: planted keys, a sink that remembers, and things that happen in the middle."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable

from rtui.server.scan.scan import Scan
from tests.servers import Server

PLANT_BATCH = 5000


def plant(server: Server, names: Iterable[bytes]) -> set[bytes]:
    """Write a small string under each name; returns the names."""
    keys = list(names)
    client = server.client()
    for start in range(0, len(keys), PLANT_BATCH):
        client.mset(dict.fromkeys(keys[start : start + PLANT_BATCH], b"v"))
    return set(keys)


def uproot(server: Server, names: Iterable[bytes]) -> None:
    """Delete the keys with these names."""
    keys = list(names)
    client = server.client()
    for start in range(0, len(keys), PLANT_BATCH):
        client.unlink(*keys[start : start + PLANT_BATCH])


def numbered(count: int, prefix: bytes = b"key:") -> list[bytes]:
    return [b"%b%d" % (prefix, index) for index in range(count)]


def table_bits(server: Server) -> int:
    """n of the 2^n buckets that the larger of the server's tables has, from cursors at random places."""
    pipeline = server.client().pipeline(transaction=False)
    for _ in range(30):
        pipeline.scan(random.randrange(1 << 64), count=1)
    return max(int(cursor).bit_length() for cursor, _ in pipeline.execute())


class Seen:
    """A sink; `at` runs something once when so many keys have come in."""

    def __init__(self) -> None:
        self.keys: Counter[bytes] = Counter()
        self.pages = 0
        self.scan: Scan | None = None
        self._at = 0
        self._act: Callable[[], object] | None = None

    def __call__(self, keys: list[bytes]) -> None:
        self.keys.update(keys)
        self.pages += 1
        if self._act is not None and self.keys.total() >= self._at:
            act, self._act = self._act, None
            act()

    def at(self, keys: int, act: Callable[[], object]) -> None:
        """Do something in the middle."""
        self._at, self._act = keys, act

    @property
    def repeated(self) -> set[bytes]:
        """Keys that came more than once."""
        return {key for key, times in self.keys.items() if times > 1}
