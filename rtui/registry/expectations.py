"""The expectations of a pattern about type, TTL, size and length, and the facts of one key to check.

A registry states the TTL that a key is *given*: `30m`. A server states the TTL that is *left*. So `30m` and `<=30m` are
both broken by a key with more than 30 minutes left, and neither by one with less. A single key does not show that it
was given too little, but many do: of keys that are given 30 minutes, half have more than 15 left, and that none of 20
has is next to impossible (`Ttl.is_too_short`).

A reference has a source, the part of a key that points (`member`, `value`, `field:userId`, `json:items[].id`), and a
target, a pattern that is filled with it: a member 17 of `user:5:orders` points to `order:17` by `order:<member>`. In
the other direction, a name that matches the target's pattern gives values for its placeholders; if these are all that
the source's pattern has, the key that should point here can be named: to `user:5` that is `user:list` with the member
5.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, NamedTuple

import msgspec

from rtui.keyspace.text.quantities import Bounds, ValueSyntaxError, parse_count, parse_duration, parse_size
from rtui.keyspace.types import TYPES
from rtui.registry.patterns import Pattern

NO_TTL: Final = -1
"""PTTL's reply for a key that does not expire."""

UNLIKELY: Final = 0.001
"""The probability below which TTLs are reported as too short."""


class ExpectationError(ValueError):
    """An expectation that can't be read; the message shows the right form, in safe text without a full stop."""


class Breach(Enum):
    """A broken expectation: the value is the id of the rule, the place among the members its bit."""

    TYPE = "type-wrong"
    TTL_MISSING = "ttl-missing"
    TTL_LONG = "ttl-too-long"
    TTL_UNEXPECTED = "ttl-unexpected"
    SIZE = "size-out-of-range"
    LENGTH = "length-out-of-range"

    @property
    def bit(self) -> int:
        return 1 << _BREACHES.index(self)


_BREACHES: Final = tuple(Breach)


def breaches_of(mask: int) -> tuple[Breach, ...]:
    return tuple(one for at, one in enumerate(_BREACHES) if mask >> at & 1)


@dataclass(frozen=True, slots=True)
class Ttl:
    """The TTLs that a key may be given."""

    text: str
    may_be_missing: bool
    may_expire: bool = True
    low_ms: int | None = None
    """The shortest TTL that a key is given; None without a limit."""
    high_ms: int | None = None
    """The longest TTL that a key is given; None without a limit."""

    def breach(self, ttl_ms: int) -> Breach | None:
        """Return the breach by a remaining TTL, NO_TTL for a key that does not expire; None if it is allowed."""
        if ttl_ms == NO_TTL:
            return None if self.may_be_missing else Breach.TTL_MISSING
        if not self.may_expire:
            return Breach.TTL_UNEXPECTED
        return Breach.TTL_LONG if self.high_ms is not None and ttl_ms > self.high_ms else None

    def is_too_short(self, longest_ms: int, keys: int) -> bool:
        """Whether keys were given less than the shortest TTL, if none of `keys` expiring ones has more than
        `longest_ms` left.

        Assumes that keys are created evenly over time.
        """
        if self.low_ms is None or not keys or longest_ms >= self.low_ms:
            return False
        return bool((max(longest_ms, 1) / self.low_ms) ** keys < UNLIKELY)


_RANGE: Final = "30m, 30m..2h, <=10m or >=1h"


def read_ttl(text: str) -> Ttl:
    """Read `30m`, `30m..2h`, `<=10m`, `>=1h`, `none`, `required`, and several with `|` between them.

    Raises ExpectationError.
    """
    may_be_missing = may_expire = False
    lows: list[int | None] = []
    highs: list[int | None] = []
    for choice in (choice.strip() for choice in text.split("|")):
        if choice == "none":
            may_be_missing = True
            continue
        may_expire = True
        bounds = Bounds() if choice == "required" else _bounds(choice, parse_duration, f"none, required, {_RANGE}")
        lows.append(bounds.low)
        highs.append(bounds.high)
    low = min((bound for bound in lows if bound is not None), default=None) if None not in lows else None
    high = max((bound for bound in highs if bound is not None), default=None) if None not in highs else None
    return Ttl(text, may_be_missing, may_expire, low, high)


_OPERATOR: Final = re.compile(r"(<=|>=|<|>|=)?\s*(.*)", re.DOTALL)


def _bounds(text: str, parse: Callable[[str], int], forms: str) -> Bounds:
    first, dots, last = text.partition("..")
    try:
        if dots:
            low = parse(first.strip()) if first.strip() else None
            high = parse(last.strip()) if last.strip() else None
            if low is None and high is None:
                raise ValueSyntaxError("a range has a value on one side at least")
            if low is not None and high is not None and low > high:
                raise ValueSyntaxError("the first value of a range is the smaller one")
            return Bounds(low, high)
        found = _OPERATOR.fullmatch(text)
        operator, value = (found[1], parse(found[2])) if found else (None, parse(text))
    except ValueSyntaxError as error:
        raise ExpectationError(f"{error}; it is {forms}") from None
    match operator:
        case "<=":
            return Bounds(None, value)
        case "<":
            return Bounds(None, value - 1)
        case ">=":
            return Bounds(value, None)
        case ">":
            return Bounds(value + 1, None)
        case _:
            return Bounds(value, value)


def read_size(text: str) -> Bounds:
    """Read `<=10K`, `1K..1M`, `>=100`: bytes, units of 1,024. Raises ExpectationError."""
    return _bounds(text, parse_size, "<=10K, 1K..1M or >=100")


def read_length(text: str) -> Bounds:
    """Read `<=1000`, `1..10k`: elements, or the bytes of a string, also `<=10KB`. Raises ExpectationError."""
    is_size = re.search(r"[0-9]\s*(?:[KMGT]i?)?B\b", text) is not None
    return _bounds(text, parse_size if is_size else parse_count, "<=1000, 1..10k or >=1, of a string also <=10KB")


_ALIASES: Final = {
    "json": b"ReJSON-RL", "timeseries": b"TSDB-TYPE", "hyperloglog": b"string", "bitmap": b"string",
    "sortedset": b"zset", "geo": b"zset",
}  # fmt: skip

_MODULE_TYPE: Final = re.compile(r"[A-Za-z0-9_-]{9}")


def type_names() -> tuple[str, ...]:
    return (*(name.decode() for name in TYPES), *_ALIASES)


def read_type(text: str) -> bytes:
    name = _ALIASES.get(text, text.encode())
    if name not in TYPES and not _MODULE_TYPE.fullmatch(text):
        raise ExpectationError(f"{text!r} is no type")
    return name


class FoundKey(NamedTuple):
    """The known facts of one key; None if unknown."""

    type: bytes | None = None
    ttl_ms: int | None = None
    memory_bytes: int | None = None
    length: int | None = None


class Check(NamedTuple):
    """One expectation and the verdict for a key."""

    fact: str
    """`type`, `TTL`, `size` or `length`."""
    expected: str
    breach: Breach | None
    is_known: bool


@dataclass(frozen=True, slots=True)
class Expectations:
    """The expectations of a pattern about each of its keys."""

    types: tuple[bytes, ...] = ()
    ttl: Ttl | None = None
    size: Bounds | None = None
    size_text: str = ""
    length: Bounds | None = None
    length_text: str = ""

    def broken(self, found: FoundKey) -> int:
        """Return the bits of broken expectations; unknown facts break nothing."""
        key_type, ttl_ms, memory_bytes, length = found
        mask = 0
        if self.types and key_type is not None and key_type not in self.types:
            mask = Breach.TYPE.bit
        if self.ttl is not None and ttl_ms is not None and (breach := self.ttl.breach(ttl_ms)) is not None:
            mask |= breach.bit
        if self.size is not None and memory_bytes is not None and memory_bytes not in self.size:
            mask |= Breach.SIZE.bit
        if self.length is not None and length is not None and length not in self.length:
            mask |= Breach.LENGTH.bit
        return mask

    def checks(self, found: FoundKey) -> tuple[Check, ...]:
        broken = breaches_of(self.broken(found))
        rows: list[tuple[str, str, object, Sequence[Breach]]] = []
        if self.types:
            expected = " or ".join(type_name.decode("utf-8", "replace") for type_name in self.types)
            rows.append(("type", expected, found.type, (Breach.TYPE,)))
        if self.ttl is not None:
            ways = (Breach.TTL_MISSING, Breach.TTL_LONG, Breach.TTL_UNEXPECTED)
            rows.append(("TTL", self.ttl.text, found.ttl_ms, ways))
        if self.size is not None:
            rows.append(("size", self.size_text, found.memory_bytes, (Breach.SIZE,)))
        if self.length is not None:
            rows.append(("length", self.length_text, found.length, (Breach.LENGTH,)))
        return tuple(
            Check(fact, expected, next((way for way in ways if way in broken), None), value is not None)
            for fact, expected, value, ways in rows
        )


MOST_VALUES: Final = 10_000


class ReferenceSource(Enum):
    """The part of a key that points; the value describes it."""

    MEMBER = "member"
    VALUE = "value"
    FIELD = "value of a field"
    FIELDS = "field"
    JSON = "value in JSON"
    """A field of a JSON document, in a string or of the JSON type."""
    KEY = "key"

    @property
    def placeholder(self) -> str | None:
        names = {ReferenceSource.MEMBER: "member", ReferenceSource.FIELDS: "field", ReferenceSource.KEY: None}
        return names.get(self, "value")

    @property
    def types(self) -> tuple[bytes, ...]:
        return {
            ReferenceSource.MEMBER: (b"set", b"zset", b"list"),
            ReferenceSource.VALUE: (b"string",),
            ReferenceSource.FIELD: (b"hash",),
            ReferenceSource.FIELDS: (b"hash",),
            ReferenceSource.JSON: (b"string", b"ReJSON-RL"),
            ReferenceSource.KEY: (),
        }[self]


@dataclass(frozen=True)
class Reference:
    """One reference of an entry."""

    source: ReferenceSource
    path: str
    target: Pattern
    twin: Pattern | None = None
    """The pattern of a key that must hold the same value."""

    def names(self, fields: Mapping[str, bytes], values: Sequence[bytes]) -> list[bytes]:
        """`fields` are the placeholders of the key's name, `values` the values found in it."""
        name = self.source.placeholder
        if name is None:
            filled = self.target.filled(fields)
            return [] if filled is None else [filled]
        found = (self.target.filled({**fields, name: value}) for value in values)
        return [name for name in found if name is not None]

    def twin_name(self, fields: Mapping[str, bytes]) -> bytes | None:
        return None if self.twin is None else self.twin.filled(fields)


class Incoming(NamedTuple):
    """A key that should point to another."""

    entry: int
    reference: Reference
    key: bytes
    value: bytes | None
    """The value that it should hold; None if its name is enough."""


def incoming(
    patterns: Sequence[Pattern], references: Sequence[tuple[int, Reference]], key: bytes
) -> Iterator[Incoming]:
    """Yield the keys that should point to a key, by their names; `references` are (pattern index, reference)."""
    for index, reference in references:
        fields = reference.target.fields(key)
        if fields is None:
            continue
        name = reference.source.placeholder
        value = fields.pop(name, None) if name is not None else None
        source = patterns[index].filled(fields)
        if source is not None and source != key:
            yield Incoming(index, reference, source, value)


_STEP: Final = re.compile(r"(?=.)([^.\[\]]*)((?:\[\])*)")


def json_steps(path: str) -> tuple[str | None, ...]:
    """Return the steps of a path such as `items[].id`: names, and None for each member. Raises ValueError."""
    steps: list[str | None] = []
    for part in path.split("."):
        found = _STEP.fullmatch(part)
        if found is None:
            raise ValueError
        steps += [*([found[1]] if found[1] else []), *([None] * (len(found[2]) // 2))]
    return tuple(steps)


def json_values(text: bytes, path: str) -> list[bytes] | None:
    """Return the texts and whole numbers at a path of a whole JSON document, whose size the caller bounds."""
    try:
        found: list[Any] = [msgspec.json.decode(text)]
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    for step in json_steps(path):
        if step is None:
            found = [member for value in found if isinstance(value, list) for member in value[:MOST_VALUES]]
        else:
            found = [value[step] for value in found if isinstance(value, dict) and step in value]
    return [_written(one) for one in found[:MOST_VALUES] if isinstance(one, str | int) and not isinstance(one, bool)]


def _written(value: str | int) -> bytes:
    return value.encode() if isinstance(value, str) else b"%d" % value
