"""What has been added up of a pass that was left, as plain structures that a file can hold.

Each class that counts has a method `saved`, which returns one of these, and one that takes it back; what comes back
counts on as if nothing had been in between. Sums that may not fit into 64 bits are `packed` as bytes.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from msgspec import Struct

from rtui.analysis.report.document import KeyRecord, NodeKind

NODES_OF_PART: Final = 128
"""Nodes that are encoded at once, so that nothing else waits for long."""

Big: TypeAlias = bytes
"""A whole number of any size, see `packed`."""


class NotSavedError(ValueError):
    """What was read is not what a pass has saved."""


def packed(number: int) -> Big:
    """Return a number as bytes, the lowest first, with a sign."""
    return number.to_bytes(number.bit_length() // 8 + 1, "little", signed=True)


def unpacked(number: Big) -> int:
    """Return the number that was packed."""
    return int.from_bytes(number, "little", signed=True)


def expect(is_right: bool) -> None:
    """Raise NotSavedError unless something holds that does of all that a pass saves."""
    if not is_right:
        raise NotSavedError("It is not what rtui has saved.")


class SavedSketch(Struct, frozen=True, array_like=True):
    """A `Sketch`."""

    buckets: tuple[tuple[int, int], ...]
    """With how many sizes there are in each."""
    sum: Big
    min: int
    max: int


class SavedExpiries(Struct, frozen=True, array_like=True):
    """An `ExpiryBins`."""

    coarseness: int
    bins: tuple[tuple[int, int, Big, Big], ...]
    """First minute, keys, bytes and squares of each."""


class SavedLives(Struct, frozen=True, array_like=True):
    """A `TtlTally`."""

    known_keys: int
    no_ttl_keys: int
    no_ttl_memory_bytes: Big
    no_ttl_squares: Big
    no_ttl_largest: tuple[int, ...]
    expiring_largest: int
    soonest_ms: Big | None
    range_ms: tuple[int, int] | None
    bins: tuple[int, ...]
    expiries: SavedExpiries | None


class SavedStrings(Struct, frozen=True, array_like=True):
    """A `StringLengths`."""

    keys: int
    sum: Big
    long_keys: int
    tiny_keys: int
    tiny_ttl: tuple[int, ...]


class SavedTally(Struct, frozen=True, array_like=True):
    """A `Tally`."""

    keys: int
    memory: SavedSketch | None
    ttl: SavedLives | None
    idle: tuple[int, ...] | None
    frequency: tuple[int, ...] | None
    strings: SavedStrings | None


class SavedNode(Struct, frozen=True, array_like=True):
    """A node of the tree of patterns; it is below the latest one before it that has a smaller depth."""

    depth: int
    """0 for the root."""
    name: bytes
    separator: bytes
    kind: NodeKind
    holds_names: bool
    has_lost: tuple[bool, bool]
    keys: int
    memory_bytes: Big
    paid_keys: int
    paid_bytes: float
    hashes: tuple[int, ...] | None
    """Of a pattern, those of the names that it stands for, ascending."""
    examples: tuple[tuple[int, bytes], ...]
    tallies: tuple[tuple[bytes | None, SavedTally], ...]
    """By type."""


class SavedLimits(Struct, frozen=True):
    """How much the tree of patterns keeps by now."""

    names: int
    numbered: int
    keys_since_coarsening: int


class SavedTags(Struct, frozen=True):
    """A `HeavyTags`."""

    floor: int
    tags: tuple[tuple[bytes, int, int, Big | None], ...]
    """Name, keys, how many of it were missed at most, bytes."""


class SavedSlots(Struct, frozen=True):
    """Keys by hash slot; three arrays of numbers in the order of bytes of the machine."""

    keys: bytes
    """Of 8 bytes each."""
    unmeasured: bytes
    """Likewise."""
    memory: bytes
    """Of 16 bytes each, with a sign."""
    tags: SavedTags


class SavedRanking(Struct, frozen=True):
    """A `Ranking`."""

    records: tuple[KeyRecord, ...]
    floor: tuple[int, bytes] | None


class SavedTop(Struct, frozen=True):
    """A `TopKeys`; everything by type."""

    over: dict[bytes, int]
    over_sampled: dict[bytes, int]
    left_out: tuple[tuple[bytes | None, int], ...]
    by_memory: tuple[tuple[bytes | None, SavedRanking], ...]
    by_length: tuple[tuple[bytes | None, SavedRanking], ...]
    by_frequency: SavedRanking
    by_idle: SavedRanking


class SavedKeyCount(Struct, frozen=True, array_like=True):
    """A `KeyCount`."""

    keys: int
    memory_keys: int
    memory_bytes: Big
    examples: tuple[tuple[int, bytes], ...]
    long_names: tuple[tuple[int, bytes, int], ...]
    """Checksum, beginning and length."""


class SavedEntries(Struct, frozen=True):
    """An `EntryCounts`; an entry is a number, one less than 0 for keys without one."""

    layouts: tuple[tuple[tuple[bytes | None, bool, bool, bool, bool], dict[int, int]], ...]
    memory: tuple[Big, ...]
    expiring: tuple[int, ...]
    longest_ms: tuple[int, ...]
    broken: tuple[tuple[int, str, bool, SavedKeyCount], ...]
    shown: tuple[tuple[int, SavedKeyCount], ...]


class SavedNaming(Struct, frozen=True):
    """A `NamingCounts`."""

    counts: tuple[tuple[int, bytes, int, SavedKeyCount], ...]
    """Entry, namespace, what is found, keys."""
    second: dict[bytes, tuple[bytes, ...]]
    whole: tuple[bytes, ...]


class SavedRegistered(Struct, frozen=True):
    """A `RegistryCounts`."""

    entries: SavedEntries
    naming: SavedNaming


class SavedAggregates(Struct, frozen=True):
    """All that the keys of a pass add up to."""

    keys: int
    vanished_keys: int
    unread_keys: int
    origin_min: int
    """The minute at which the pass began, since the epoch."""
    encodings: dict[bytes, dict[bytes, int]]
    lengths: dict[bytes, SavedSketch]
    other_lengths: dict[bytes, SavedSketch]
    slots: SavedSlots
    big: SavedTop
    registered: SavedRegistered | None
    limits: SavedLimits
    nodes: tuple[bytes, ...]
    """Parts of the tree of patterns in MessagePack, each of some SavedNode."""
