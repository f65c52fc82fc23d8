"""A page of a value as lines: tables, text, JSON, hex dumps, each bounded by the panel's width."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import Final

from rtui.analysis import humanize as fmt
from rtui.analysis.facts import Reason, Unknown
from rtui.keyspace.text.display import SafeText
from rtui.server.facts.preview.page import (
    Meaning,
    Preview,
    PreviewCell,
    PreviewColumn,
    PreviewKind,
    PreviewRow,
    StringWindow,
    Unread,
)
from rtui.tui.browse.tree_lines import REASONS
from rtui.tui.kit.layout import MARGIN, display, display_text, prose
from rtui.tui.kit.styled_text import Line, Role, Span, cut, gap, joined, left, literal, right, width_of, wrap

CELL_LINES: Final = 4
"""The last cell of a row is wrapped into at most so many lines."""

TEXT_LINES: Final = 12
"""One line of a text value is wrapped into at most so many lines."""

MIN_COLUMN_CELLS: Final = 6
NAME_SHARE: Final = 0.42
"""A column that is not the last takes at most this part of the width."""

_BETWEEN: Final = 2
_JSON_NAME: Final = re.compile(r'^(\s*)("(?:[^"\\]|\\.)*")(: ?)')
_ROLES: Final = {
    Meaning.NAME: Role.HASH,
    Meaning.STREAM_ID: Role.HASH,
    Meaning.INDEX: Role.FAINT,
    Meaning.SCORE: Role.LIST,
    Meaning.DURATION_MS: Role.LIST,
}
_NUMBERS: Final = frozenset({Meaning.COUNT, Meaning.INDEX, Meaning.SCORE, Meaning.DURATION_MS})


def preview_lines(preview: Preview, width: int) -> list[Line]:
    """Return a page of a value for a panel of this width; where it was refused, why."""
    lines: list[Line] = [()]
    refusal = preview.refusal
    if refusal is not None:
        lines.append((gap(MARGIN), Span(REASONS[refusal.reason].refusal, Role.WARN)))
        why = display_text(refusal.detail)
        if refusal.reason is Reason.GONE:
            why = literal("It has expired or was deleted since it was listed. r looks again.")
        lines += [*(prose(why, width, Role.MUTED) if why else ()), ()]
    lines += _summary_lines(preview.summary, width)
    if preview.window is not None:
        lines += _window_lines(preview.kind, preview.window, width)
    if preview.columns and preview.rows:
        lines += table_lines(preview.columns, preview.rows, width)
    elif preview.columns and refusal is None:
        lines += prose(literal("(empty)"), width, Role.FAINT)
    for section in preview.sections:
        title = display_text(section.title)
        if section.subject is not None:
            title = joined((title, display(section.subject, limit=64)), " ")
        lines += [(), (gap(MARGIN), Span(cut(title, width - 2 * MARGIN), Role.STRONG))]
        if section.rows:
            lines += table_lines(section.columns, section.rows, width)
        lines += _note_lines(section.notes, width)
    touch = "Reading this has counted as an access: the server has no CLIENT NO-TOUCH, or denies it."
    return lines + _note_lines([*preview.notes, *([touch] if preview.touched else [])], width)


def page_note(preview: Preview) -> Line:
    """Return which page this is, and which keys turn it, for the end of the tab line."""
    parts: list[Span] = []
    if preview.rows and isinstance(preview.total, int):
        is_stream = preview.kind is PreviewKind.STREAM  # of which an entry has several rows
        shown = sum(1 for row in preview.rows if row and row[0] is not None) if is_stream else len(preview.rows)
        parts.append(Span(SafeText(f"{shown:,} of {preview.total:,}"), Role.MUTED))
    elif preview.window is not None and isinstance(preview.total, int):
        first, last = preview.window.offset_bytes, preview.window.offset_bytes + len(preview.window.data)
        if preview.next_page is not None or first:
            parts.append(Span(SafeText(f"bytes {first:,}–{last:,} of {preview.total:,}"), Role.MUTED))
    if preview.page.previous is not None:
        parts.append(Span(SafeText(f"{'  ' if parts else ''}‹ b"), Role.ACCENT))
    if preview.next_page is not None:
        parts.append(Span(SafeText(f"{'  ' if parts else ''}n ›"), Role.ACCENT))
    return tuple(parts)


def _summary_lines(summary: Sequence[tuple[str, PreviewCell | Unknown]], width: int) -> list[Line]:
    """Return the labelled facts of a value as a whole."""
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
            parts = wrap(cell_text(value, Meaning.VALUE), space - 2 * MARGIN, CELL_LINES)
            found = [(gap(MARGIN), Span(part)) for part in parts]
        if is_beside:
            title: Line = (gap(MARGIN), Span(left(label, room), Role.MUTED))
            lines += [(*title, *found[0][1:]), *((gap(indent), *line) for line in found[1:])]
        else:
            lines += [*prose(label, width, Role.MUTED), *((gap(indent), *line) for line in found)]
    return [*lines, ()]


def _window_lines(kind: PreviewKind, window: StringWindow, width: int) -> list[Line]:
    """Return the bytes of a string as what they seem to be: text, JSON with its names apart, or a hex dump."""
    room = width - 2 * MARGIN
    lines: list[Line] = []
    if not window.data:
        return prose(literal("(empty string)"), width, Role.FAINT)
    if kind in (PreviewKind.TEXT, PreviewKind.JSON):
        is_json = kind is PreviewKind.JSON and bool(window.json_lines)
        for raw in window.json_lines if is_json else window.data.split(b"\n"):
            text = display(raw, limit=room * TEXT_LINES)
            first, *more = wrap(text, room, TEXT_LINES)
            name = _JSON_NAME.match(text) if is_json else None
            end = name.end() if name else 0
            lines.append((gap(MARGIN), Span(SafeText(first[:end]), Role.HASH), Span(SafeText(first[end:]))))
            lines += [(gap(MARGIN), Span(part)) for part in more]
        return lines
    step = next((n for n in (16, 8) if 10 + 3 * n + 1 + n <= room), 4)
    for at in range(0, len(window.data), step):
        piece = window.data[at : at + step]
        shown = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in piece)
        lines.append((
            gap(MARGIN),
            Span(SafeText(f"{window.offset_bytes + at:08x}  "), Role.FAINT),
            Span(SafeText(f"{piece.hex(' '):<{3 * step}} ")),
            Span(SafeText(shown), Role.MUTED),
        ))  # fmt: skip
    return [*lines, ()]


def _note_lines(notes: Sequence[str], width: int) -> list[Line]:
    """Return what one should know to read this."""
    lines: list[Line] = []
    for note in notes:
        lines += [(), *prose(display_text(note), width, Role.MUTED)]
    return lines


def table_lines(columns: Sequence[PreviewColumn], rows: Sequence[PreviewRow], width: int) -> list[Line]:
    """Return a table: columns as wide as they need and as fits; cells that hold bytes are wrapped."""
    texts = [[cell_text(cell, column.meaning) for cell, column in zip(row, columns, strict=False)] for row in rows]
    cells = _column_cells(columns, texts, width - 2 * MARGIN)
    aligns = [right if column.meaning in _NUMBERS else left for column in columns]
    head: list[Span] = [gap(MARGIN)]
    for column, room, align in zip(columns, cells, aligns, strict=True):
        head += [Span(align(display_text(column.title), room), Role.MUTED), gap(_BETWEEN)]
    lines: list[Line] = [tuple(head)]
    for row, found in zip(rows, texts, strict=True):
        parts = [
            wrap(text, room, CELL_LINES) if column.meaning is Meaning.VALUE else [text]
            for text, room, column in zip(found, cells, columns, strict=False)
        ]
        for wrapped in zip_longest(*parts, fillvalue=literal("")):
            line: list[Span] = [gap(MARGIN)]
            for text, value, column, room, align in zip(wrapped, row, columns, cells, aligns, strict=False):
                is_blank = value is None or isinstance(value, Unread | Unknown)
                role = Role.FAINT if is_blank else _ROLES.get(column.meaning, Role.TEXT)
                line += [Span(align(text, room), role), gap(_BETWEEN)]
            lines.append(tuple(line))
    return lines


def _column_cells(columns: Sequence[PreviewColumn], texts: Sequence[Sequence[SafeText]], width: int) -> list[int]:
    """Return how wide each column is."""
    natural = [
        max([width_of(column.title), *(width_of(row[at]) for row in texts if at < len(row))])
        for at, column in enumerate(columns)
    ]
    most = max(MIN_COLUMN_CELLS, int(width * NAME_SHARE))
    wide = max(range(len(columns)), key=lambda at: (columns[at].meaning is Meaning.VALUE, at))
    cells = [min(need, most) for need in natural]
    rest = width - sum(size for at, size in enumerate(cells) if at != wide) - _BETWEEN * (len(columns) - 1)
    cells[wide] = max(MIN_COLUMN_CELLS, min(natural[wide], rest))
    return cells


def cell_text(value: PreviewCell, meaning: Meaning) -> SafeText:
    """Return one cell as safe text; a number as its column wants it, or as the server writes it."""
    match value:
        case None:
            return literal("")
        case Unknown():
            return literal("unknown")
        case Unread():
            size = literal("") if value.size_bytes is None else SafeText(f"{fmt.size(value.size_bytes)}, ")
            return SafeText(f"({size}not read)")
        case bytes():
            return display(value) if value else literal('""')
    return _number_text(value, meaning)


def _number_text(value: float, meaning: Meaning) -> SafeText:
    """Return a number as its column wants it, or as the server writes it."""
    if meaning is Meaning.DURATION_MS:
        return fmt.duration(round(value))
    if meaning is Meaning.COUNT:
        return SafeText(f"{value:,}")
    is_whole = isinstance(value, int) or (math.isfinite(value) and abs(value) < 1e17 and value.is_integer())
    return SafeText(str(int(value)) if is_whole else repr(value))
