"""Entries that look into values of the built-in types, a bounded piece at a time."""

from __future__ import annotations

import re
from typing import Final

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
from rtui.server.guard.spec import Group, Spec, Version

MAX_ELEMENTS: Final = 100
"""Most elements of a collection that one request asks for."""

MAX_WINDOW_BYTES: Final = 64 * 1024
"""Widest piece of a string that one request reads."""

_FIELD: Final = Blob("field")
_GROUP: Final = Blob("group", example=b"group")
_COUNT: Final = Integer("count", 1, MAX_ELEMENTS)
_STREAM_ID = re.compile(rb"\(?[0-9]{1,20}(?:-[0-9]{1,20})?\Z")


def _is_stream_id(text: bytes) -> bool:
    return text in (b"-", b"+") or _STREAM_ID.match(text) is not None


def _stream_id(name: str, example: bytes) -> Checked:
    return Checked(name, _is_stream_id, f"{name} is an entry id, - or +", example)


_LENGTH_COST: Final = "constant; under 1 µs"
_SCAN_COST: Final = "visits COUNT elements, 5–20 µs; a compact encoding answers whole: 512 fields 124 µs"
_SCAN_WHY: Final = "a page at a time; encoding and size are looked at before, since compact encodings ignore COUNT"


def _read(
    words: str,
    group: Group,
    cost: str,
    why: str,
    *shape: Element,
    since: Version = (1, 0),
    valkey: Version | None = (7, 2),
    bulk: bool = False,
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
    )


def _length(words: str, group: Group, since: Version = (1, 0), valkey: Version | None = (7, 2)) -> Spec:
    return _read(words, group, _LENGTH_COST, "reads a counter", since=since, valkey=valkey, bulk=True)


_STRING: Final = (
    _length("STRLEN", Group.STRING, (2, 2)),
    _read(
        "GETRANGE",
        Group.STRING,
        "copies the window; 1 KiB of 100 MB 1 µs",
        "both ends are given and near each other",
        Window("start", "end", "bytes", MAX_WINDOW_BYTES),
        since=(2, 4),
    ),
    _read(
        "BITCOUNT",
        Group.STRING,
        "counts the window; 4 KiB 1 µs",
        "never without a range: 100 MB took 23 ms",
        Window("start", "end", "bytes", MAX_WINDOW_BYTES),
        since=(2, 6),
    ),
)

_HASH: Final = (
    _length("HLEN", Group.HASH, (2, 0)),
    _read(
        "HSCAN",
        Group.HASH,
        _SCAN_COST,
        _SCAN_WHY,
        Cursor(),
        token("COUNT"),
        _COUNT,
        optional(token("NOVALUES")),
        since=(2, 8),
    ),
    _read(
        "HRANDFIELD",
        Group.HASH,
        "100 fields; 10–270 µs for 50",
        "a positive count never repeats or exceeds the hash",
        _COUNT,
        optional(token("WITHVALUES")),
        since=(6, 2),
    ),
    _read("HMGET", Group.HASH, "one look-up a field", "named fields only", Several(_FIELD, MAX_ELEMENTS), since=(2, 0)),
    _read("HSTRLEN", Group.HASH, _LENGTH_COST, "the size of one value, without the value", _FIELD, since=(3, 2)),
    _read(
        "HPTTL",
        Group.HASH,
        "one look-up a field",
        "named fields only",
        token("FIELDS"),
        Counted(_FIELD, MAX_ELEMENTS),
        since=(7, 4),
        valkey=(9, 0),
    ),
)

_LIST: Final = (
    _length("LLEN", Group.LIST),
    _read(
        "LRANGE",
        Group.LIST,
        "seeks node by node from the nearer end; 50 in the middle of 1M 14 µs",
        "both ends are given and near each other",
        Window("start", "stop", "elements", MAX_ELEMENTS),
    ),
)

_SET: Final = (
    _length("SCARD", Group.SET),
    _read("SSCAN", Group.SET, _SCAN_COST, _SCAN_WHY, Cursor(), token("COUNT"), _COUNT, since=(2, 8)),
    _read(
        "SRANDMEMBER",
        Group.SET,
        "100 members; 10–270 µs for 50",
        "a positive count never exceeds the set",
        _COUNT,
        since=(2, 6),
    ),
)

_ZSET: Final = (
    _length("ZCARD", Group.ZSET, (1, 2)),
    _read(
        "ZRANGE",
        Group.ZSET,
        "logarithmic seek and 100 elements; 50 in the middle of 1M 3 µs",
        "both ends are given and near each other",
        Window("start", "stop", "elements", MAX_ELEMENTS),
        token("WITHSCORES"),
        since=(1, 2),
    ),
    _read("ZSCAN", Group.ZSET, _SCAN_COST, _SCAN_WHY, Cursor(), token("COUNT"), _COUNT, since=(2, 8)),
    _read(
        "ZRANDMEMBER",
        Group.ZSET,
        "100 members; 10–270 µs for 50",
        "a positive count never exceeds the set",
        _COUNT,
        optional(token("WITHSCORES")),
        since=(6, 2),
    ),
)

_STREAM: Final = (
    _length("XLEN", Group.STREAM, (5, 0)),
    _read(
        "XINFO STREAM",
        Group.STREAM,
        "constant; 3–6 µs and the first and last entry in full",
        "never FULL, which lists every group",
        since=(5, 0),
    ),
    _read(
        "XINFO GROUPS",
        Group.STREAM,
        "one row a group; 10,000 groups 4.5 ms",
        "the number of groups is looked at before",
        since=(5, 0),
    ),
    _read(
        "XINFO CONSUMERS",
        Group.STREAM,
        "one row a consumer; 10,000 about 4.5 ms",
        "one group; its number of consumers is looked at before",
        _GROUP,
        since=(5, 0),
    ),
    _read(
        "XRANGE",
        Group.STREAM,
        "100 entries; 50 15 µs",
        "always with a count",
        _stream_id("start", b"-"),
        _stream_id("end", b"+"),
        token("COUNT"),
        _COUNT,
        since=(5, 0),
    ),
    _read(
        "XREVRANGE",
        Group.STREAM,
        "100 entries; 50 15 µs",
        "always with a count",
        _stream_id("end", b"+"),
        _stream_id("start", b"-"),
        token("COUNT"),
        _COUNT,
        since=(5, 0),
    ),
    _read(
        "XPENDING",
        Group.STREAM,
        "one row a consumer; 3 µs",
        "the summary of one group",
        _GROUP,
        since=(5, 0),
    ),
)

_ARRAY: Final = (
    _length("ARCOUNT", Group.ARRAY, (8, 8), None),
    _length("ARLEN", Group.ARRAY, (8, 8), None),
    _read(
        "ARSCAN",
        Group.ARRAY,
        "skips holes; 2 elements 10¹² apart 115 µs",
        "always with a limit",
        Integer("start", 0, (1 << 63) - 1),
        Integer("end", 0, (1 << 63) - 1),
        token("LIMIT"),
        _COUNT,
        since=(8, 8),
        valkey=None,
    ),
)

VALUES: Final = (*_STRING, *_HASH, *_LIST, *_SET, *_ZSET, *_STREAM, *_ARRAY)
"""What looks into the built-in types."""
