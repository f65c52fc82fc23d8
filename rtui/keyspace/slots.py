"""Hash slots: the slot of a key among the 16,384 of a cluster, and why.

The slot is CRC16 of the key modulo 16,384. If a key has a hash tag, only the bytes inside its braces are hashed, so
that `{user:1}:cart` and `{user:1}:orders` share a slot.
"""

from __future__ import annotations

from binascii import crc_hqx
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

SLOTS = 16384


class TagRule(Enum):
    """The rule that decided which bytes of a key are hashed; the value explains it in words."""

    TAG = "only the tag between the first { and the first } after it is hashed"
    NO_BRACE = "there is no {, so the whole key is hashed"
    NO_CLOSING_BRACE = "no } follows the first {, so the whole key is hashed"
    EMPTY_TAG = "nothing lies between the first { and the } after it, so the whole key is hashed"


class HashTag(NamedTuple):
    """The offsets of the hash tag in a key, in bytes, braces included: `key[start:end]` is `{…}`."""

    start: int
    end: int


def crc16(data: bytes) -> int:
    """Return the CRC-16/XMODEM: polynomial 0x1021, initial 0, not reflected; for `123456789` it is 0x31C3."""
    return crc_hqx(data, 0)


def find_tag(key: bytes) -> tuple[TagRule, HashTag | None]:
    """Return the rule that decided which bytes are hashed, and the hash tag, None without one."""
    opening = key.find(b"{")
    if opening < 0:
        return TagRule.NO_BRACE, None
    closing = key.find(b"}", opening + 1)
    if closing < 0:
        return TagRule.NO_CLOSING_BRACE, None
    if closing == opening + 1:
        return TagRule.EMPTY_TAG, None
    return TagRule.TAG, HashTag(opening, closing + 1)


def hashed_bytes(key: bytes) -> bytes:
    _, tag = find_tag(key)
    return key if tag is None else key[tag.start + 1 : tag.end - 1]


def key_slot(key: bytes) -> int:
    """Return the slot of a key, 0 to 16,383, as `CLUSTER KEYSLOT` does."""
    return crc16(hashed_bytes(key)) % SLOTS


@dataclass(frozen=True, slots=True)
class SlotExplanation:
    """The slot of one key and how it was computed."""

    slot: int
    """0 to 16,383."""
    crc: int
    """CRC16 of the hashed bytes, 16 bits."""
    hashed: bytes
    rule: TagRule
    tag: HashTag | None


def explain(key: bytes) -> SlotExplanation:
    rule, tag = find_tag(key)
    hashed = hashed_bytes(key)
    crc = crc16(hashed)
    return SlotExplanation(slot=crc % SLOTS, crc=crc, hashed=hashed, rule=rule, tag=tag)


def each_slot(ranges: Iterable[tuple[int, int]]) -> Iterator[int]:
    return (slot for first, last in ranges for slot in range(first, last + 1))


def joined_ranges(ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return ranges of slots, given as first and last slots, sorted and with adjacent ones joined."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = joined[-1][0], max(joined[-1][1], last)
        else:
            joined.append((first, last))
    return tuple(joined)
