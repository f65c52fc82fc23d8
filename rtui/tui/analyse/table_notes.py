"""What stands around a table of a panel: which of the panel's tables it is, what to know of it, why it is empty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rtui.analysis.humanize import fact_name
from rtui.analysis.report.document import ColumnState, NodeKind, Report
from rtui.analysis.report.tables.table import Path, Subject, label
from rtui.keyspace.text.display import SafeText
from rtui.tui.analyse.panel import NOTHING_TO_LIST, Listing
from rtui.tui.kit.format import display, display_text
from rtui.tui.kit.layout import MARGIN, prose, tab_line
from rtui.tui.kit.styled_text import Line, Role, Span, clip, cut, gap, line_width, own, width_of
from rtui.tui.kit.table_rows import TableRows

NEEDLE_CELLS: Final = 24
"""So much of what rows are filtered by is shown."""

_TELLING: Final = frozenset({ColumnState.DENIED, ColumnState.UNSUPPORTED, ColumnState.NOT_ASKED})


def listing_line(listings: Sequence[Listing], chosen: Listing, rows: TableRows, width: int) -> Line:
    """Return the titles of the tables, those around the chosen one where not all fit, and the filter."""
    note: Line = ()
    if rows.look.needle:
        shown = cut(display_text(rows.look.needle), NEEDLE_CELLS)
        note = (Span(own("rows with "), Role.MUTED), Span(shown, Role.ACCENT), Span(among(chosen, rows), Role.MUTED))
    titles = [one.title for one in listings]
    at = next(index for index, one in enumerate(listings) if one.id == chosen.id)
    if len(titles) == 1:
        line: Line = (gap(MARGIN), Span(titles[0], Role.STRONG))
    else:
        line = clip(tab_line(titles, at, (), width), width - line_width(note) - 2)
    if not note:
        return line
    return (*line, gap(width - line_width(line) - line_width(note) - MARGIN), *note)


def among(listing: Listing, rows: TableRows) -> SafeText:
    """Return what a filter of a list of so many can find only: ` among the 100 largest`; nothing for a whole list."""
    if not listing.among:
        return SafeText("")
    return SafeText(f" among the {len(rows.table.rows)} {listing.among}")


def note_line(note: Line, text: str, width: int) -> Line:
    """Return what one has to know of the table: the panel's own words first, then those of the table."""
    line: Line = (gap(MARGIN), *note)
    room = width - line_width(line) - MARGIN
    if text:
        more = SafeText(f" · {text}" if note else text)
        if not note or width_of(more) <= room:
            line = (*line, Span(cut(display_text(more, limit=400), room), Role.MUTED))
    return clip(line, width - MARGIN)


def sample_note(text: str) -> Line:
    """Return how few keys a list is of, before other words; nothing for no text."""
    return (Span(display_text(text), Role.WARN), Span(own(" · "), Role.MUTED)) if text else ()


def nothing_lines(report: Report, listing: Listing, rows: TableRows, width: int) -> list[Line]:
    """Return why a table has no rows: the filter, facts that it needs and that were not had, or what that means."""
    if rows.look.needle:
        text = SafeText(f"No row{among(listing, rows)} has {display_text(rows.look.needle, limit=60)}")
        return [
            (),
            (gap(MARGIN), Span(text, Role.STRONG)),
            (),
            *prose(own("Escape shows all rows again."), width, Role.MUTED),
        ]
    lines: list[Line] = []
    for name in listing.needs:
        column = report.head.columns.get(name)
        if column is not None and column.state in _TELLING:
            reason = f": {column.reason}" if column.reason else ""
            text = display_text(f"{fact_name(name)} {column.state.value}{reason}", limit=300)
            lines += [(), *prose(text, width, Role.WARN if column.state is ColumnState.DENIED else Role.MUTED)]
    title = NOTHING_TO_LIST if lines else listing.nothing
    return [(), (gap(MARGIN), Span(title, Role.STRONG)), *lines]


NAME_LIMIT: Final = 60
"""Characters of a name that a sentence has room for."""


def key_of(subject: Subject) -> bytes | None:
    """Return the key that a row is about, None where it is about many or about something else.

    `shop:config` in a table of namespaces is a key: no segment of it is a pattern, and no separator ends it.
    """
    if isinstance(subject, bytes):
        return subject
    if not isinstance(subject, tuple) or not subject or subject[-1].separator:
        return None
    return label(subject) if all(step.kind is NodeKind.LITERAL for step in subject) else None


def meaning(subject: Subject, title: SafeText) -> SafeText:
    """Return what a row stands for that leads nowhere; `title` is that of its table."""
    if isinstance(subject, tuple):
        return _meaning_of_path(subject)
    if isinstance(subject, int):
        return SafeText(f"Slot {subject} only counts its keys: the report does not keep their names.")
    return SafeText(f"A row of “{title}” only adds up keys: the report does not keep their names.")


def _meaning_of_path(path: Path) -> SafeText:
    """Return what a namespace or pattern stands for."""
    name = display(label(path), limit=NAME_LIMIT)
    kinds = {step.kind for step in path}
    if NodeKind.OTHER in kinds:
        return SafeText("This row adds up what was too much to be kept apart: it has no names of its own.")
    if NodeKind.PATTERN in kinds:
        return SafeText(f"{name} is a pattern: it stands for all names that differ only there, and lists none of them.")
    return SafeText(f"{name} is a namespace: the Memory panel shows what it holds.")
