"""The body of the details as rows: of a page of a value tables, text, hex dumps, bounded by the panel's width."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from rtui.analysis import humanize as fmt
from rtui.analysis.facts import Reason, Unknown
from rtui.keyspace.text.display import DisplayedPiece, SafeText
from rtui.server.facts.preview.page import (
    Meaning,
    Preview,
    PreviewCell,
    PreviewColumn,
    PreviewKind,
    PreviewRow,
    SideTable,
    StringWindow,
    Unread,
)
from rtui.tui.browse.document import (
    NO_MEANINGS,
    DecodedDocument,
    Meanings,
    document_rows,
    hex_rows,
    notes_of,
    text_rows,
)
from rtui.tui.browse.fact_lines import explanations, slot_lines
from rtui.tui.browse.namespace_lines import inside_rows
from rtui.tui.browse.shown_value import ShownValue, Tab
from rtui.tui.browse.tree_lines import REASONS, TreeTotals
from rtui.tui.browse.value_view import ItemKind, RowItem, RowOrder, ValueRow, element_of, plain_rows, sorted_rows
from rtui.tui.kit.layout import MARGIN, display, display_text, prose, value_pieces
from rtui.tui.kit.styled_text import (
    Line,
    Role,
    Span,
    cut,
    cut_pieces,
    gap,
    joined,
    left,
    literal,
    pieces_width,
    plain_pieces,
    right,
    styled,
    width_of,
    wrap,
    wrap_pieces,
)
from rtui.values import ValueForm

if TYPE_CHECKING:
    from rtui.tui.browse.registry_lines import RegistryLines

SUMMARY_LINES: Final = 4
"""Lines of a fact of the whole value at most."""

MIN_COLUMN_CELLS: Final = 6
NAME_SHARE: Final = 0.42
"""A column that is not the last takes at most this part of the width."""

TIMED_CELLS: Final = 76
"""From this width on the ids of entries are shown with their times,"""

TIMED_ID_CELLS: Final = 40
"""cells of an id with its time at most."""

_BETWEEN: Final = 2
_YEAR_2000_MS: Final = 946_684_800_000
_YEAR_3000_MS: Final = 32_503_680_000_000
_ROLES: Final = {
    Meaning.NAME: Role.HASH,
    Meaning.STREAM_ID: Role.HASH,
    Meaning.INDEX: Role.FAINT,
    Meaning.SCORE: Role.LIST,
    Meaning.DURATION_MS: Role.LIST,
    Meaning.DEGREES: Role.LIST,
}
_NUMBERS: Final = frozenset({Meaning.COUNT, Meaning.INDEX, Meaning.SCORE, Meaning.DURATION_MS, Meaning.DEGREES})


def preview_rows(
    preview: Preview,
    width: int,
    *,
    order: RowOrder | None = None,
    document: DecodedDocument | None = None,
    meanings: Meanings = NO_MEANINGS,
) -> list[ValueRow]:
    """Return a page of a value as rows for a panel of this width; if it was refused, the reason.

    `order` sorts the rows of the page; `document` is shown in place of the bytes of a string, `meanings` in place of
    the bytes of elements.
    """
    rows: list[ValueRow] = [ValueRow(())]
    refusal = preview.refusal
    if refusal is not None:
        rows.append(ValueRow((gap(MARGIN), Span(REASONS[refusal.reason].refusal, Role.WARN))))
        why = display_text(refusal.detail)
        if refusal.reason is Reason.GONE:
            why = literal("It expired or was deleted after it was listed. Press r to refresh.")
        rows += plain_rows(*(prose(why, width, Role.MUTED) if why else ()), ())
    rows += plain_rows(*_summary_lines(preview.summary, width))
    if document is not None and document.is_as_stored and preview.window is not None:
        kind = PreviewKind.BINARY if document.found.form is ValueForm.HEX else PreviewKind.TEXT
        rows += [*_window_rows(kind, preview, preview.window, width), *notes_of(document, width)]
    elif document is not None:
        rows += document_rows(document, width)
    elif preview.window is not None:
        rows += _window_rows(preview.kind, preview, preview.window, width)
    if preview.columns and preview.rows:
        rows += table_rows(preview.columns, preview.rows, width, order, meanings=meanings)
    elif preview.page.find is not None and refusal is None and preview.window is None:
        rows += plain_rows(*_nothing_found(preview, width))
    elif preview.columns and refusal is None:
        rows += plain_rows(*prose(literal("(empty)"), width, Role.FAINT))
    rows += _offer_rows(preview, width)
    for section in preview.sections:
        title = display_text(section.title)
        if section.subject is not None:
            title = joined((title, display(section.subject, limit=64)), " ")
        rows += plain_rows((), (gap(MARGIN), Span(cut(title, width - 2 * MARGIN), Role.STRONG)))
        if section.rows:
            rows += table_rows(section.columns, section.rows, width, side=section)
        rows += plain_rows(*_note_lines(section.notes, width))
    has_read = refusal is None or bool(preview.rows) or preview.window is not None
    touch = "Reading this counted as an access: CLIENT NO-TOUCH is not available or not permitted."
    return rows + plain_rows(*_note_lines([*preview.notes, *([touch] if preview.touched and has_read else [])], width))


def _offer_rows(preview: Preview, width: int) -> list[ValueRow]:
    """Return the parts that can be read on purpose, and their cost."""
    rows: list[ValueRow] = []
    for offer in preview.offers:
        first, *more = prose(display_text(offer.said), width, Role.ACCENT)
        rows += [ValueRow(()), ValueRow(first, RowItem(ItemKind.OFFER, offer=offer)), *plain_rows(*more)]
    return rows


def _nothing_found(preview: Preview, width: int) -> list[Line]:
    find = preview.page.find
    what = display(find.text, limit=60) if find is not None else SafeText("")
    if preview.next_page is not None:
        return prose(SafeText(f"No match so far for {what}. Press n to continue."), width, Role.MUTED)
    return prose(SafeText(f"Nothing matches {what}. Press Escape to show all."), width, Role.MUTED)


def page_note(
    preview: Preview, order: RowOrder | None = None, document: DecodedDocument | None = None, *, is_short: bool = False
) -> Line:
    """Return which part of the value this is, and which keys turn the page, for the end of the tab line.

    A `document` is decoded from the beginning of the value, and not in pages.
    """
    parts: list[Span] = []
    if document is not None and not document.is_as_stored:
        return (Span(document.position, Role.MUTED),) if document.position else ()
    position = position_text(preview, is_short=is_short)
    if position:
        parts.append(Span(position, Role.MUTED))
    is_part = preview.next_page is not None or preview.page.before is not None
    if order is not None and is_part:
        parts.append(Span(literal(" sorted" if is_short else " · this page sorted"), Role.MUTED))
    if preview.page.before is not None:
        parts.append(Span(SafeText(f"{'  ' if parts else ''}‹ b"), Role.ACCENT))
    if preview.next_page is not None:
        parts.append(Span(SafeText(f"{'  ' if parts else ''}n ›"), Role.ACCENT))
    return tuple(parts)


def position_text(preview: Preview, *, is_short: bool = False) -> SafeText:
    """Return the position of the page in the value, such as `101–200 of 12,000`; unknown parts are left out."""
    page = preview.page
    total: int | Unknown | None = preview.total
    if (window := preview.window) is not None:
        start, end = window.offset_bytes, window.offset_bytes + len(window.data)
        is_part = isinstance(total, int) and (preview.next_page is not None or start > 0)
        return SafeText(f"bytes {start:,}–{end:,}{'' if is_short else of_total(total)}" if is_part else "")
    count = len(preview.rows) if preview.elements is None else preview.elements
    if page.find is not None and not page.find.is_exact:
        return _found_text(preview, count, is_short=is_short)
    title = ""
    if page.span is not None:
        total, title = page.span.length, "" if is_short else f" · {page.span.title}"
    if not count or preview.first is None:
        return SafeText(f"{count:,}{of_total(total)}{title}" if count else "")
    first, last = preview.first + 1, preview.first + count
    if isinstance(total, int) and last > total:  # a walk by cursor may meet elements twice; there may be more by now
        return SafeText(f"{first:,}–{last:,} of ≥ {last:,}{title}")
    return SafeText(f"{first:,}{f'–{last:,}' if last > first else ''}{of_total(total)}{title}")


def _found_text(preview: Preview, count: int, *, is_short: bool) -> SafeText:
    """Return the number of matches and of searched elements; empty if the search was refused from the start."""
    total, looked_at = preview.total, preview.looked_at
    if preview.refusal is not None and not looked_at:
        return SafeText("")
    looked_at = min(looked_at, total) if isinstance(total, int) else looked_at
    if is_short:
        return SafeText(f"{fmt.counted(count, 'match')} in {looked_at:,}")
    return SafeText(f"{fmt.counted(count, 'match')} · {looked_at:,}{of_total(total)} scanned")


def of_total(total: int | Unknown | None) -> str:
    return f" of {total:,}" if isinstance(total, int) else ""


def _summary_lines(summary: Sequence[tuple[str, PreviewCell | Unknown]], width: int) -> list[Line]:
    if not summary:
        return []
    labels = [display_text(label, limit=40) for label, _ in summary]
    room = max(width_of(label) for label in labels) + _BETWEEN
    is_beside = room <= width // 2
    lines: list[Line] = []
    for label, (_, value) in zip(labels, summary, strict=True):
        indent = room if is_beside else _BETWEEN
        space = max(width - indent, MIN_COLUMN_CELLS + 2 * MARGIN)
        if isinstance(value, Unknown):
            found = prose(display_text(value.detail or value.reason.value), space, Role.MUTED)
        else:
            pieces = cell_pieces(value, Meaning.VALUE)
            if label.endswith("-id"):
                pieces = _with_time(pieces, value)
            parts = wrap_pieces(pieces, space - 2 * MARGIN, SUMMARY_LINES)
            found = [(gap(MARGIN), *styled(part)) for part in parts]
        if is_beside:
            title: Line = (gap(MARGIN), Span(left(label, room), Role.MUTED))
            lines += [(*title, *found[0][1:]), *((gap(indent), *line) for line in found[1:])]
        else:
            lines += [*prose(label, width, Role.MUTED), *((gap(indent), *line) for line in found)]
    return [*lines, ()]


def _window_rows(kind: PreviewKind, preview: Preview, window: StringWindow, width: int) -> list[ValueRow]:
    if not window.data:
        return plain_rows(*prose(literal("(empty string)"), width, Role.FAINT))
    if kind is PreviewKind.TEXT:
        goes_on = preview.next_page is not None
        return list(text_rows(window.data, width, began_before=window.offset_bytes > 0, goes_on=goes_on))
    return [*hex_rows(window.data, window.offset_bytes, width), ValueRow(())]


def _note_lines(notes: Sequence[str], width: int) -> list[Line]:
    lines: list[Line] = []
    for note in notes:
        lines += [(), *prose(display_text(note), width, Role.MUTED)]
    return lines


def table_rows(
    columns: Sequence[PreviewColumn],
    rows: Sequence[PreviewRow],
    width: int,
    order: RowOrder | None = None,
    *,
    side: SideTable | None = None,
    meanings: Meanings = NO_MEANINGS,
) -> list[ValueRow]:
    """Return a table, a line a row: columns as wide as they need and as fits; `side` is a table beside the value."""
    ordered = sorted_rows(rows, order)
    said = [
        [meanings.of(row, column, at) for at, (_, column) in enumerate(zip(row, columns, strict=False))]
        for row, _ in ordered
    ]
    texts = [
        [
            cell_pieces(cell, column.meaning) if meaning is None else meaning
            for cell, column, meaning in zip(row, columns, words, strict=False)
        ]
        for (row, _), words in zip(ordered, said, strict=True)
    ]
    if width >= TIMED_CELLS and columns[0].meaning is Meaning.STREAM_ID:
        for (row, _), found in zip(ordered, texts, strict=True):
            found[:1] = [_with_time(found[0], row[0])]
    titles = [display_text(column.title) for column in columns]
    if order is not None and order.column < len(titles):
        titles[order.column] = SafeText(f"{titles[order.column]} {'↓' if order.is_reversed else '↑'}")
    cells = _column_cells(columns, titles, texts, width - 2 * MARGIN)
    is_number = [column.meaning in _NUMBERS for column in columns]
    head: list[Span] = [gap(MARGIN)]
    for at, (title, room) in enumerate(zip(titles, cells, strict=True)):
        if not room:
            continue
        role = Role.ACCENT if order is not None and order.column == at else Role.MUTED
        head += [Span((right if is_number[at] else left)(title, room), role), gap(_BETWEEN)]
    ends = tuple(accumulate((size + _BETWEEN if size else 0 for size in cells), initial=MARGIN))[1:]
    shown = [ValueRow(tuple(head), column_ends=ends if side is None else ())]
    for (row, entry), found, words in zip(ordered, texts, said, strict=True):
        line: list[Span] = [gap(MARGIN)]
        for at, (pieces, value, column, room) in enumerate(zip(found, row, columns, cells, strict=False)):
            if not room:
                continue
            is_blank = value is None or isinstance(value, Unread | Unknown)
            role = Role.FAINT if is_blank else _ROLES.get(column.meaning, Role.TEXT)
            role = Role.JSON if words[at] is not None else role
            fitting = cut_pieces(pieces, room, in_middle=column.meaning is Meaning.NAME)
            blanks = plain_pieces(SafeText(" " * (room - pieces_width(fitting))))
            line += [*styled([*blanks, *fitting] if is_number[at] else [*fitting, *blanks], role), gap(_BETWEEN)]
        if side is None:
            item = element_of(columns, row, entry)
        else:
            name = row[0] if row and isinstance(row[0], bytes) else None
            item = RowItem(ItemKind.SIDE, name, tuple(columns), row, subject=side.subject)
        shown.append(ValueRow(tuple(line), item))
    return shown


def _column_cells(
    columns: Sequence[PreviewColumn],
    titles: Sequence[SafeText],
    texts: Sequence[Sequence[Sequence[DisplayedPiece]]],
    width: int,
) -> list[int]:
    natural = [
        max([width_of(title), *(pieces_width(row[at]) for row in texts if at < len(row))])
        for at, title in enumerate(titles)
    ]
    most = max(MIN_COLUMN_CELLS, int(width * NAME_SHARE))
    wide = max(range(len(columns)), key=lambda at: (columns[at].meaning is Meaning.VALUE, at))
    cells = [min(need, most) for need in natural]
    if columns[0].meaning is Meaning.STREAM_ID and width >= TIMED_CELLS - 2 * MARGIN:
        cells[0] = min(natural[0], TIMED_ID_CELLS)
    if any(column.meaning is Meaning.DEGREES for column in columns):  # they stand in place of the scores
        cells = [0 if column.meaning is Meaning.SCORE else size for column, size in zip(columns, cells, strict=True)]
    between = _BETWEEN * (sum(size > 0 for size in cells) - 1)
    rest = width - sum(size for at, size in enumerate(cells) if at != wide) - between
    cells[wide] = max(MIN_COLUMN_CELLS, min(natural[wide], rest))
    return cells


def cell_text(value: PreviewCell, meaning: Meaning) -> SafeText:
    match value:
        case None:
            return literal("")
        case Unknown():
            return literal("unknown")
        case Unread():
            size = literal("") if value.size_bytes is None else SafeText(f"{fmt.size(value.size_bytes)}, ")
            return SafeText(f"({size}too large to be kept)" if value.was_read else f"({size}not read)")
        case bytes():
            return display(value) if value else literal('""')
    return _number_text(value, meaning)


def cell_pieces(value: PreviewCell, meaning: Meaning) -> list[DisplayedPiece]:
    """Return one cell as it is shown in the panel of a value, where text reads as text."""
    return value_pieces(value) if value and isinstance(value, bytes) else plain_pieces(cell_text(value, meaning))


def _with_time(pieces: list[DisplayedPiece], entry_id: PreviewCell) -> list[DisplayedPiece]:
    """Return an entry's id with the time that it begins with, in UTC, if that is plausible: after the year 2000."""
    milliseconds = entry_id[:20].partition(b"-")[0] if isinstance(entry_id, bytes) else b""
    if not milliseconds.isdigit() or not _YEAR_2000_MS <= int(milliseconds) < _YEAR_3000_MS:
        return pieces
    moment = datetime.fromtimestamp(int(milliseconds) / 1000, UTC)
    return [*pieces, *plain_pieces(SafeText(f"  {moment:%Y-%m-%d %H:%M:%S}"))]


def _number_text(value: float, meaning: Meaning) -> SafeText:
    if meaning is Meaning.DURATION_MS:
        return fmt.duration(round(value))
    if meaning is Meaning.DEGREES:
        return SafeText(f"{value:.6f}")
    if meaning is Meaning.COUNT:
        return SafeText(f"{value:,}")
    is_whole = isinstance(value, int) or (math.isfinite(value) and abs(value) < 1e17 and value.is_integer())
    return SafeText(str(int(value)) if is_whole else repr(value))


TRAIL_LINES: Final = 4
"""Lines of the names of opened elements at most."""


def body_rows(
    value: ShownValue, totals: TreeTotals, registry: RegistryLines | None, way: Sequence[bytes], width: int
) -> Sequence[ValueRow]:
    """Return the rows of the chosen tab; `way` are the keys from which references led to this one."""
    detail = value.detail
    if detail.level is not None:
        return detail.level.rows(None if registry is None else registry.registry, totals.analysis_note, width)
    if detail.row is not None and detail.key is None:
        return inside_rows(detail.row.namespace, detail.children, detail.biggest, totals, width)
    if detail.key is None:
        return []
    if value.tab is Tab.REFERENCES and registry is not None:
        return registry.reference_rows(detail, way, width)
    if value.tab is Tab.SLOT:
        return plain_rows(*slot_lines(detail.key, width, detail.facts))
    return _value_rows(value, width)


def _value_rows(value: ShownValue, width: int) -> list[ValueRow]:
    detail, document = value.detail, value.decoded
    if value.opened and document is not None:
        titles = " › ".join(one.title for one in value.opened)
        trail = wrap(SafeText(f"‹ {titles}"), max(1, width - 2 * MARGIN), TRAIL_LINES)
        title = [(gap(MARGIN), Span(part, Role.STRONG)) for part in trail]
        return [*plain_rows((), *title, ()), *document_rows(document, width)]
    rows: list[ValueRow] = []
    if detail.failure is not None:
        rows += plain_rows((), *prose(detail.failure, width, Role.WARN))
    if value.preview is not None:
        rows += preview_rows(value.preview, width, order=value.order, document=document, meanings=value.meanings)
    elif detail.failure is None:
        rows += plain_rows((), *prose(literal("fetching…"), width, Role.FAINT))
    if detail.facts is not None:
        for sentence in explanations(detail.facts):
            rows += plain_rows((), *prose(sentence, width, Role.MUTED))
    return rows
