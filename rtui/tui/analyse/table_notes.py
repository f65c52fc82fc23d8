"""The texts around a table of a panel: titles and filter, the note, why it is empty, what a row is and copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rtui.analysis.humanize import fact_name
from rtui.analysis.report.document import ColumnState, NodeKind, Report
from rtui.analysis.report.tables.table import Path, Subject, label
from rtui.keyspace.text.display import SafeText, quoted
from rtui.keyspace.text.glob import prefix_pattern
from rtui.server.redis_cli import key_as_text
from rtui.tui.analyse.panel import NOTHING_TO_LIST, PanelTable
from rtui.tui.kit.choice import Copy
from rtui.tui.kit.format import display, display_text
from rtui.tui.kit.layout import MARGIN, prose, tab_line
from rtui.tui.kit.styled_text import Line, Role, Span, clip, cut, gap, line_width, literal, width_of
from rtui.tui.kit.table_rows import TableRows

FILTER_CELLS: Final = 24
"""Longer filters are cut beside the titles."""

NAME_LIMIT: Final = 60
"""Characters of a name in a sentence."""

_REASON_FOR_NO_ROWS: Final = frozenset({ColumnState.DENIED, ColumnState.UNSUPPORTED, ColumnState.NOT_ASKED})


def titles_line(tables: Sequence[PanelTable], chosen: PanelTable, rows: TableRows, width: int) -> Line:
    """Return the titles of a panel's tables, those around the chosen one where not all fit, and the filter."""
    note: Line = ()
    if rows.state.filter_text:
        text = cut(display_text(rows.state.filter_text), FILTER_CELLS)
        note = (
            Span(literal("rows with "), Role.MUTED),
            Span(text, Role.ACCENT),
            Span(_among(chosen, rows), Role.MUTED),
        )
    if len(tables) == 1:
        line: Line = (gap(MARGIN), Span(chosen.title, Role.STRONG))
    else:
        at = [one.id for one in tables].index(chosen.id)
        titles = tab_line([one.title for one in tables], at, (), width)
        line = clip(titles, width - line_width(note) - 2)
    if not note:
        return line
    return (*line, gap(width - line_width(line) - line_width(note) - MARGIN), *note)


def _among(table: PanelTable, rows: TableRows) -> SafeText:
    """Return what is filtered, such as ` among the 100 largest`; empty for a complete list."""
    return SafeText(f" among the {len(rows.table.rows)} {table.top}" if table.top else "")


def note_line(note: Line, text: str, width: int) -> Line:
    """Return the note of the panel, and behind it that of the table where it fits."""
    line: Line = (gap(MARGIN), *note)
    space = width - line_width(line) - MARGIN
    if text:
        more = SafeText(f" · {text}" if note else text)
        if not note or width_of(more) <= space:
            line = (*line, Span(cut(display_text(more, limit=400), space), Role.MUTED))
    return clip(line, width - MARGIN)


def empty_table_lines(report: Report, table: PanelTable, rows: TableRows, width: int) -> list[Line]:
    """Return why a table has no rows: the filter, columns that are missing, or what that means."""
    if rows.state.filter_text:
        text = SafeText(f"No row{_among(table, rows)} has {display_text(rows.state.filter_text, limit=60)}")
        hint = prose(literal("Escape shows all rows again."), width, Role.MUTED)
        return [(), (gap(MARGIN), Span(text, Role.STRONG)), (), *hint]
    reasons: list[Line] = []
    for name in table.needs:
        column = report.head.columns.get(name)
        if column is not None and column.state in _REASON_FOR_NO_ROWS:
            reason = f": {column.reason}" if column.reason else ""
            text = display_text(f"{fact_name(name)} {column.state.value}{reason}", limit=300)
            reasons += [(), *prose(text, width, Role.WARN if column.state is ColumnState.DENIED else Role.MUTED)]
    return [(), (gap(MARGIN), Span(NOTHING_TO_LIST if reasons else table.empty, Role.STRONG)), *reasons]


def key_of(subject: Subject) -> bytes | None:
    """Return the key that a row is about, None where it is about several keys or something else.

    `shop:config` in a table of namespaces is a key: no segment of it is a pattern, and no separator ends it.
    """
    if isinstance(subject, bytes):
        return subject
    if not isinstance(subject, tuple) or not subject or subject[-1].separator:
        return None
    return label(subject) if all(step.kind is NodeKind.LITERAL for step in subject) else None


def meaning(subject: Subject, title: SafeText) -> SafeText:
    """Return why there is nothing behind a row; `title` is that of its table."""
    if isinstance(subject, tuple):
        return _meaning_of_path(subject)
    if isinstance(subject, int):
        return SafeText(f"Slot {subject} only counts its keys: the report does not keep their names.")
    return SafeText(f"A row of “{title}” only adds up keys: the report does not keep their names.")


def _meaning_of_path(path: Path) -> SafeText:
    name = display(label(path), limit=NAME_LIMIT)
    kinds = {step.kind for step in path}
    if NodeKind.OTHER in kinds:
        return SafeText("This row adds up what was too much to be kept apart: it has no names of its own.")
    if NodeKind.PATTERN in kinds:
        return SafeText(f"{name} is a pattern: it stands for all names that differ only there, and lists none of them.")
    return SafeText(f"{name} is a namespace: the Memory panel shows what it holds.")


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
