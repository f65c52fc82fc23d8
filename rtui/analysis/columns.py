"""Which facts an analysis asks: of all keys, of one key in eight, or of none.

As text, `ttl,memory,idle/8,length/8,encoding/16`: the facts that are asked, and of one key in how many; those left out
are not asked. The type is always asked, since what MEMORY USAGE costs depends on it. Standard library only: the command
line needs it before anything slow is imported.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from enum import StrEnum
from math import ceil
from typing import Final

SAMPLE_EVERY: Final = 8
"""One key in so many is asked what is asked of a sample."""

ENCODING_EVERY: Final = 16
"""One key of a type in so many is asked for its encoding where that is sampled."""

SMALL_KEYSPACE: Final = 20_000
"""With no more keys every key is asked everything by default: that takes a second, and samples would be small."""


class Asked(StrEnum):
    """Of which keys a fact is asked."""

    ALL = "all"
    SAMPLED = "sampled"
    """Of one key in SAMPLE_EVERY, chosen independently of names and types; encodings of one in ENCODING_EVERY."""
    NONE = "none"


class ColumnsError(ValueError):
    """A text that names no columns; the message says which there are."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Of which keys each fact is asked, as far as the server and the user's rights allow it."""

    ttl: Asked = Asked.ALL
    """All or none."""
    memory: Asked = Asked.ALL
    """All or none."""
    idle: Asked = Asked.SAMPLED
    """The idle time, or the access counter where the server keeps that instead."""
    length: Asked = Asked.SAMPLED
    encoding: Asked = Asked.SAMPLED

    @property
    def is_sampling(self) -> bool:
        """Whether some keys are asked more than others, apart from encodings."""
        return Asked.SAMPLED in (self.idle, self.length)

    def of_every_key(self) -> Columns:
        """Return the same columns, with idle time and length asked of every key where they are asked of some."""
        changes = {name: Asked.ALL for name in ("idle", "length") if getattr(self, name) is Asked.SAMPLED}
        return replace(self, **changes)

    def questions(self, keys: int) -> int:
        """Return how many questions about so many keys there are at most: the type and these facts."""
        every = {"encoding": ENCODING_EVERY, "length": SAMPLE_EVERY // 2}  # lengths of those that may be longest, too
        shares = {Asked.ALL: dict.fromkeys(_NAMES, 1), Asked.SAMPLED: dict.fromkeys(_NAMES, SAMPLE_EVERY) | every}
        asked = ((name, getattr(self, name)) for name in _NAMES)
        return keys + sum(ceil(keys / shares[how][name]) for name, how in asked if how in shares)

    def __str__(self) -> str:
        asked = ((one.name, getattr(self, one.name)) for one in fields(self))
        texts = [f"{name}{_share(name)}" if how is Asked.SAMPLED else name for name, how in asked if how in _ASKED]
        return ",".join(texts) or "type"


_ASKED: Final = (Asked.ALL, Asked.SAMPLED)

SAMPLED_COLUMNS: Final = Columns()
"""The default of a large keyspace."""

ALL_COLUMNS: Final = SAMPLED_COLUMNS.of_every_key()
"""Every fact of every key, but the encoding, of which a sample tells enough."""

EVERYTHING: Final = replace(ALL_COLUMNS, encoding=Asked.ALL)
_NAMES: Final = tuple(one.name for one in fields(Columns))
_SAMPLED: Final = tuple(name for name in _NAMES if getattr(SAMPLED_COLUMNS, name) is Asked.SAMPLED)
_ALIASES: Final = {"frequency": "idle", "freq": "idle"}


def _share(name: str) -> str:
    return f"/{ENCODING_EVERY if name == 'encoding' else SAMPLE_EVERY}"


def parse_columns(text: str) -> Columns | None:
    """Read `all`, `default` (None: by the number of keys) or names as in `str(Columns())`; raises ColumnsError."""
    words = [word.strip().lower() for word in text.split(",")]
    if words == ["default"]:
        return None
    if words == ["all"]:
        return ALL_COLUMNS
    found: dict[str, Asked] = {}
    for word in words:
        named, slash, _ = word.partition("/")
        name = _ALIASES.get(named, named)
        if word == "type":
            continue
        if name not in _NAMES:
            among = ", ".join(("type", *_NAMES))
            hint = " stands alone" if named in ("all", "default") else f" is not a column; the columns are {among}"
            raise ColumnsError((repr(word) if word else "nothing") + hint)
        if slash and (name not in _SAMPLED or word != named + _share(name)):
            samples = ", ".join(f"{one}{_share(one)}" for one in _SAMPLED)
            raise ColumnsError(f"{word!r} is not possible: {named} asks all keys; samples are {samples}")
        if name in found:
            raise ColumnsError(f"{named!r} is there twice")
        found[name] = Asked.SAMPLED if slash else Asked.ALL
    return Columns(**{name: found.get(name, Asked.NONE) for name in _NAMES})


def columns_for(chosen: Columns | None, keys: int | None) -> Columns:
    if chosen is not None:
        return chosen
    return ALL_COLUMNS if keys is not None and keys <= SMALL_KEYSPACE else SAMPLED_COLUMNS
