"""References from the values of keys to other keys, and back.

A reference has a source, the part of a key that points (`member`, `value`, `field:userId`, `json:items[].id`), and a
target, a pattern that is filled with it: a member 17 of `user:5:orders` points to `order:17` by `order:{member}`. In
the other direction, a name that matches the target's pattern gives values for its placeholders; if these are all that
the source's pattern has, the key that should point here can be named: to `user:5` that is `user:list` with the member
5.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, NamedTuple

import msgspec

from rtui.registry.patterns import Pattern

MOST_VALUES: Final = 10_000
"""The most values taken from one JSON document."""


class Source(Enum):
    """The part of a key that points; the value describes it."""

    MEMBER = "member"
    """Each member of a set, list or zset."""
    VALUE = "value"
    """A whole string."""
    FIELD = "value of a field"
    """The value of one field of a hash."""
    FIELDS = "field"
    """The name of each field of a hash."""
    JSON = "value in JSON"
    """A field of a JSON document, in a string or of the JSON type."""
    KEY = "key"
    """The name of the key alone."""

    @property
    def placeholder(self) -> str | None:
        """The placeholder for its values in a target; None for the name alone."""
        names = {Source.MEMBER: "member", Source.FIELDS: "field", Source.KEY: None}
        return names.get(self, "value")

    @property
    def types(self) -> tuple[bytes, ...]:
        """The types of keys that have such a part; empty for any."""
        return {
            Source.MEMBER: (b"set", b"zset", b"list"),
            Source.VALUE: (b"string",),
            Source.FIELD: (b"hash",),
            Source.FIELDS: (b"hash",),
            Source.JSON: (b"string", b"ReJSON-RL"),
            Source.KEY: (),
        }[self]


@dataclass(frozen=True)
class Reference:
    """One reference of an entry."""

    source: Source
    path: str
    """The field, or the path in JSON; else empty."""
    target: Pattern
    twin: Pattern | None = None
    """The pattern of a key that must hold the same value."""

    def names(self, fields: Mapping[str, bytes], values: Sequence[bytes]) -> list[bytes]:
        """Return the names that a key points to; `fields` are the placeholders of its name, `values` the values found
        in it."""
        name = self.source.placeholder
        if name is None:
            filled = self.target.filled(fields)
            return [] if filled is None else [filled]
        found = (self.target.filled({**fields, name: value}) for value in values)
        return [name for name in found if name is not None]

    def twin_name(self, fields: Mapping[str, bytes]) -> bytes | None:
        """Return the name of the key that must hold the same value, or None."""
        return None if self.twin is None else self.twin.filled(fields)


class Incoming(NamedTuple):
    """A key that should point to another."""

    entry: int
    """The index of its pattern."""
    reference: Reference
    key: bytes
    value: bytes | None
    """The value that it should hold; None if its name is enough."""


def incoming(
    patterns: Sequence[Pattern], references: Sequence[tuple[int, Reference]], key: bytes
) -> Iterator[Incoming]:
    """Yield the keys that should point to a key, as far as names determine them; `references` are (pattern index,
    reference)."""
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
    """Return the texts and whole numbers at a path of a JSON document; None if it is not JSON.

    Reads the whole document: the caller bounds its size.
    """
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
