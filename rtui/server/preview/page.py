"""What a preview is: a bounded piece of a value as cells of bytes and numbers, never as formatted text."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from rtui.analysis.facts import Unknown
from rtui.server.preview.hexdump import HexRow, hex_rows


@dataclass(frozen=True, slots=True)
class Unread:
    """A value that was left on the server because of its size, in bytes; None where the size is not known either."""

    size_bytes: int | None


Cell = bytes | int | float | None | Unread
"""One value of a table; None is an empty cell."""

Row = tuple[Cell, ...]
"""The cells of one row, in the order of the columns."""


class Meaning(StrEnum):
    """What a column's numbers or bytes are, so that a screen knows how to write them."""

    NAME = "name"
    VALUE = "value"
    COUNT = "count"
    INDEX = "index"
    SCORE = "score"
    SIZE_BYTES = "bytes"
    DURATION_MS = "milliseconds"
    STREAM_ID = "stream id"


@dataclass(frozen=True, slots=True)
class Column:
    """A column's title and what is in it."""

    title: str
    meaning: Meaning


@dataclass(frozen=True, slots=True)
class Section:
    """A table beside the main one: a stream's groups, the set bits of a bitmap."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    subject: bytes | None = None
    """The raw name that the title speaks of, as in `consumers of`."""


class Kind(StrEnum):
    """What kind of value a preview shows."""

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
    """A type whose content is not read: name, size and what the server tells of it."""
    NOTHING = "nothing"
    """Nothing could be read; `refusal` says why."""


@dataclass(frozen=True, slots=True)
class Page:
    """A place in a value: a byte offset, an index, a scan cursor or a stream id, and the page one came from."""

    position: int | bytes = 0
    number: int = 1
    previous: Page | None = field(default=None, repr=False, compare=False)
    whole_values: bool = False
    """Whether this page has to be read without knowing the sizes of its values first: see `hashes`."""

    def following(self, position: int | bytes, *, whole_values: bool = False) -> Page:
        """Make the page after this one."""
        return Page(position, self.number + 1, self, whole_values)


FIRST: Final = Page()
"""Where each value begins."""


@dataclass(frozen=True, slots=True)
class Window:
    """Consecutive bytes of a string."""

    offset_bytes: int
    data: bytes
    total_bytes: int | Unknown
    json_lines: tuple[bytes, ...] = ()
    """The whole value laid out, where it is JSON and small; each line still has to be made safe to show."""

    @property
    def hex_rows(self) -> tuple[HexRow, ...]:
        """The window as a hex dump."""
        return hex_rows(self.data, self.offset_bytes)


@dataclass(frozen=True, slots=True)
class Preview:
    """A page of a value, and what is known of the whole."""

    key: bytes
    type: bytes | Unknown
    kind: Kind
    page: Page = FIRST
    total: int | Unknown = 0
    """Elements of the whole value, or bytes of a string."""
    summary: tuple[tuple[str, Cell | Unknown], ...] = ()
    """What is said of the value as a whole; the names may come from the server and have to be made safe to show."""
    columns: tuple[Column, ...] = ()
    rows: tuple[Row, ...] = ()
    window: Window | None = None
    sections: tuple[Section, ...] = ()
    next_page: Page | None = None
    notes: tuple[str, ...] = ()
    """Safe sentences."""
    refusal: Unknown | None = None
    """Why nothing, or nothing more, is shown."""
    touched: bool = False
    """Whether reading it has counted as an access: NO-TOUCH was not on."""

    @property
    def previous_page(self) -> Page | None:
        """The page before; None on the first."""
        return self.page.previous
