"""Entries with a key: listing keys, what any key has, and bounded pieces of values of each type."""

from __future__ import annotations

import re
from functools import partial
from typing import Final

from rtui.keyspace.text.glob import MAX_PATTERN_BYTES, MAX_STARS, PatternError, check_pattern
from rtui.server.guard.arguments import (
    KEY,
    MAX_FIELD_BYTES,
    AnyBytes,
    Checked,
    Element,
    IndexRange,
    Integer,
    Optional,
    Repeated,
    decimal,
    keyword,
)
from rtui.server.guard.evidence import (
    CollectionEvidence,
    ConsumerEvidence,
    EntryEvidence,
    Evidence,
    GroupEvidence,
    TypeEvidence,
)
from rtui.server.guard.spec import FIRST_REDIS, FIRST_VALKEY, CommandGroup, Spec, Version

MAX_SCAN_COUNT: Final = 1000
"""Most keys that one SCAN visits; more would hold other clients up."""

MAX_TYPE_BYTES: Final = 64
"""Longest type name that SCAN filters by."""

MAX_ELEMENTS: Final = 100
"""Most elements of a collection that one request asks for."""

MAX_RANDOM: Final = 50
"""Most random elements of one request: each costs up to 10 µs where a hash table is sparse."""

MAX_WINDOW_BYTES: Final = 64 * 1024
"""Widest piece of a string that one request reads."""

MAX_CURSOR: Final = (1 << 64) - 1
"""Cursors are unsigned 64-bit numbers in every version."""

MAX_ARRAY_INDEX: Final = (1 << 64) - 2
"""The highest index that an array has."""

_STREAM_ID: Final = re.compile(rb"(?:[-+]|\(?[0-9]{1,20}(?:-[0-9]{1,20})?)\Z")


def _is_cursor(text: bytes) -> bool:
    number = decimal(text)
    return number is not None and 0 <= number <= MAX_CURSOR


def _is_pattern(pattern: bytes) -> bool:
    try:
        check_pattern(pattern)
    except PatternError:
        return False
    return True


def _is_type(name: bytes) -> bool:
    return 0 < len(name) <= MAX_TYPE_BYTES and all(33 <= byte < 127 for byte in name)


def _stream_id(name: str) -> Checked:
    return Checked(name, lambda text: _STREAM_ID.match(text) is not None, (f"{name} an entry id, - or +",))


_CURSOR: Final = Checked("cursor", _is_cursor)
_PATTERN: Final = Checked("pattern", _is_pattern, (f"pattern ≤ {MAX_PATTERN_BYTES} bytes, ≤ {MAX_STARS} stars",))
_TYPE: Final = Checked("type", _is_type, (f"type ≤ {MAX_TYPE_BYTES} bytes",))
_FIELD: Final = AnyBytes("field", MAX_FIELD_BYTES)
_GROUP: Final = AnyBytes("group", MAX_FIELD_BYTES)
_COUNT: Final = Integer("count", 1, MAX_ELEMENTS)
_RANDOM: Final = Integer("count", 1, MAX_RANDOM)
_INDEXES: Final = IndexRange("start", "stop", "elements", MAX_ELEMENTS)
_BYTES: Final = IndexRange("start", "end", "bytes", MAX_WINDOW_BYTES)
_PAGE: Final = (_CURSOR, keyword("COUNT"), _COUNT)


def _entry(
    group: CommandGroup,
    words: str,
    shape: tuple[Element, ...],
    cost: str,
    why: str,
    *,
    since: Version = FIRST_REDIS,
    since_valkey: Version | None = FIRST_VALKEY,
    touches: bool = True,
    counts: bool = True,
    in_bulk: bool = False,
    has_write_key_spec: bool = False,
    evidence: type[Evidence] | None = None,
) -> Spec:
    """Make the entry of a command whose first argument is a key."""
    return Spec(
        group,
        tuple(words.encode().split(b" ")),
        (KEY, *shape),
        cost,
        why,
        since_redis=since,
        since_valkey=since_valkey,
        touches=touches,
        counts=counts,
        in_bulk=in_bulk,
        has_write_key_spec=has_write_key_spec,
        evidence=evidence,
    )


_SCAN: Final[tuple[Element, ...]] = (
    _CURSOR,
    Optional((keyword("MATCH"), _PATTERN)),
    keyword("COUNT"),
    Integer("count", 1, MAX_SCAN_COUNT),
)
_SCAN_COST: Final = "COUNT keys, or 10 × COUNT buckets of an emptied table; 1,000: 0.2–0.8 ms, emptied 4 ms"
_SCAN_WHY: Final = "lists keys in small steps from a cursor and keeps nothing in the server between them"


_of_any_key = partial(_entry, CommandGroup.KEYSPACE, shape=(), touches=False, in_bulk=True)
_LOOK_UP: Final = "constant; 1 µs, a name of 1 MiB 0.4 ms"

KEYSPACE: Final = (
    Spec(CommandGroup.KEYSPACE, (b"SCAN",), _SCAN, _SCAN_COST, _SCAN_WHY, since_redis=(2, 8), is_required=True),
    Spec(
        CommandGroup.KEYSPACE,
        (b"SCAN",),
        (*_SCAN, keyword("TYPE"), _TYPE),
        _SCAN_COST,
        _SCAN_WHY + "; the type is looked up for each key visited",
        since_redis=(6, 0),
        counts=True,
    ),
    _of_any_key("TYPE", cost=_LOOK_UP, why="reads one field of the key"),
    _of_any_key("PTTL", cost=_LOOK_UP, why="reads one field of the key", since=(2, 6)),
    _of_any_key("EXISTS", cost=_LOOK_UP, why="looks one key up"),
    _of_any_key(
        "MEMORY USAGE",
        cost="5 elements, or exact counters from 8.4; 2 µs, 0.3 ms for 300,000 elements while their table is resized, "
        "or for a stream of 10,000 groups before 8.4",
        why="the type is asked before: never of types of modules, which may walk the whole value; of streams before "
        "Redis 8.4 one at a time, and no more once three were slow, since a group costs 0.03 µs and so does each of "
        "its consumers, whose number no cheap command tells; without SAMPLES, since all elements took 139 ms",
        since=(4, 0),
        counts=False,
        evidence=TypeEvidence,
    ),
    _of_any_key("OBJECT ENCODING", cost=_LOOK_UP, why="reads one field of the key", since=(2, 2)),
    _of_any_key("OBJECT IDLETIME", cost=_LOOK_UP, why="reads one field; an error under an LFU policy", since=(2, 2)),
    _of_any_key("OBJECT FREQ", cost=_LOOK_UP, why="reads one field; an error without an LFU policy", since=(4, 0)),
)
"""What lists keys, and what any key has."""


_length = partial(_entry, shape=(), cost="constant; 1–2 µs", why="reads a counter", in_bulk=True)
_PAGE_COST: Final = "COUNT elements, 140 µs; a compact encoding answers whole: 512 fields 124 µs, 20,000 fields 4.7 ms"
_PAGE_WHY: Final = "a page at a time; encoding and size are looked at before, since compact encodings ignore COUNT"
_RANDOM_WHY: Final = "a positive count: none twice, never more than there are; encoding and length are looked at before"
_FIELDS_WHY: Final = "named fields only; encoding and length are looked at before, since each walks a compact hash"
_BETWEEN_WHY: Final = "both ends are given, from the front, and near each other"

_STRING: Final = (
    _length(CommandGroup.STRING, "STRLEN", since=(2, 2)),
    _entry(CommandGroup.STRING, "GETRANGE", (_BYTES,), "copies the window; 64 KiB 10 µs", _BETWEEN_WHY, since=(2, 4)),
)

_HASH: Final = (
    _length(CommandGroup.HASH, "HLEN", since=(2, 0)),
    _entry(CommandGroup.HASH, "HSCAN", _PAGE, _PAGE_COST, _PAGE_WHY, since=(2, 8), evidence=CollectionEvidence),
    _entry(
        CommandGroup.HASH,
        "HSCAN",
        (*_PAGE, keyword("NOVALUES")),
        _PAGE_COST,
        _PAGE_WHY,
        since=(7, 4),
        since_valkey=(8, 0),
        evidence=CollectionEvidence,
    ),
    _entry(
        CommandGroup.HASH,
        "HRANDFIELD",
        (_RANDOM, Optional((keyword("WITHVALUES"),))),
        "10 µs an element, 0.5 ms; a compact hash of 20,000 fields 0.8 ms",
        _RANDOM_WHY,
        since=(6, 2),
        evidence=CollectionEvidence,
    ),
    _entry(
        CommandGroup.HASH,
        "HMGET",
        (Repeated(_FIELD, MAX_ELEMENTS),),
        "one look-up a field, 83 µs; a compact hash of 20,000 fields 0.4 ms a field",
        _FIELDS_WHY,
        since=(2, 0),
        evidence=CollectionEvidence,
    ),
    _entry(
        CommandGroup.HASH,
        "HSTRLEN",
        (_FIELD,),
        "one look-up, 2 µs; a compact hash of 20,000 fields 0.4 ms",
        "the size of one value, without the value; encoding and length are looked at before",
        since=(3, 2),
        evidence=CollectionEvidence,
    ),
    _entry(
        CommandGroup.HASH,
        "HPTTL",
        (keyword("FIELDS"), Repeated(_FIELD, MAX_ELEMENTS, counted=True)),
        "one look-up a field, 90 µs; a compact hash of 20,000 fields 0.4 ms a field",
        _FIELDS_WHY,
        since=(7, 4),
        since_valkey=(9, 0),
        evidence=CollectionEvidence,
    ),
)

_LIST: Final = (
    _length(CommandGroup.LIST, "LLEN"),
    _entry(
        CommandGroup.LIST,
        "LRANGE",
        (_INDEXES,),
        "seeks node by node from the nearer end; the middle of 300,000 37 µs",
        _BETWEEN_WHY,
    ),
)

_SET: Final = (
    _length(CommandGroup.SET, "SCARD"),
    _entry(CommandGroup.SET, "SSCAN", _PAGE, _PAGE_COST, _PAGE_WHY, since=(2, 8), evidence=CollectionEvidence),
    _entry(
        CommandGroup.SET,
        "SRANDMEMBER",
        (_RANDOM,),
        "10 µs an element, 0.5 ms; a compact set is walked over once",
        _RANDOM_WHY,
        since=(2, 6),
        evidence=CollectionEvidence,
    ),
)

_ZSET: Final = (
    _length(CommandGroup.ZSET, "ZCARD", since=(1, 2)),
    _entry(
        CommandGroup.ZSET,
        "ZRANGE",
        (_INDEXES, keyword("WITHSCORES")),
        "a logarithmic seek; the middle of 300,000 65 µs",
        _BETWEEN_WHY,
        since=(1, 2),
    ),
)

_STREAM: Final = (
    _length(CommandGroup.STREAM, "XLEN", since=(5, 0)),
    _entry(
        CommandGroup.STREAM,
        "XINFO STREAM",
        (),
        "constant; 8 µs, and the first and the last entry in full",
        "never FULL, which lists every group; the size of an entry is looked at before",
        since=(5, 0),
        evidence=EntryEvidence,
    ),
    _entry(
        CommandGroup.STREAM,
        "XINFO GROUPS",
        (),
        "one row a group; 1,000 groups 1.5 ms",
        "the number of groups is looked at before",
        since=(5, 0),
        evidence=GroupEvidence,
    ),
    _entry(
        CommandGroup.STREAM,
        "XINFO CONSUMERS",
        (_GROUP,),
        "one row a consumer; 1,000 consumers 0.8 ms",
        "one group, whose number of consumers is looked at before",
        since=(5, 0),
        evidence=ConsumerEvidence,
    ),
    _entry(
        CommandGroup.STREAM,
        "XREVRANGE",
        (_stream_id("end"), _stream_id("start"), keyword("COUNT"), _COUNT),
        "COUNT entries; 100 88 µs",
        "always with a count",
        since=(5, 0),
    ),
    _entry(
        CommandGroup.STREAM,
        "XPENDING",
        (_GROUP,),
        "one row a consumer that has entries pending; 2 µs without any",
        "the summary of one group, whose number of consumers is looked at before",
        since=(5, 0),
        evidence=ConsumerEvidence,
    ),
)

_ARRAY: Final = (
    _length(CommandGroup.ARRAY, "ARCOUNT", since=(8, 8), since_valkey=None),
    _length(CommandGroup.ARRAY, "ARLEN", since=(8, 8), since_valkey=None),
    _entry(
        CommandGroup.ARRAY,
        "ARSCAN",
        (Integer("start", 0, MAX_ARRAY_INDEX), Integer("end", 0, MAX_ARRAY_INDEX), keyword("LIMIT"), _COUNT),
        "LIMIT elements, holes skipped; 100 elements 10¹² apart 0.4 ms",
        "always with a limit",
        since=(8, 8),
        since_valkey=None,
    ),
)

VALUES: Final = (*_STRING, *_HASH, *_LIST, *_SET, *_ZSET, *_STREAM, *_ARRAY)
"""What reads values of the built-in types."""

_SIZE: Final = "a size, without the content"
_DESCRIPTION: Final = "a description, without the content"

_of_vectors = partial(_entry, CommandGroup.VECTORS, shape=(), since=(8, 0), since_valkey=None, has_write_key_spec=True)
_of_module = partial(_entry, shape=(), cost="constant, as its manual says", since=(4, 0), has_write_key_spec=True)
_VALKEY_MODULES: Final = (8, 0)
"""The first Valkey that its JSON and Bloom modules are made for; it has none for the others."""

MODULES: Final = (
    _of_vectors("VCARD", cost="constant; 2 µs", why=_SIZE, in_bulk=True),
    _of_vectors("VINFO", cost="constant; 4 µs", why=_DESCRIPTION),
    _of_module(CommandGroup.JSON, "JSON.TYPE", why=_DESCRIPTION, since_valkey=_VALKEY_MODULES),
    _of_module(CommandGroup.JSON, "JSON.OBJLEN", why=_SIZE, since_valkey=_VALKEY_MODULES),
    _of_module(CommandGroup.JSON, "JSON.ARRLEN", why=_SIZE, since_valkey=_VALKEY_MODULES),
    _of_module(CommandGroup.JSON, "JSON.STRLEN", why=_SIZE, since_valkey=_VALKEY_MODULES),
    _of_module(CommandGroup.TIMESERIES, "TS.INFO", why=_DESCRIPTION, since_valkey=None),
    _of_module(CommandGroup.BLOOM, "BF.INFO", why=_DESCRIPTION, since_valkey=_VALKEY_MODULES),
    _of_module(CommandGroup.BLOOM, "CF.INFO", why=_DESCRIPTION, since_valkey=None),
    _of_module(CommandGroup.BLOOM, "CMS.INFO", why=_DESCRIPTION, since_valkey=None),
    _of_module(CommandGroup.BLOOM, "TOPK.INFO", why=_DESCRIPTION, since_valkey=None),
    _of_module(CommandGroup.BLOOM, "TDIGEST.INFO", why=_DESCRIPTION, since_valkey=None),
)
"""What describes values of vector sets and of types that modules bring: sizes and descriptions, never contents."""
