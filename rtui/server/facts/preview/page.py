"""What a preview consists of: a bounded piece of a value as cells of bytes and numbers, never as formatted text."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from rtui.analysis.facts import Unknown


@dataclass(frozen=True, slots=True)
class Unread:
    """A value that was left on the server because of its size, in bytes; None where the size is not known either."""

    size_bytes: int | None


PreviewCell = bytes | int | float | None | Unread
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


@dataclass(frozen=True, slots=True)
class Page:
    """A position in a value: a byte offset, an index, a scan cursor or a stream id, and the page before it."""

    position: int | bytes = 0
    number: int = 1
    previous: Page | None = field(default=None, repr=False, compare=False)
    whole_values: bool = False
    """Whether this page has to be read without knowing the sizes of its values first: see `hashes`."""

    def following(self, position: int | bytes, *, whole_values: bool = False) -> Page:
        """Return the page after this one."""
        return Page(position, self.number + 1, self, whole_values)


FIRST: Final = Page()


@dataclass(frozen=True, slots=True)
class StringWindow:
    """Consecutive bytes of a string."""

    offset_bytes: int
    data: bytes
    json_lines: tuple[bytes, ...] = ()
    """The whole value with one member a line, where it is JSON and small; each line still has to be made safe."""


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
    touched: bool = False
    """Whether reading it has counted as an access: NO-TOUCH was not on."""
