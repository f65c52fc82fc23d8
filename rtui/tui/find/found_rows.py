"""The keys that a search has listed, as rows: their columns, and the order that the user wants.

Rows stay where they are while a search goes on: what it finds is appended, and sorted at its end. Sorting ten thousand
rows takes longer than a frame, so the order is worked out in a thread from the rows that there are, and later ones
follow them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from heapq import merge
from operator import attrgetter
from typing import Any, Final

from rtui.analysis.facts import NO_EXPIRY, NoTtl
from rtui.analysis.query.matches import FIELD_OF, Order
from rtui.analysis.query.query import Query
from rtui.analysis.query.terms import Fact
from rtui.analysis.report.document import KeyRecord
from rtui.analysis.report.tables.table import Cell, Column, Table, Unit
from rtui.keyspace.slots import key_slot
from rtui.keyspace.text.natural import natural
from rtui.server.search.search import Search


@dataclass(frozen=True, slots=True)
class FoundColumn:
    """A column of the list."""

    column: Column
    fact: Fact | None
    """What it shows; None for the slot, which follows from the name."""
    is_descending: bool = False
    """Whether the largest come first when it is sorted by."""


COLUMNS: Final = {
    one.column.id: one
    for one in (
        FoundColumn(Column("key", "key", Unit.NAME), Fact.NAME),
        FoundColumn(Column("type", "type", Unit.NAME, 9), Fact.TYPE),
        FoundColumn(Column("ttl", "TTL", Unit.DURATION, 8), Fact.TTL),
        FoundColumn(Column("size", "size", Unit.BYTES, 9), Fact.MEMORY, is_descending=True),
        FoundColumn(Column("len", "length", Unit.COUNT, 9), Fact.LENGTH, is_descending=True),
        FoundColumn(Column("enc", "encoding", Unit.NAME, 10), Fact.ENCODING),
        FoundColumn(Column("idle", "idle", Unit.DURATION, 8), Fact.IDLE, is_descending=True),
        FoundColumn(Column("freq", "freq", Unit.COUNT, 4), Fact.FREQUENCY, is_descending=True),
        FoundColumn(Column("slot", "slot", Unit.NUMBER, 5), None),
    )
}
"""All columns, in their order on the screen."""

BY_BYTES: Final = "key-bytes"
"""The order of keys by the bytes of their names."""

SORTS: Final = {**COLUMNS, BY_BYTES: FoundColumn(Column("key", "key as bytes", Unit.NAME), Fact.NAME)}
"""What rows can be sorted by: columns, and the bytes of names."""

SORTED_AT_ONCE: Final = 500
"""So many rows are sorted by one call, during which no other thread runs: less than a millisecond."""

USUAL: Final = ("key", "type", "ttl", "size")
"""Columns that are shown unless others were chosen, besides those of the terms."""


def columns_for(query: Query, chosen: Sequence[str] = USUAL) -> tuple[str, ...]:
    """Return the columns to begin with: those that were chosen, and those that the terms are about."""
    names = {term.name for term in query.terms}
    facts = {*query.facts}
    return tuple(
        name
        for name, one in COLUMNS.items()
        if name in chosen or name == "key" or one.fact in facts or (name == "slot" and {"slot", "tag"} & names)
    )


def facts_of(columns: Sequence[str]) -> tuple[Fact, ...]:
    """Return the facts that columns show, besides the name."""
    facts = [COLUMNS[name].fact for name in columns]
    return tuple(fact for fact in facts if fact is not None and fact is not Fact.NAME)


def cell(name: str, record: KeyRecord, now_s: float) -> Cell:
    """Return what a column shows of a key; a time to live as it is now."""
    fact = COLUMNS[name].fact
    if fact is None:
        return key_slot(record.key)
    if fact is Fact.TTL:
        if record.ttl_ms is None:
            return None
        if record.ttl_ms == NO_EXPIRY:
            return NoTtl.NO_TTL
        left_s = (record.expires_at_s or 0.0) - now_s
        return left_s if left_s > 0 else "expired"
    value: Cell = getattr(record, FIELD_OF[fact])
    return value


def sort_key(name: str, *, is_descending: bool) -> Callable[[KeyRecord], Any]:
    """Return what orders keys; those of which the fact is not known come last."""
    fact = SORTS[name].fact
    if name == BY_BYTES:
        return attrgetter("key")
    if fact is Fact.NAME:
        return lambda record: natural(record.key)
    if fact is None:
        return lambda record: key_slot(record.key)
    if fact is Fact.TTL:
        sign = -1.0 if is_descending else 1.0

        def by_expiry(record: KeyRecord) -> tuple[bool, float]:
            expires = float("inf") if record.ttl_ms == NO_EXPIRY else record.expires_at_s
            return expires is None, sign * (expires or 0.0)

        return by_expiry
    return Order(fact, is_descending).key


def found_table(records: Sequence[KeyRecord], columns: Sequence[str], now_s: float, title: str) -> Table:
    """Return keys as a table, for files."""
    rows = tuple(tuple(cell(name, record, now_s) for name in columns) for record in records)
    return Table("found", title, tuple(COLUMNS[name].column for name in columns), rows)


@dataclass(slots=True)
class FoundRows:
    """The rows of one search; they outlive the screen, so that coming back finds them as they were left."""

    search: Search
    columns: tuple[str, ...]
    sort: str | None = None
    """What the user sorts by, of SORTS; None for the order in which keys were found."""
    is_reversed: bool = False
    """Whether the other way than usual for the column."""
    cursor_line: int = 0
    top_line: int = 0
    note: str = ""
    """Why it may find other keys than were counted where it comes from; safe text without a full stop."""
    _kept: Sequence[KeyRecord] = ()
    _lines: list[int] = field(default_factory=list)
    """For each of the first lines the place of its key among those found; later lines are in the order found."""

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def is_in_order(self) -> bool:
        """Whether no key is listed as it was found though the user has sorted."""
        return self.sort is None or len(self._lines) >= len(self._kept)

    def follow(self) -> None:
        """Take what has been found since."""
        before, self._kept = self._kept, self.search.kept
        is_other = before is not self._kept and self.search.order is not None
        if is_other or len(self._lines) > len(self._kept):
            self._lines = []

    def record(self, line: int) -> KeyRecord:
        """Return the key on a line; IndexError where there is none."""
        return self._kept[self._lines[line] if line < len(self._lines) else line]

    def shown(self) -> list[KeyRecord]:
        """Return all keys in the order of the lines."""
        return [self.record(line) for line in range(len(self))]

    @property
    def is_descending(self) -> bool:
        """Whether the largest come first."""
        return self.sort is not None and SORTS[self.sort].is_descending is not self.is_reversed

    def sorted_lines(self, key: bytes | None = None) -> tuple[list[int], int]:
        """Return the order of the keys found so far, and the line of one of them, 0 for none.

        It takes milliseconds, and may be called in a thread.
        """
        kept = list(self._kept)
        lines = self._sorted(kept)
        return lines, 0 if key is None else next((line for line, at in enumerate(lines) if kept[at].key == key), 0)

    def _sorted(self, kept: Sequence[KeyRecord]) -> list[int]:
        if self.sort is None:
            return list(range(len(kept)))[:: -1 if self.is_reversed else 1]
        key = sort_key(self.sort, is_descending=self.is_descending)
        is_backward = SORTS[self.sort].fact in (Fact.NAME, None) and self.is_descending
        keys = [key(record) for record in kept]
        parts = [range(start, min(len(keys), start + SORTED_AT_ONCE)) for start in range(0, len(keys), SORTED_AT_ONCE)]
        runs = [sorted(part, key=keys.__getitem__, reverse=is_backward) for part in parts]
        return list(merge(*runs, key=keys.__getitem__, reverse=is_backward))

    def arrange(self, lines: list[int]) -> None:
        """Show the keys in this order."""
        self._lines = lines if len(lines) <= len(self._kept) else []
