"""The parts of a preview: a bounded piece of a value as cells of bytes and numbers, never as formatted text."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from rtui.analysis.facts import Unknown
from rtui.keyspace.text.display import SafeText
from rtui.keyspace.text.glob import GlobMatcher, check_pattern, escape_glob


@dataclass(frozen=True, slots=True)
class Unread:
    """A value that was left on the server because of its size in bytes, None if that is unknown."""

    size_bytes: int | None
    was_read: bool = False
    """Whether it was read, and is too large to be kept."""


PreviewCell = bytes | int | float | None | Unread | Unknown
"""One value of a table; None is an empty cell."""

PreviewRow = tuple[PreviewCell, ...]
"""The cells of one row, in the order of the columns."""


class Meaning(StrEnum):
    """The meaning of a column's numbers or bytes, so that a screen can format them."""

    NAME = "name"
    VALUE = "value"
    COUNT = "count"
    INDEX = "index"
    SCORE = "score"
    DURATION_MS = "milliseconds"
    STREAM_ID = "stream id"
    DEGREES = "degrees"


@dataclass(frozen=True, slots=True)
class PreviewColumn:
    """A column's title and meaning."""

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
    """The raw name at the end of the title, as in `consumers of`."""


class PreviewKind(StrEnum):
    """The kind of content in a preview."""

    TEXT = "text"
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
    """Nothing could be read; `refusal` has the reason."""


GLOB_CHARACTERS: Final = frozenset(b"*?[")
"""A text with one of these is a glob; any other is searched for anywhere in a name."""


@dataclass(frozen=True, slots=True)
class Find:
    """A search inside a value: for a part of a name, member or element, a glob, or exactly one name."""

    text: bytes
    is_exact: bool = False

    @property
    def pattern(self) -> bytes:
        """The glob of the search; raises PatternError if it is too long, or has too many stars."""
        if self.is_exact:
            return check_pattern(escape_glob(self.text))
        if not self.text:
            return b"*"
        is_glob = not GLOB_CHARACTERS.isdisjoint(self.text)
        return check_pattern(self.text if is_glob else b"*" + escape_glob(self.text) + b"*")

    @property
    def matcher(self) -> GlobMatcher:
        """A matcher with the server's rules; raises PatternError."""
        return GlobMatcher(self.pattern)


@dataclass(frozen=True, slots=True)
class PageRange:
    """The part of a sorted set or a stream that pages are limited to."""

    title: SafeText
    """The range that was asked for, such as `score 10 to 20`."""
    last: int | bytes
    """The rank of its last member, or the lowest id of its entries."""
    length: int | None = None
    """The number of elements, or None."""


@dataclass(frozen=True, slots=True)
class Page:
    """A position in a value: a byte offset, an index, a scan cursor or a stream id, and the page before it."""

    position: int | bytes = 0
    number: int = 1
    previous: Page | None = field(default=None, repr=False, compare=False)
    whole_values: bool = False
    """Whether this page has to be read without knowing the sizes of its values first: see `hashes`."""
    seen: int | None = 0
    """The number of elements before it, or None."""
    find: Find | None = None
    span: PageRange | None = None
    is_short: bool = False
    """Whether the position is a cursor for short members only: see `collections`."""
    on_purpose: int = 0
    """The number of possibly large elements to read on the user's request; 0 without one."""
    step: int = 0
    """For consecutive positions, the distance to the page before if that is not kept; else 0."""

    @property
    def before(self) -> Page | None:
        """The page before this one, None for the first."""
        if self.previous is not None or not self.step or not isinstance(self.position, int) or self.position <= 0:
            return self.previous
        return self.at(max(0, self.position - self.step), self.step)

    @staticmethod
    def at(position: int, step: int, span: PageRange | None = None) -> Page:
        """Return the page at a position that equals the number of elements before it."""
        return Page(position, number=1 if not position else 2, seen=position, step=step, span=span)

    def following(self, position: int | bytes, *, whole_values: bool = False, shown: int | None = None) -> Page:
        """Return the page after this one; `shown` is this page's number of elements, if it is known."""
        seen = None if self.seen is None or shown is None else self.seen + shown
        return Page(position, self.number + 1, self, whole_values, seen, self.find, self.span)


FIRST: Final = Page()


@dataclass(frozen=True, slots=True)
class StringWindow:
    """Consecutive bytes of a string."""

    offset_bytes: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Offer:
    """Elements that may be large, to be read only on the user's request."""

    page: Page
    said: str
    """A safe sentence about the cost."""


@dataclass(frozen=True, slots=True)
class Preview:
    """A page of a value, with facts of the whole value."""

    key: bytes
    type: bytes | Unknown
    kind: PreviewKind
    page: Page = FIRST
    total: int | Unknown = 0
    """The number of elements of the whole value, or of bytes of a string."""
    summary: tuple[tuple[str, PreviewCell | Unknown], ...] = ()
    """Facts of the whole value; the names may come from the server and have to be made safe to show."""
    columns: tuple[PreviewColumn, ...] = ()
    rows: tuple[PreviewRow, ...] = ()
    window: StringWindow | None = None
    sections: tuple[SideTable, ...] = ()
    next_page: Page | None = None
    notes: tuple[str, ...] = ()
    refusal: Unknown | None = None
    """The reason why nothing, or nothing more, is shown."""
    first: int | None = None
    """The number of elements of the value before the first row, or None."""
    elements: int | None = None
    """The number of elements in the rows; None if each row is an element."""
    looked_at: int = 0
    """The number of elements that were searched for matches."""
    offers: tuple[Offer, ...] = ()
    """Further elements that the user may request."""
    touched: bool = False
    """Whether reading it has counted as an access: NO-TOUCH was not on."""
