"""Entries that list keys and ask what any key has: type, time to live, size, encoding."""

from __future__ import annotations

from typing import Final

from rtui.keyspace.text.glob import MAX_PATTERN_BYTES, MAX_STARS, PatternError, check_pattern
from rtui.server.guard.evidence import Evidence, TypeEvidence
from rtui.server.guard.shape import Checked, Cursor, Element, Integer, Key, optional, token
from rtui.server.guard.spec import FIRST_REDIS, Group, Spec, Version

MAX_SCAN_COUNT: Final = 1000
"""Most keys that one SCAN visits; more holds other clients up."""

MAX_TYPE_BYTES: Final = 64
"""Longest type name of a filter."""


def _is_pattern(pattern: bytes) -> bool:
    try:
        check_pattern(pattern)
    except PatternError:
        return False
    return True


def _is_type(name: bytes) -> bool:
    return 0 < len(name) <= MAX_TYPE_BYTES and all(33 <= byte < 127 for byte in name)


_PAGE: Final[tuple[Element, ...]] = (
    Cursor(),
    optional(
        token("MATCH"),
        Checked("pattern", _is_pattern, f"pattern ≤ {MAX_PATTERN_BYTES} bytes, ≤ {MAX_STARS} stars", b"user:*"),
    ),
    token("COUNT"),
    Integer("count", 1, MAX_SCAN_COUNT),
)
_SCAN_COST: Final = "COUNT keys, or 10 × COUNT buckets of an emptied table; 1,000: 0.2–0.8 ms, emptied 4 ms"
_SCAN_WHY: Final = "lists keys in small steps from a cursor and keeps nothing in the server between them"


def _about_a_key(
    words: str,
    why: str,
    *,
    cost: str = "constant; 1 µs, a name of 1 MiB 0.4 ms",
    since: Version = FIRST_REDIS,
    counts: bool = True,
    evidence: type[Evidence] | None = None,
) -> Spec:
    return Spec(
        tuple(words.encode().split(b" ")),
        (Key(),),
        Group.KEYSPACE,
        cost,
        why,
        since_redis=since,
        counts=counts,
        is_optional=True,
        in_bulk=True,
        evidence=evidence,
    )


KEYSPACE: Final = (
    Spec((b"SCAN",), _PAGE, Group.KEYSPACE, _SCAN_COST, _SCAN_WHY, since_redis=(2, 8)),
    Spec(
        (b"SCAN",),
        (*_PAGE, token("TYPE"), Checked("type", _is_type, f"type ≤ {MAX_TYPE_BYTES} bytes", b"hash")),
        Group.KEYSPACE,
        _SCAN_COST,
        _SCAN_WHY + "; the type is looked up for each key visited",
        since_redis=(6, 0),
        counts=True,
        is_optional=True,
    ),
    _about_a_key("TYPE", "reads one field of the key"),
    _about_a_key("PTTL", "reads one field of the key", since=(2, 6)),
    _about_a_key("EXISTS", "looks one key up"),
    _about_a_key(
        "MEMORY USAGE",
        "the type is asked before: never of types of modules, which may walk the whole value; of streams before Redis "
        "8.4 one at a time, and no more once three were slow, since a group costs 0.03 µs and so does each of its "
        "consumers, whose number no cheap command tells; without SAMPLES, since all elements took 139 ms",
        cost="5 elements, or exact counters from 8.4; 2 µs, 0.3 ms for 300,000 elements while their table is resized, "
        "or for a stream of 10,000 groups before 8.4",
        since=(4, 0),
        counts=False,
        evidence=TypeEvidence,
    ),
    _about_a_key("OBJECT ENCODING", "reads one field of the key", since=(2, 2)),
    _about_a_key("OBJECT IDLETIME", "reads one field; an error under an LFU policy", since=(2, 2)),
    _about_a_key("OBJECT FREQ", "reads one field; an error without an LFU policy", since=(4, 0)),
)
"""What lists keys and what any key has."""
