"""What a preview is: a bounded piece of a value as cells of bytes and numbers, never as formatted text."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from rtui.analysis.facts import KeyFacts, Reason, Unknown
from rtui.analysis.humanize import size
from rtui.server.facts.preview.content import HexRow, hex_rows
from rtui.server.guard.evidence import FEW_ELEMENTS
from rtui.server.guard.key_entries import MAX_ELEMENTS, MAX_RANDOM


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
    SIZE_BYTES = "bytes"
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
    """The raw name that the title speaks of, as in `consumers of`."""


class PreviewKind(StrEnum):
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
class StringWindow:
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
    kind: PreviewKind
    page: Page = FIRST
    total: int | Unknown = 0
    """Elements of the whole value, or bytes of a string."""
    summary: tuple[tuple[str, PreviewCell | Unknown], ...] = ()
    """What is said of the value as a whole; the names may come from the server and have to be made safe to show."""
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

    @property
    def previous_page(self) -> Page | None:
        """The page before; None on the first."""
        return self.page.previous


PAGE_ITEMS: Final = 100
"""Elements of a full page."""

SAMPLE_ITEMS: Final = MAX_RANDOM
"""Random elements shown of a collection that can't be paged."""

CAUTIOUS_ITEMS: Final = FEW_ELEMENTS
"""Elements of a page when nobody knows how large they are."""

PAGE_BYTES: Final = 1 << 20
"""What a page may bring, by the memory of an average element."""

VALUE_BYTES: Final = 16 * 1024
"""Largest value of a hash field that is read; of larger ones the size is shown."""

VALUES_BYTES: Final = 256 * 1024
"""What the values of one page of a hash may add up to."""

STRING_WINDOW_BYTES: Final = 4 * 1024
"""Bytes of a string that one page shows unless asked otherwise."""


def page_items(facts: KeyFacts) -> int:
    """How many elements a page may ask for, by the size of the average one; 0 when a single one is too much."""
    if isinstance(facts.memory_bytes, Unknown):
        return CAUTIOUS_ITEMS
    if facts.memory_bytes <= PAGE_BYTES:
        return PAGE_ITEMS
    mean = facts.mean_element_bytes
    if mean is None:
        return CAUTIOUS_ITEMS
    return min(PAGE_ITEMS, MAX_ELEMENTS, int(PAGE_BYTES // mean))


def all_at_once(facts: KeyFacts, command: str) -> str:
    """Say why a scan command is not used on this value."""
    if isinstance(facts.encoding, Unknown):
        return f"{command} might answer with all at once, since the encoding is not known"
    return f"{command} would answer with all at once in this encoding"


def too_large(facts: KeyFacts, element: str) -> Unknown:
    """Say that elements of this size are not read."""
    mean = facts.mean_element_bytes or 0
    return Unknown(Reason.TOO_LARGE, f"on average one {element} takes {size(mean)}: none was read")


def no_sample(facts: KeyFacts, command: str) -> Unknown:
    """Say that not even random elements are read, since the server would walk over all of them."""
    if isinstance(facts.encoding, Unknown):
        return Unknown(Reason.TOO_LARGE, f"{command} might walk over all elements, since the encoding is not known")
    return Unknown(Reason.TOO_LARGE, f"{command} would walk over all elements in this encoding")


def size_notes(facts: KeyFacts) -> tuple[str, ...]:
    """Say why pages are smaller than usual, if they are."""
    items = page_items(facts)
    if items >= PAGE_ITEMS:
        return ()
    if isinstance(facts.memory_bytes, Unknown) or facts.mean_element_bytes is None:
        return (f"pages of {items}: the size of the elements is not known",)
    return (f"pages of {items}: on average one element takes {size(facts.mean_element_bytes)}",)
