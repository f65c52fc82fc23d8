"""The lines around a table: the titles of the lists of a panel, the note below, what can be copied of a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rtui.analysis.report.tables.table import Subject, label
from rtui.keyspace.text.display import SafeText, quoted
from rtui.keyspace.text.glob import prefix_pattern
from rtui.server.redis_cli_commands import key_as_text
from rtui.tui.kit.clipboard import Copy
from rtui.tui.kit.layout import MARGIN, display_text, prose, tab_line
from rtui.tui.kit.styled_text import Line, Role, Span, clip, cut, gap, line_width, literal, width_of
from rtui.tui.kit.table_rows import TableRows

FILTER_CELLS: Final = 24
"""Longer filters are cut beside the titles of tables."""


def key_hint(enter: SafeText, escape: SafeText) -> Line:
    """Return what Enter and Escape do while a line is typed, for the footer."""
    return (Span(literal(" enter"), Role.ACCENT), Span(enter, Role.MUTED),
            Span(literal("  esc"), Role.ACCENT), Span(escape, Role.MUTED))  # fmt: skip


FILTER_HINT: Final = key_hint(literal(" keeps the rows that have this text"), literal(" shows all"))
"""Shown while a filter is typed."""


def titles_line(titles: Sequence[SafeText], chosen: int, rows: TableRows, among: SafeText, width: int) -> Line:
    """Return the titles of the tables of a panel, those around the chosen one where not all fit, and the filter.

    `among` says what is filtered, such as ` among the 100 largest`; empty for a complete list.
    """
    line: Line = (gap(MARGIN), Span(titles[chosen], Role.STRONG))
    note: Line = ()
    if rows.state.filter_text:
        text = cut(display_text(rows.state.filter_text), FILTER_CELLS)
        note = (Span(literal("rows with "), Role.MUTED), Span(text, Role.ACCENT), Span(among, Role.MUTED))
    if len(titles) > 1:
        line = clip(tab_line(titles, chosen, (), width), width - line_width(note) - 2)
    return (*line, gap(width - line_width(line) - line_width(note) - MARGIN), *note) if note else line


def note_line(note: Line, text: str, width: int) -> Line:
    """Return the note of the panel, and behind it that of the table where it fits."""
    line: Line = (gap(MARGIN), *note)
    space = width - line_width(line) - MARGIN
    if text:
        more = SafeText(f" · {text}" if note else text)
        if not note or width_of(more) <= space:
            line = (*line, Span(cut(display_text(more, limit=400), space), Role.MUTED))
    return clip(line, width - MARGIN)


def notice_lines(title: SafeText, role: Role, width: int, *texts: SafeText) -> list[Line]:
    """Return a heading and paragraphs below it, to be shown in place of rows."""
    lines: list[Line] = [(), (gap(MARGIN), Span(title, role))]
    for text in texts:
        lines += [(), *prose(text, width, Role.MUTED)]
    return lines


def nothing_left_lines(rows: TableRows, among: SafeText, width: int) -> list[Line]:
    """Return what stands in place of rows that the filter has all left out."""
    text = SafeText(f"No row{among} has {display_text(rows.state.filter_text, limit=60)}")
    return notice_lines(text, Role.STRONG, width, literal("Escape shows all rows again."))


def row_copies(subject: Subject, texts: Sequence[SafeText]) -> list[Copy]:
    """Return what can be copied of a row, first its name, if it has one; nothing where there is no row."""
    if not texts:
        return []
    row = Copy(literal("the row, its cells apart by tabs"), "\t".join(texts))
    if not isinstance(subject, bytes | tuple):
        return [row]
    name = label(subject) if isinstance(subject, tuple) else subject
    copies = [
        Copy(literal("name as text"), key_as_text(name)),
        Copy(literal("name as escaped bytes"), quoted(name)), row,
    ]  # fmt: skip
    if isinstance(subject, tuple):
        copies.append(Copy(literal("pattern of everything below"), key_as_text(prefix_pattern(name))))
    return copies
