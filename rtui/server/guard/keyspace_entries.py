"""Entries that list keys and ask what any key has: type, time to live, size, encoding."""

from __future__ import annotations

from typing import Final

from rtui.server.guard.shape import Checked, Cursor, Integer, Key, optional, token
from rtui.server.guard.spec import Group, Spec

MAX_SCAN_COUNT: Final = 1000
"""Most keys that one SCAN visits; more holds other clients up."""

MAX_PATTERN_BYTES: Final = 512
"""Longest MATCH pattern; longer ones overflowed the stack of servers before 6.2.16, 7.2.6 and 7.4.1."""

MAX_PATTERN_STARS: Final = 16
"""Most asterisks of a MATCH pattern; each may multiply the time of a comparison."""

MAX_TYPE_BYTES: Final = 64
"""Longest type name of a filter."""


def _is_pattern(pattern: bytes) -> bool:
    return len(pattern) <= MAX_PATTERN_BYTES and pattern.count(b"*") <= MAX_PATTERN_STARS


def _is_type(name: bytes) -> bool:
    return 0 < len(name) <= MAX_TYPE_BYTES and all(33 <= byte < 127 for byte in name)


_META_COST: Final = "constant; under 1 µs, and about 1 ms to read and hash a name of 1 MiB"


def _object(word: str, why: str, since_redis: tuple[int, int]) -> Spec:
    return Spec(
        (b"OBJECT", word.encode()),
        (Key(),),
        Group.KEYSPACE,
        _META_COST,
        why,
        since_redis=since_redis,
        counts=True,
        is_optional=True,
        in_bulk=True,
    )


KEYSPACE: Final = (
    Spec(
        (b"SCAN",),
        (
            Cursor(),
            optional(
                token("MATCH"),
                Checked(
                    "pattern",
                    _is_pattern,
                    f"pattern ≤ {MAX_PATTERN_BYTES} bytes, ≤ {MAX_PATTERN_STARS} asterisks",
                    b"user:*",
                ),
            ),
            token("COUNT"),
            Integer("count", 1, MAX_SCAN_COUNT),
            optional(token("TYPE"), Checked("type", _is_type, f"type ≤ {MAX_TYPE_BYTES} bytes", b"hash")),
        ),
        Group.KEYSPACE,
        "visits COUNT keys or 10 × COUNT buckets; 1,000: 0.2–0.8 ms, 4 ms in a table just emptied",
        "the one way to list keys that does not hold the server; TYPE needs 6.0",
        since_redis=(2, 8),
    ),
    Spec((b"TYPE",), (Key(),), Group.KEYSPACE, _META_COST, "reads one field", counts=True, in_bulk=True),
    Spec(
        (b"PTTL",),
        (Key(),),
        Group.KEYSPACE,
        _META_COST,
        "reads one field",
        since_redis=(2, 6),
        counts=True,
        in_bulk=True,
    ),
    Spec((b"EXISTS",), (Key(),), Group.KEYSPACE, _META_COST, "one look-up of one key", counts=True, in_bulk=True),
    Spec(
        (b"MEMORY", b"USAGE"),
        (Key(),),
        Group.KEYSPACE,
        "samples five elements, or exact counters from 8.4; 0–2 µs, a stream of 10,000 groups 272 µs",
        "without SAMPLES the number of elements looked at is fixed",
        since_redis=(4, 0),
        is_optional=True,
        in_bulk=True,
    ),
    _object("ENCODING", "reads one field", (2, 2)),
    _object("IDLETIME", "reads one field; refused under an LFU policy", (2, 2)),
    _object("FREQ", "reads one field; refused without an LFU policy", (4, 0)),
)
"""What lists keys and what any key has."""
