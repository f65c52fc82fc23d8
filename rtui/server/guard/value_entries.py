"""Entries that look into values of the built-in types, a bounded piece at a time."""

from __future__ import annotations

import re
from typing import Final

from rtui.server.guard.evidence import (
    CollectionEvidence,
    ConsumerEvidence,
    EntryEvidence,
    Evidence,
    GroupEvidence,
)
from rtui.server.guard.shape import (
    Blob,
    Checked,
    Counted,
    Cursor,
    Element,
    Integer,
    Key,
    Several,
    Window,
    optional,
    token,
)
from rtui.server.guard.spec import FIRST_REDIS, FIRST_VALKEY, Group, Spec, Version

MAX_ELEMENTS: Final = 100
"""Most elements of a collection that one request asks for."""

MAX_RANDOM: Final = 50
"""Most random elements of one request: each costs up to 10 µs where a hash table is sparse."""

MAX_WINDOW_BYTES: Final = 64 * 1024
"""Widest piece of a string that one request reads."""

MAX_ARRAY_INDEX: Final = (1 << 64) - 2
"""The highest index that an array has."""

_FIELD: Final = Blob("field")
_OF_GROUP: Final = Blob("group", example=b"group")
_COUNT: Final = Integer("count", 1, MAX_ELEMENTS)
_RANDOM: Final = Integer("count", 1, MAX_RANDOM)
_PAGE: Final = (Cursor(), token("COUNT"), _COUNT)
_ELEMENTS: Final = Window("start", "stop", "elements", MAX_ELEMENTS)
_BYTES: Final = Window("start", "end", "bytes", MAX_WINDOW_BYTES)
_STREAM_ID: Final = re.compile(rb"\(?[0-9]{1,20}(?:-[0-9]{1,20})?\Z")


def _is_stream_id(text: bytes) -> bool:
    return text in (b"-", b"+") or _STREAM_ID.match(text) is not None


def _stream_id(name: str, example: bytes) -> Checked:
    return Checked(name, _is_stream_id, f"{name} an entry id, - or +", example)


_SCAN_COST: Final = "COUNT elements, 140 µs; a compact encoding answers whole: 512 fields 124 µs, 20,000 fields 4.7 ms"
_SCAN_WHY: Final = "a page at a time; encoding and size are looked at before, since compact encodings ignore COUNT"
_RANDOM_WHY: Final = "a positive count: none twice, never more than there are; encoding and length are looked at before"
_FIELDS_WHY: Final = "named fields only; encoding and length are looked at before, since each walks a compact hash"
_BETWEEN_WHY: Final = "both ends are given, from the front, and near each other"


def _value(
    group: Group,
    words: str,
    *shape: Element,
    cost: str,
    why: str,
    since: Version = FIRST_REDIS,
    valkey: Version | None = FIRST_VALKEY,
    bulk: bool = False,
    evidence: type[Evidence] | None = None,
) -> Spec:
    return Spec(
        tuple(words.encode().split(b" ")),
        (Key(), *shape),
        group,
        cost,
        why,
        since_redis=since,
        since_valkey=valkey,
        touches=True,
        counts=True,
        is_optional=True,
        in_bulk=bulk,
        evidence=evidence,
    )


def _length(group: Group, words: str, since: Version = FIRST_REDIS, valkey: Version | None = FIRST_VALKEY) -> Spec:
    return _value(group, words, cost="constant; 1–2 µs", why="reads a counter", since=since, valkey=valkey, bulk=True)


_STRING: Final = (
    _length(Group.STRING, "STRLEN", (2, 2)),
    _value(Group.STRING, "GETRANGE", _BYTES, cost="copies the window; 64 KiB 10 µs", why=_BETWEEN_WHY, since=(2, 4)),
)

_HASH: Final = (
    _length(Group.HASH, "HLEN", (2, 0)),
    _value(Group.HASH, "HSCAN", *_PAGE, cost=_SCAN_COST, why=_SCAN_WHY, since=(2, 8), evidence=CollectionEvidence),
    _value(
        Group.HASH,
        "HSCAN",
        *_PAGE,
        token("NOVALUES"),
        cost=_SCAN_COST,
        why=_SCAN_WHY,
        since=(7, 4),
        valkey=(8, 0),
        evidence=CollectionEvidence,
    ),
    _value(
        Group.HASH,
        "HRANDFIELD",
        _RANDOM,
        optional(token("WITHVALUES")),
        cost="10 µs an element, 0.5 ms; a compact hash of 20,000 fields 0.8 ms",
        why=_RANDOM_WHY,
        since=(6, 2),
        evidence=CollectionEvidence,
    ),
    _value(
        Group.HASH,
        "HMGET",
        Several(_FIELD, MAX_ELEMENTS),
        cost="one look-up a field, 83 µs; a compact hash of 20,000 fields 0.4 ms a field",
        why=_FIELDS_WHY,
        since=(2, 0),
        evidence=CollectionEvidence,
    ),
    _value(
        Group.HASH,
        "HSTRLEN",
        _FIELD,
        cost="one look-up, 2 µs; a compact hash of 20,000 fields 0.4 ms",
        why="the size of one value, without the value; encoding and length are looked at before",
        since=(3, 2),
        evidence=CollectionEvidence,
    ),
    _value(
        Group.HASH,
        "HPTTL",
        token("FIELDS"),
        Counted(_FIELD, MAX_ELEMENTS),
        cost="one look-up a field, 90 µs; a compact hash of 20,000 fields 0.4 ms a field",
        why=_FIELDS_WHY,
        since=(7, 4),
        valkey=(9, 0),
        evidence=CollectionEvidence,
    ),
)

_LIST: Final = (
    _length(Group.LIST, "LLEN"),
    _value(
        Group.LIST,
        "LRANGE",
        _ELEMENTS,
        cost="seeks node by node from the nearer end; the middle of 300,000 37 µs",
        why=_BETWEEN_WHY,
    ),
)

_SET: Final = (
    _length(Group.SET, "SCARD"),
    _value(Group.SET, "SSCAN", *_PAGE, cost=_SCAN_COST, why=_SCAN_WHY, since=(2, 8), evidence=CollectionEvidence),
    _value(
        Group.SET,
        "SRANDMEMBER",
        _RANDOM,
        cost="10 µs an element, 0.5 ms; a compact set is walked over once",
        why=_RANDOM_WHY,
        since=(2, 6),
        evidence=CollectionEvidence,
    ),
)

_ZSET: Final = (
    _length(Group.ZSET, "ZCARD", (1, 2)),
    _value(
        Group.ZSET,
        "ZRANGE",
        _ELEMENTS,
        token("WITHSCORES"),
        cost="a logarithmic seek; the middle of 300,000 65 µs",
        why=_BETWEEN_WHY,
        since=(1, 2),
    ),
)

_STREAM: Final = (
    _length(Group.STREAM, "XLEN", (5, 0)),
    _value(
        Group.STREAM,
        "XINFO STREAM",
        cost="constant; 8 µs, and the first and the last entry in full",
        why="never FULL, which lists every group; the size of an entry is looked at before",
        since=(5, 0),
        evidence=EntryEvidence,
    ),
    _value(
        Group.STREAM,
        "XINFO GROUPS",
        cost="one row a group; 1,000 groups 1.5 ms",
        why="the number of groups is looked at before",
        since=(5, 0),
        evidence=GroupEvidence,
    ),
    _value(
        Group.STREAM,
        "XINFO CONSUMERS",
        _OF_GROUP,
        cost="one row a consumer; 1,000 consumers 0.8 ms",
        why="one group, whose number of consumers is looked at before",
        since=(5, 0),
        evidence=ConsumerEvidence,
    ),
    _value(
        Group.STREAM,
        "XREVRANGE",
        _stream_id("end", b"+"),
        _stream_id("start", b"-"),
        token("COUNT"),
        _COUNT,
        cost="COUNT entries; 100 88 µs",
        why="always with a count",
        since=(5, 0),
    ),
    _value(
        Group.STREAM,
        "XPENDING",
        _OF_GROUP,
        cost="one row a consumer that has entries pending; 2 µs without any",
        why="the summary of one group, whose number of consumers is looked at before",
        since=(5, 0),
        evidence=ConsumerEvidence,
    ),
)

_ARRAY: Final = (
    _length(Group.ARRAY, "ARCOUNT", (8, 8), None),
    _length(Group.ARRAY, "ARLEN", (8, 8), None),
    _value(
        Group.ARRAY,
        "ARSCAN",
        Integer("start", 0, MAX_ARRAY_INDEX),
        Integer("end", 0, MAX_ARRAY_INDEX),
        token("LIMIT"),
        _COUNT,
        cost="LIMIT elements, holes skipped; 100 elements 10¹² apart 0.4 ms",
        why="always with a limit",
        since=(8, 8),
        valkey=None,
    ),
)

VALUES: Final = (*_STRING, *_HASH, *_LIST, *_SET, *_ZSET, *_STREAM, *_ARRAY)
"""What looks into the built-in types."""
