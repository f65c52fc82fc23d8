"""The terms of the query language, declared: operators, values, which fact of a key they need, help.

Parsing, printing, completion, help and error messages follow from this table. To add a term, add its entry and, where
it is about names, its test (`deciding`); where it is about a new fact, how that is asked (`server.search.candidates`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Final

from rtui.keyspace.slots import SLOTS
from rtui.keyspace.text import quantities
from rtui.keyspace.text.quantities import Syntax, ValueSyntaxError
from rtui.keyspace.types import TYPES


class Fact(StrEnum):
    """The fact about a key that decides a term; the value is its name in columns."""

    NAME = "key"
    TYPE = "type"
    TTL = "ttl"
    IDLE = "idle"
    FREQUENCY = "freq"
    ENCODING = "enc"
    MEMORY = "size"
    LENGTH = "len"
    VALUE = "value"

    @property
    def command(self) -> str:
        return _NAMES[self][0]

    @property
    def field(self) -> str:
        return _NAMES[self][1]

    @property
    def column(self) -> str:
        return _NAMES[self][2]


_NAMES: Final = {
    Fact.NAME: ("SCAN", "key", "name"),
    Fact.TYPE: ("TYPE", "key_type", "type"),
    Fact.TTL: ("PTTL", "ttl_ms", "expires_ms"),
    Fact.IDLE: ("OBJECT IDLETIME", "idle_s", "idle_s"),
    Fact.FREQUENCY: ("OBJECT FREQ", "frequency", "frequency"),
    Fact.ENCODING: ("OBJECT ENCODING", "encoding", "encoding"),
    Fact.MEMORY: ("MEMORY USAGE", "memory_bytes", "memory_bytes"),
    Fact.LENGTH: ("the length (STRLEN, HLEN, …)", "length", "length"),
    Fact.VALUE: ("the value (GETRANGE, HSCAN, …)", "", ""),
}


class NumberKeyword(Enum):
    """A value that is no number where numbers stand."""

    NONE = "none"


def parse_slot(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,5}", text) or int(text) >= SLOTS:
        raise ValueSyntaxError(f"a slot is a number from 0 to {SLOTS - 1}")
    return int(text)


SLOT: Final = Syntax("a slot", parse_slot, str, (), is_continuous=False, between="-", most=SLOTS - 1)


def parse_shard(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,5}", text) or not 1 <= int(text) <= SLOTS:
        raise ValueSyntaxError("a shard is a number from 1, by the shards' first slots")
    return int(text)


SHARD: Final = Syntax("a shard", parse_shard, str, (), is_continuous=False, between="-", most=SLOTS)

PLACES: Final = (SLOT, SHARD)
"""Numbers of places, which are not compared."""


class TermForm(Enum):
    """The form of the values after the name of a term."""

    TEXT = "text"
    """Any characters up to the next space, or quoted text."""
    NAMES = "names"
    """Names with commas between them, each quoted where it has to be; one of them has to apply."""
    NUMBERS = "numbers"
    """Numbers and ranges with commas between them, or one number behind a comparison."""


COMPARISONS: Final = ("<=", ">=", "<", ">")
"""The operators before a number, the longer ones first."""


@dataclass(frozen=True, slots=True)
class TermSpec:
    """One term of the language."""

    name: str
    fact: Fact
    form: TermForm
    help: str
    examples: tuple[str, ...]
    syntax: Syntax | None = None
    keyword: NumberKeyword | None = None
    scale: int = 1
    """Units of its numbers in one unit of the fact: typed in milliseconds and known in seconds, it is 1,000."""
    is_left: bool = False
    """Whether its numbers are the time left until the known moment."""
    known: tuple[bytes, ...] = ()
    tried: Mapping[str, str] = field(default_factory=dict)
    """Words that people try as its value, in lower case, and the value that they mean."""

    @property
    def operators(self) -> tuple[str, ...]:
        return (":", *COMPARISONS) if self.syntax is not None and self.syntax not in PLACES else (":",)


ENCODINGS: Final = (
    *(b"raw", b"int", b"embstr", b"listpack", b"ziplist", b"quicklist", b"linkedlist", b"hashtable", b"intset"),
    *(b"skiplist", b"stream", b"listpackex", b"template-listpack", b"sliced-array"),
)
"""Encodings that servers are known to have; any other may be asked for as well."""

_TRIED_TYPES: Final = {
    "json": "ReJSON-RL",
    **dict.fromkeys(("sortedset", "sorted-set", "sorted_set", "sortedsets", "zsets", "geo", "geospatial"), "zset"),
    **dict.fromkeys(("hashes", "hashmap", "dict", "map", "object"), "hash"),
    **dict.fromkeys(("str", "text", "int", "integer", "number", "counter", "bitmap", "hyperloglog", "hll"), "string"),
    **dict.fromkeys(("array", "queue"), "list"),
    **dict.fromkeys(("ts", "timeseries", "time-series"), "TSDB-TYPE"),
    **dict.fromkeys(("vector", "vectors", "vset", "vector-set"), "vectorset"),
    **dict.fromkeys(("bloom", "bloomfilter", "bf"), "MBbloom--"),
    **dict.fromkeys(("cuckoo", "cuckoofilter", "cf"), "MBbloomCF"),
    **dict.fromkeys(("cms", "countminsketch"), "CMSk-TYPE"),
    "topk": "TopK-TYPE",
    **dict.fromkeys(("tdigest", "t-digest"), "TDIS-TYPE"),
}

_TRIED_TTLS: Final = {
    **dict.fromkeys(("never", "no", "non", "not", "off", "false", "null", "nil", "nothing", "missing", "-1"), "none"),
    **dict.fromkeys(("inf", "infinite", "infinity", "∞", "forever", "unlimited", "persistent", "persist"), "none"),
    **dict.fromkeys(("any", "some", "yes", "set", "true", "on", "exists", "*", "volatile"), "!none"),
}
"""With a ! the term is turned round."""

TEXT: Final = "text"
GLOB: Final = "glob"
REGEX: Final = "re"
VALUE: Final = "value"

TERMS: Final[dict[str, TermSpec]] = {
    spec.name: spec
    for spec in (
        TermSpec(TEXT, Fact.NAME, TermForm.TEXT,
            "names that contain it; lower-case letters match capitals, too. The prefix text: is optional",
            ("cart", '"two words"')),
        TermSpec(GLOB, Fact.NAME, TermForm.TEXT,
            "names that match as a whole: * any characters, ? one, [ab] one of these. The prefix glob: is optional",
            ("user:*:cart", "session:[0-9]*")),
        TermSpec(REGEX, Fact.NAME, TermForm.TEXT,
            "names that match a regular expression (RE2) anywhere; anchor with ^ and $",
            (r"re:^user:\d+$", "re:(?i)cart")),
        TermSpec("in", Fact.NAME, TermForm.NAMES, "keys below a namespace", ("in:shop:user", "in:shop,app")),
        TermSpec("pattern", Fact.NAME, TermForm.NAMES,
            "names of this pattern; <id>, <uuid>, <hash>, <date>, <ip> and <email> stand for identifiers, <n> for a "
            "number in a name, <*> for any other name; with a separator at the end, all keys below",
            ("pattern:user:<id>:orders", "pattern:page_<n>", "pattern:shop:<*>:")),
        TermSpec("tag", Fact.NAME, TermForm.NAMES, "keys with this hash tag: the text between { and }",
            ("tag:campaign42",)),
        TermSpec("slot", Fact.NAME, TermForm.NUMBERS, "keys of this hash slot, or of a range of slots",
            ("slot:2734", "slot:0-5460"), SLOT),
        TermSpec("node", Fact.NAME, TermForm.NAMES,
            "keys in the slots of a cluster node, or of the primary of a replica: host:port or host",
            ("node:10.0.0.5:6379",)),
        TermSpec("shard", Fact.NAME, TermForm.NUMBERS, "keys of a cluster shard, numbered by first slot",
            ("shard:1", "shard:1-3"), SHARD),
        TermSpec("type", Fact.TYPE, TermForm.NAMES, "keys of this type", ("type:hash", "type:hash,set"),
            known=tuple(TYPES), tried=_TRIED_TYPES),
        TermSpec("ttl", Fact.TTL, TermForm.NUMBERS, "by remaining TTL, or without a TTL",
            ("ttl:none", "ttl<10m", "ttl:10m..1h"), quantities.DURATION, NumberKeyword.NONE, is_left=True,
            tried=_TRIED_TTLS),
        TermSpec("expires", Fact.TTL, TermForm.NUMBERS, "by expiry time, in UTC",
            ("expires:2026-11-22T21:31..21:33", "expires<2026-12-01"), quantities.MOMENT),
        TermSpec("idle", Fact.IDLE, TermForm.NUMBERS, "by idle time (time since the last access)", ("idle>30d",),
            quantities.DURATION, scale=1000),
        TermSpec("freq", Fact.FREQUENCY, TermForm.NUMBERS, "by LFU access counter, 0 to 255 (needs an LFU policy)",
            ("freq>100",), quantities.COUNTER),
        TermSpec("enc", Fact.ENCODING, TermForm.NAMES, "keys in this encoding", ("enc:listpack", "enc:raw,int"),
            known=ENCODINGS,
            tried={"integer": "int", "number": "int", "string": "raw", "hashmap": "hashtable", "dict": "hashtable"}),
        TermSpec("size", Fact.MEMORY, TermForm.NUMBERS, "by memory (MEMORY USAGE); K, M and G are binary",
            ("size>1M", "size:1K..64K"), quantities.SIZE),
        TermSpec("len", Fact.LENGTH, TermForm.NUMBERS,
            "by length: bytes of a string, fields, members, elements, entries", ("len>10000", "len:1"),
            quantities.COUNT),
        TermSpec(VALUE, Fact.VALUE, TermForm.TEXT,
            "of dumps: values that contain it, in any field, member, item or entry, also decoded",
            ("value:needle", 'value:"two words"')),
    )
}  # fmt: skip
