"""The write commands that create sample keys, as arguments; only the demo's loader sends them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

Argument = bytes | str | int
"""One argument; text is sent as UTF-8."""

Write = tuple[Argument, ...]
"""One command; the second argument is the key."""

RDB_VERSION: Final = 9
"""The version of RESTORE payloads: every server since Redis 5 reads it."""


@dataclass(slots=True)
class WriteGroup:
    """Writes that belong together: those that create the group's own keys, and additions to keys shared with other
    groups."""

    own: list[Write] = field(default_factory=list)
    shared: list[Write] = field(default_factory=list)

    @property
    def keys(self) -> int:
        return len({write[1] for write in self.own})


def until(keys: int, fixed: WriteGroup, others: Iterable[WriteGroup]) -> Iterator[WriteGroup]:
    """Yield the group of fixed keys, then others until there are about `keys` keys."""
    made = 0
    for group in chain([fixed], others):
        yield group
        made += group.keys
        if made >= keys:
            return


def text(key: Argument, value: Argument, *, ttl_s: float | None = None) -> Write:
    return ("SET", key, value) if ttl_s is None else ("SET", key, value, "PX", max(1, int(ttl_s * 1000)))


def record(key: Argument, fields: Mapping[str, Argument]) -> Write:
    return ("HSET", key, *(part for pair in fields.items() for part in pair))


def expires(key: Argument, ttl_s: float) -> Write:
    return ("PEXPIRE", key, max(1, int(ttl_s * 1000)))


def used_text(key: Argument, value: str, frequency: int) -> Write:
    """Return the write of a string below 16 KiB with an LFU counter, 0 … 255; that of a new key is 5."""
    # The payload of DUMP for a string: type 0, length, bytes, version, checksum.
    raw = value.encode()
    length = bytes([len(raw)]) if len(raw) < 1 << 6 else (0x4000 | len(raw)).to_bytes(2, "big")
    body = b"\0" + length + raw + RDB_VERSION.to_bytes(2, "little")
    return ("RESTORE", key, 0, body + crc64(body).to_bytes(8, "little"), "FREQ", frequency)


_CRC64_TABLE: Final = list(range(256))
for _ in range(8):
    _CRC64_TABLE[:] = [half >> 1 ^ 0x95AC9329AC4BC9B5 if half & 1 else half >> 1 for half in _CRC64_TABLE]


def crc64(data: bytes) -> int:
    """Return CRC-64/Jones: polynomial 0xad93d23594c935a9 reflected, initial 0, check value 0xe9c6d914c4b8d9ca."""
    crc = 0
    for byte in data:
        crc = _CRC64_TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc
