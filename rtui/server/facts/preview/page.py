"""What a preview consists of: a bounded piece of a value as cells of bytes and numbers, never as formatted text."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from rtui.analysis.facts import Unknown
from rtui.keyspace.text.display import SafeText
from rtui.keyspace.text.glob import Matcher, check_pattern, escape_glob


@dataclass(frozen=True, slots=True)
class Unread:
    """A value that was left on the server because of its size, in bytes; None where the size is not known either."""

    size_bytes: int | None
    was_read: bool = False
    """Whether it was read, and is too large to be kept."""


PreviewCell = bytes | int | float | None | Unread | Unknown
"""One value of a table; None is an empty cell."""

PreviewRow = tuple[PreviewCell, ...]
"""The cells of one row, in the order of the columns."""


class Meaning(StrEnum):
    """What a column's numbers or bytes are, so that a screen knows how to write them."""

    NAME = "name"
    VALUE = "value"
    COUNT = "count"
    INDEX = "index"
    SCORE = "score"
    DURATION_MS = "milliseconds"
    STREAM_ID = "stream id"
    DEGREES = "degrees"
    """Of longitude or latitude."""


@dataclass(frozen=True, slots=True)
class PreviewColumn:
    """A column's title and what is in it."""

    title: str
    meaning: Meaning


@dataclass(frozen=True, slots=True)
class SideTable:
    """A table beside the main one: a stream's groups, the set bits of a bitmap."""

    title: str
    columns: tuple[PreviewColumn, ...]
    rows: tuple[PreviewRow, ...]
    notes: tuple[str, ...] = ()
    subject: bytes | None = None
    """The raw name that the title ends with, as in `consumers of`."""


class PreviewKind(StrEnum):
    """What a preview shows."""

    TEXT = "text"
    JSON = "json"
    BINARY = "binary"
    HYPERLOGLOG = "hyperloglog"
    BITMAP = "bitmap"
    HASH = "hash"
    LIST = "list"
    SET = "set"
    ZSET = "zset"
    STREAM = "stream"
    ARRAY = "array"
    DESCRIPTION = "description"
    """A type whose content is not read: name, size and the server's own description."""
    NOTHING = "nothing"
    """Nothing could be read; `refusal` says why."""


GLOB_CHARACTERS: Final = frozenset(b"*?[")
"""A text with one of these is a glob; any other is looked for anywhere in a name."""


@dataclass(frozen=True, slots=True)
class Find:
    """What is looked for inside a value: a part of a name, member or element, a glob, or exactly one name."""

    text: bytes
    is_exact: bool = False

    @property
    def pattern(self) -> bytes:
        """The glob that stands for it; raises PatternError where it is too long, or has too many stars."""
        if self.is_exact:
            return check_pattern(escape_glob(self.text))
        if not self.text:
            return b"*"
        is_glob = not GLOB_CHARACTERS.isdisjoint(self.text)
        return check_pattern(self.text if is_glob else b"*" + escape_glob(self.text) + b"*")

    @property
    def matcher(self) -> Matcher:
        """Matches as the server would; raises PatternError."""
        return Matcher(self.pattern)


@dataclass(frozen=True, slots=True)
class Span:
    """The part of a sorted set or a stream that pages are limited to."""

    title: SafeText
    """How it was asked for, such as `score 10 to 20`."""
    last: int | bytes
    """The rank of its last member, or the lowest id of its entries."""
    length: int | None = None
    """How many elements it has, None where that is not known."""


@dataclass(frozen=True, slots=True)
class Page:
    """A position in a value: a byte offset, an index, a scan cursor or a stream id, and the page before it."""

    position: int | bytes = 0
    number: int = 1
    previous: Page | None = field(default=None, repr=False, compare=False)
    whole_values: bool = False
    """Whether this page has to be read without knowing the sizes of its values first: see `hashes`."""
    seen: int | None = 0
    """How many elements come before it; None where that is not known."""
    find: Find | None = None
    """Only elements that match are wanted."""
    span: Span | None = None
    """Only these elements are wanted."""
    is_short: bool = False
    """Whether the position is a cursor, and only short members are wanted: see `collections`."""
    on_purpose: int = 0
    """So many elements are read though they may be large, since the user has said so; 0 for what is read unasked."""
    step: int = 0
    """Where positions are consecutive numbers, how far the page before is, unless it is kept; 0 elsewhere."""

    @property
    def before(self) -> Page | None:
        """The page before this one, None for the first."""
        if self.previous is not None or not self.step or not isinstance(self.position, int) or self.position <= 0:
            return self.previous
        return self.at(max(0, self.position - self.step), self.step)

    @staticmethod
    def at(position: int, step: int, span: Span | None = None) -> Page:
        """Return the page at a position that says how many elements come before it."""
        return Page(position, number=1 if not position else 2, seen=position, step=step, span=span)

    def following(self, position: int | bytes, *, whole_values: bool = False, shown: int | None = None) -> Page:
        """Return the page after this one, which has `shown` elements, None where that is not known."""
        seen = None if self.seen is None or shown is None else self.seen + shown
        return Page(position, self.number + 1, self, whole_values, seen, self.find, self.span)


FIRST: Final = Page()


@dataclass(frozen=True, slots=True)
class StringWindow:
    """Consecutive bytes of a string."""

    offset_bytes: int
    data: bytes
    json_lines: tuple[bytes, ...] = ()
    """The whole value with one member a line, where it is JSON and small; each line still has to be made safe."""


@dataclass(frozen=True, slots=True)
class Offer:
    """Elements that may be large, and are read only if the user says so."""

    page: Page
    said: str
    """A safe sentence on what it costs."""


@dataclass(frozen=True, slots=True)
class Preview:
    """A page of a value, and what is known of the whole."""

    key: bytes
    type: bytes | Unknown
    kind: PreviewKind
    page: Page = FIRST
    total: int | Unknown = 0
    """Elements of the whole value, or bytes of a string."""
    summary: tuple[tuple[str, PreviewCell | Unknown], ...] = ()
    """Facts of the value as a whole; the names may come from the server and have to be made safe to show."""
    columns: tuple[PreviewColumn, ...] = ()
    rows: tuple[PreviewRow, ...] = ()
    window: StringWindow | None = None
    sections: tuple[SideTable, ...] = ()
    next_page: Page | None = None
    notes: tuple[str, ...] = ()
    """Safe sentences."""
    refusal: Unknown | None = None
    """Why nothing, or nothing more, is shown."""
    first: int | None = None
    """How many elements of the whole value come before the first row; None where that is not known."""
    elements: int | None = None
    """How many elements the rows are of; None where a row is an element."""
    looked_at: int = 0
    """How many elements were looked at for the ones that match."""
    offers: tuple[Offer, ...] = ()
    """What may be read beyond this, if the user says so."""
    touched: bool = False
    """Whether reading it has counted as an access: NO-TOUCH was not on."""
