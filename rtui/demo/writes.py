"""The write commands that sample keys are made of, as arguments; only the loader ever sends them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

Part = bytes | str | int
"""One argument; text is sent as UTF-8."""

Write = tuple[Part, ...]
"""One command; the second argument is the key."""

RDB_VERSION: Final = 9
"""The version of the payload that RESTORE gets: every server since Redis 5 reads it."""


@dataclass(slots=True)
class Unit:
    """Writes that belong together: those that make keys of their own, and additions to keys that units share."""

    own: list[Write] = field(default_factory=list)
    shared: list[Write] = field(default_factory=list)

    @property
    def keys(self) -> int:
        """How many keys the unit makes, those that it shares left out."""
        return len({write[1] for write in self.own})


def text(key: Part, value: Part, *, ttl_s: float | None = None) -> Write:
    """A string."""
    return ("SET", key, value) if ttl_s is None else ("SET", key, value, "PX", max(1, int(ttl_s * 1000)))


def record(key: Part, fields: Mapping[str, Part]) -> Write:
    """A hash."""
    return ("HSET", key, *(part for pair in fields.items() for part in pair))


def expires(key: Part, ttl_s: float) -> Write:
    """A life time for a key that a write before it has made."""
    return ("PEXPIRE", key, max(1, int(ttl_s * 1000)))


def used_text(key: Part, value: str, frequency: int) -> Write:
    """A string that has been used so much, by its LFU counter, 0 … 255; a new key's is 5."""
    return ("RESTORE", key, 0, _dumped(value.encode()), "FREQ", frequency)


def _dumped(value: bytes) -> bytes:
    """The payload of DUMP for a string: type 0, length, bytes, version, checksum."""
    size = len(value)
    if size < 1 << 6:
        length = bytes([size])
    elif size < 1 << 14:
        length = bytes([0x40 | size >> 8, size & 0xFF])
    else:
        length = b"\x80" + size.to_bytes(4, "big")
    body = b"\0" + length + value + RDB_VERSION.to_bytes(2, "little")
    return body + crc64(body).to_bytes(8, "little")


def _crc64_table() -> list[int]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ 0x95AC9329AC4BC9B5 if crc & 1 else crc >> 1
        table.append(crc)
    return table


_TABLE: Final = _crc64_table()


def crc64(data: bytes) -> int:
    """CRC-64/REDIS (Jones): polynomial 0xad93d23594c935a9 reflected, initial 0, check value 0xe9c6d914c4b8d9ca."""
    crc = 0
    table = _TABLE
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc
