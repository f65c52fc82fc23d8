"""The keys that a search has listed, as rows: their columns, the order that the user wants, and the lines around them.

Rows stay where they are while a search goes on: new keys are appended, and sorted at its end. Sorting ten thousand rows
takes longer than a frame, so the order is worked out in a thread from the rows listed by then, and later ones follow
them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from heapq import merge
from operator import attrgetter
from typing import Any, Final

from msgspec.structs import replace

from rtui.analysis import humanize
from rtui.analysis.facts import NO_EXPIRY, NoTtl
from rtui.analysis.humanize import Mark, counted
from rtui.analysis.query.query import MatchOrder, Problem, Query
from rtui.analysis.query.terms import Fact
from rtui.analysis.report.document import KeyRecord
from rtui.analysis.report.tables.table import Cell, Column, Unit
from rtui.keyspace.slots import key_slot
from rtui.keyspace.text.display import SafeText
from rtui.keyspace.text.matching import natural
from rtui.server.scan.progress import ScanState
from rtui.server.search.search import Search, Stage
from rtui.tui.kit.layout import LEAST_REASON, LinePart, ago, display_text, prose
from rtui.tui.kit.status_lines import SEARCH, STATES, bar_line, cost_pieces, link_words, progress_bar, speed_pieces
from rtui.tui.kit.styled_text import Line, Role, Span, clip, cut, gap, line_width, literal


@dataclass(frozen=True, slots=True)
class FoundColumn:
    """A column of the list."""

    column: Column
    fact: Fact | None
    """Its fact; None for the slot, which follows from the name."""
    is_descending: bool = False


COLUMNS: Final = {
    one.column.id: one
    for one in (
        FoundColumn(Column("key", "key", Unit.NAME), Fact.NAME),
        FoundColumn(Column("type", "type", Unit.NAME, 9), Fact.TYPE),
        FoundColumn(Column("ttl", "TTL", Unit.DURATION, 8), Fact.TTL),
        FoundColumn(Column("size", "memory", Unit.BYTES, 9), Fact.MEMORY, is_descending=True),
        FoundColumn(Column("len", "length", Unit.COUNT, 9), Fact.LENGTH, is_descending=True),
        FoundColumn(Column("enc", "encoding", Unit.NAME, 10), Fact.ENCODING),
        FoundColumn(Column("idle", "idle", Unit.DURATION, 8), Fact.IDLE, is_descending=True),
        FoundColumn(Column("freq", "freq", Unit.COUNT, 4), Fact.FREQUENCY, is_descending=True),
        FoundColumn(Column("slot", "slot", Unit.NUMBER, 5), None),
    )
}

BY_BYTES: Final = "key-bytes"
"""The order of keys by the bytes of their names."""

SORTS: Final = {**COLUMNS, BY_BYTES: FoundColumn(Column("key", "key as bytes", Unit.NAME), Fact.NAME)}
"""The orders of rows: by a column, or by the bytes of names."""

SORTED_AT_ONCE: Final = 500
"""Rows sorted by one call, during which no other thread runs: less than a millisecond."""

USUAL: Final = ("key", "type", "ttl", "size")
"""The usual columns, besides the columns of the terms."""


EXPIRED: Final = "expired"
"""In the place of a time to live that is over."""


def columns_for(query: Query, chosen: Sequence[str] = USUAL) -> tuple[str, ...]:
    """Return the first columns: the chosen ones, and the facts of the terms."""
    names = {term.name for term in query.terms}
    facts = {*query.facts}
    return tuple(
        name
        for name, one in COLUMNS.items()
        if name in chosen or name == "key" or one.fact in facts or (name == "slot" and {"slot", "tag"} & names)
    )


def facts_of(columns: Sequence[str]) -> tuple[Fact, ...]:
    facts = [COLUMNS[name].fact for name in columns]
    return tuple(fact for fact in facts if fact is not None and fact is not Fact.NAME)


def cell(name: str, record: KeyRecord, now_s: float) -> Cell:
    """Return the cell of a key in a column; a time to live as of now."""
    fact = COLUMNS[name].fact
    if fact is None:
        return key_slot(record.key)
    if fact is Fact.TTL:
        if record.ttl_ms is None:
            return None
        if record.ttl_ms == NO_EXPIRY:
            return NoTtl.NO_TTL
        left_s = (record.expires_at_s or 0.0) - now_s
        return left_s if left_s > 0 else EXPIRED
    value: Cell = getattr(record, fact.field)
    return value


def sort_key(name: str, *, is_descending: bool) -> Callable[[KeyRecord], Any]:
    """Return the sort key of a column; keys without the fact come last."""
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
    return MatchOrder(fact, is_descending).key


def as_of(record: KeyRecord, now_s: float) -> KeyRecord:
    """Return a key with the time to live that is left, 0 where it is over."""
    expires_s = record.expires_at_s
    return record if expires_s is None else replace(record, ttl_ms=max(0, round((expires_s - now_s) * 1000)))


def file_text(rows: FoundRows, form: str, now_s: float) -> Callable[[], str]:
    """Return a function that makes the file of all keys in a format of `rtui find`; it may be called in a thread."""
    search, records, columns = rows.search, rows.shown(), () if form == "text" else rows.columns[1:]
    count, is_exact = search.count, search.stage is Stage.OVER and search.mark is Mark.EXACT
    total = SafeText(f"{humanize.keys(count, Mark.EXACT if is_exact else Mark.AT_LEAST)}.")
    notes = (*search.notes, total)

    def text() -> str:
        from rtui.analysis.formats.result_rows import FoundKeys  # noqa: PLC0415 - formats load what the tree has no use for

        parts: list[str] = []
        output = FoundKeys(lambda part: parts.append(str(part)), form, str(search.query), columns)
        output.write([as_of(record, now_s) for record in records])
        output.end(count, is_exact=is_exact, notes=notes)
        return "".join(parts)

    return text


@dataclass(slots=True)
class FoundRows:
    """The rows of one search; they outlive the screen, so that coming back finds them as they were left."""

    search: Search
    columns: tuple[str, ...]
    sort: str | None = None
    """The user's order, of SORTS; None for the order in which keys were found."""
    is_reversed: bool = False
    """Whether the other way than usual for the column."""
    cursor_line: int = 0
    top_line: int = 0
    note: str = ""
    """Why it may find other keys than were counted where it comes from; safe text without a full stop."""
    _kept: Sequence[KeyRecord] = ()
    _lines: list[int] = field(default_factory=list)
    """For each of the first lines the index of its key among the found keys; later lines are in the order found."""

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def is_in_order(self) -> bool:
        """Whether no key is listed as it was found although the user has sorted."""
        return self.sort is None or len(self._lines) >= len(self._kept)

    def follow(self) -> None:
        before, self._kept = self._kept, self.search.kept
        is_other = before is not self._kept and self.search.order is not None
        if is_other or len(self._lines) > len(self._kept):
            self._lines = []

    def record(self, line: int) -> KeyRecord:
        """Return the key on a line; raises IndexError."""
        return self._kept[self._lines[line] if line < len(self._lines) else line]

    def shown(self) -> list[KeyRecord]:
        return [self.record(line) for line in range(len(self))]

    @property
    def is_descending(self) -> bool:
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
        self._lines = lines if len(lines) <= len(self._kept) else []


MIN_QUERY_CELLS: Final = 20


def query_line(rows: FoundRows, now_s: float, width: int) -> Line:
    """Return the query with the number of keys found, the listed range, and its age."""
    search = rows.search
    figures = (*_count_line(rows), *_age_spans(search.as_of_s, now_s))
    text = str(search.query) or "all keys"
    room = max(MIN_QUERY_CELLS, width - line_width(figures) - 4)
    line: Line = (gap(1), Span(cut(SafeText(text), room), Role.ACCENT), gap(2), *figures)
    return clip((*line, gap(width - line_width(line))), width)


def _count_line(rows: FoundRows) -> Line:
    """Return how many keys were found, live: `≥ 1,204 keys`, or `the first 10,000 of ≥ 48,211 keys`."""
    search = rows.search
    if search.stage in (Stage.PREPARING, Stage.ASKING):
        return ()
    count, listed = search.count, len(rows)
    mark = search.mark if search.stage is Stage.OVER else Mark.AT_LEAST
    total = Span(humanize.keys(count, mark), Role.STRONG)
    if listed >= count or not listed:
        return (total,)
    if search.order is None:
        which = SafeText(f"the first {humanize.count(listed)} of ")
    else:
        fact = next(one.column.title for one in COLUMNS.values() if one.fact is search.order.fact)
        which = SafeText(f"the top {humanize.count(listed)} by {fact} of ")
    return Span(which, Role.MUTED), total


def _age_spans(as_of_s: float | None, now_s: float) -> Line:
    """Return the age of the searched rows: `as of 14:02 UTC, 3m ago`."""
    if as_of_s is None:
        return ()
    moment, age = humanize.moment(as_of_s), ago(now_s - as_of_s)
    is_today = moment[:10] == humanize.moment(now_s)[:10]
    text = f"as of {moment[11 if is_today else 0 : 16]} UTC{f', {age}' if age else ''}"
    return gap(2), Span(SafeText(text), Role.MUTED)


def status_line(search: Search, now_s: float, width: int, *, shows_cost: bool) -> Line:
    """Return progress and cost of the search, in exactly `width` cells; `now_s` is the event loop's time."""
    progress, cost = search.progress, search.cost
    word, role = STATES[progress.state]
    if search.stage is Stage.ASKING:
        word, role = literal("not started"), Role.MUTED
    elif progress.state is ScanState.RUNNING:
        word = SEARCH
    elif progress.state is ScanState.FAILED:
        word = literal("search failed")
    pieces = [*progress_bar(progress, width)]
    if progress.keys:
        pieces.append(LinePart(1, (Span(counted(progress.keys, "key")), Span(literal(" scanned"), Role.MUTED))))
    pieces += speed_pieces(progress, shows_cost=shows_cost) if search.as_of_s is None else []
    if search.stage is Stage.RUNNING and search.as_of_s is None:
        pieces.append(LinePart(1, (Span(literal("pace "), Role.MUTED), Span(SafeText(search.control.pace.value)))))
        pieces.append(LinePart(2, (Span(literal("server load "), Role.MUTED), Span(humanize.share(cost.server_share)))))
    if search.as_of_s is not None:
        pieces.append(LinePart(2, (Span(literal("rows kept from the analysis; R searches the server"), Role.MUTED),)))
    elif shows_cost or search.stage is Stage.OVER:
        pieces += [LinePart(piece.rank + 3, piece.line) for piece in cost_pieces(cost)]
    if progress.state is ScanState.STOPPED and search.control.stop_reason:
        pieces.append(LinePart(1, (Span(search.control.stop_reason, Role.WARN),), LEAST_REASON))
    head = () if search.stage is Stage.OVER else link_words(search.link, now_s)
    return bar_line(head or (Span(word, role),), pieces, width)


def note_lines(rows: FoundRows, width: int, most: int) -> list[Line]:
    search = rows.search
    sentences = [hint.sentence for hint in search.query.hints if search.kept]
    if rows.note:
        sentences.append(SafeText(f"{rows.note[:1].upper()}{rows.note[1:]}."))
    if search.failure is not None and search.kept:
        sentences.append(search.failure.happened)
    sentences += search.notes
    is_part = search.order is None and search.count > len(rows) > 0
    if is_part and rows.sort is not None:
        fact = SORTS[rows.sort].column.title
        found = humanize.count(len(rows))
        sentences.append(SafeText(f"Only the first {found} keys found are sorted; press R for the top keys by {fact}."))
    lines = [line for sentence in sentences for line in prose(sentence, width, Role.WARN)]
    return lines[:most]


def in_place_lines(search: Search, width: int) -> list[Line]:
    if (failure := search.failure) is not None:
        title: Line = (gap(1), Span(cut(SafeText(failure.title), width - 2), Role.BAD))
        remedy = prose(failure.remedy, width, Role.MUTED) if failure.remedy else []
        return [(), title, *prose(failure.happened, width, Role.TEXT), *remedy]
    if search.stage is Stage.ASKING:
        plan = search.plan or literal("asks the server")
        sentence = SafeText(f"This {plan}.")
        meant = _meant_lines(search.query.hints, width)
        keys: Line = (
            gap(1), Span(literal("enter"), Role.ACCENT), Span(literal(" begins   "), Role.MUTED),
            Span(literal("/"), Role.ACCENT), Span(literal(" edits the query   "), Role.MUTED),
            Span(literal("esc"), Role.ACCENT), Span(literal(" goes back"), Role.MUTED),
        )  # fmt: skip
        return [(), *prose(sentence, width, Role.TEXT), *meant, (), clip(keys, width)]
    text = None
    if search.stage is Stage.PREPARING:
        text = literal("Estimating the cost of this search…")
    elif search.stage is Stage.RUNNING:
        text = literal("No keys found yet.")
    elif search.progress.state is ScanState.STOPPED:
        text = literal("No keys were found before the search stopped.")
    elif search.mark is not Mark.EXACT:
        text = literal("No keys found, but not all could be checked.")
    if text is not None:
        return [(), *prose(text, width, Role.MUTED), *_meant_lines(search.query.hints, width)]
    text = SafeText(f"No keys match {display_text(str(search.query), limit=400)}.")
    hint: Line = (gap(1), Span(literal("/"), Role.ACCENT), Span(literal(" edits the query"), Role.MUTED))
    meant = _meant_lines((*search.query.hints, *search.query.doubts), width)
    return [(), *prose(text, width, Role.TEXT), *meant, (), hint]


def _meant_lines(problems: Sequence[Problem], width: int) -> list[Line]:
    lines = [line for one in problems for line in prose(one.sentence, width, Role.WARN)]
    return [(), *lines] if lines else []


def sort_names(columns: Sequence[str]) -> list[str | None]:
    """Return the orders of rows; None is the order in which keys were found."""
    return [None, *columns, BY_BYTES]
