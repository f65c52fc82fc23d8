"""A report as text for a terminal, a pipe or a mail: sections of aligned columns."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from textwrap import wrap
from typing import Final

from rtui.analysis.findings.contents import findings
from rtui.analysis.findings.finding import Found
from rtui.analysis.formats.markdown import shown_tables
from rtui.analysis.report.document import Report
from rtui.analysis.report.tables.contents import about, headline
from rtui.analysis.report.tables.table import Cell, Column, Table, Unit, cell_text
from rtui.keyspace.text.display import Display

DEFAULT_WIDTH: Final = 110
"""Characters of a line by default."""

_NARROWEST_NAME: Final = 16
_GOOD_NAME: Final = 32
"""Where columns have to follow below, names take up to so much."""
_GAP: Final = 2
_ASCII: Final = str.maketrans({"≥": ">=", "≈": "~", "–": "-", "×": "x", "…": "...", "·": "-", "─": "-", "µ": "u"})


def write_text(report: Report, *, width: int | None = DEFAULT_WIDTH, ascii_only: bool = False) -> str:
    """Return the report in lines of `width` characters, as long as they need where it is None; ends with a newline.

    Numbers are never cut, names in the middle; columns that do not fit follow below the others.
    """
    page = _Page(width, Display(ascii_only=ascii_only))
    text = "\n".join(line.rstrip() for line in page.lines(report)) + "\n"
    return text.translate(_ASCII) if ascii_only else text


def table_text(table: Table, *, width: int | None = DEFAULT_WIDTH, ascii_only: bool = False) -> str:
    """Return one table in lines as `write_text` has them."""
    page = _Page(width, Display(ascii_only=ascii_only))
    text = "\n".join(line.rstrip() for line in page.table(table)) + "\n"
    return text.translate(_ASCII) if ascii_only else text


class _Page:
    """Lays a report out in one width."""

    def __init__(self, width: int | None, display: Display) -> None:
        self._width = width
        self._display = display

    def lines(self, report: Report) -> Iterator[str]:
        """Yield all lines."""
        yield from self._paragraph(self._display.text(headline(report)))
        yield ""
        rows = [[self._display.text(str(part), limit=4096) for part in row] for row in about(report).rows]
        room = max(len(what) for what, _ in rows)
        for what, text in rows:
            yield from self._paragraph(text, before=f"{what:<{room}}  ")
        yield from self._findings(findings(report))
        for table in shown_tables(report):
            yield ""
            yield from self.table(table)

    def _findings(self, found: Found) -> Iterator[str]:
        """Yield what is wrong, a paragraph each: in a column, sentences would be cut."""
        if not found.findings and not found.remarks:
            return
        yield ""
        yield "What is wrong"
        for one in found.findings:
            size = "" if one.memory is None else one.memory.size()
            before = self._display.text(f"  {one.severity:<5}  {size:>10}  ")
            yield from self._paragraph(self._display.text(f"{one.title} ({one.rule})", limit=4096), before=before)
        if found.remarks:
            yield from self._paragraph(self._display.text(found.remarks, limit=4096), before="  ")

    def _paragraph(self, text: str, before: str = "") -> list[str]:
        """Return a text in lines, with `before` in front of the first and as much space before the others."""
        if self._width is None:
            return [before + text]
        room = max(self._width, len(before) + _NARROWEST_NAME)
        return wrap(text, room, initial_indent=before, subsequent_indent=" " * len(before)) or [before]

    def table(self, table: Table) -> Iterator[str]:
        """Yield a table: title, header, rows, note. Columns that do not fit follow below, again behind the first."""
        yield self._display.text(table.title)
        columns = table.columns
        texts = [[cell_text(*pair, self._display) for pair in zip(row, columns, strict=True)] for row in table.rows]
        titles: list[str] = [self._display.text(column.title) for column in columns]
        widths = [max(map(cells_of, column)) for column in zip(titles, *texts, strict=True)]
        self._fit(table, widths)
        lines = [titles]
        for row, shown in zip(table.rows, texts, strict=True):
            lines.append([self._cut(row[at], column, shown[at], widths[at]) for at, column in enumerate(columns)])
        blocks = [[0]]
        for at in range(1, len(widths)):
            needed = sum(widths[one] + _GAP for one in (*blocks[-1], at))
            if self._width is not None and needed > self._width and len(blocks[-1]) > 1:
                blocks.append([0])
            blocks[-1].append(at)
        for block in blocks:
            for line in lines:
                padded = ""
                for at in block:
                    blank = " " * (widths[at] - cells_of(line[at]))
                    padded += " " * _GAP + (blank + line[at] if columns[at].numeric else line[at] + blank)
                yield padded
        if table.note:
            yield from self._paragraph(self._display.text(table.note, limit=4096), before="  ")

    def _fit(self, table: Table, widths: list[int]) -> None:
        """Narrow mixes, then columns of flexible width, until the line fits or they would be hard to read."""
        if self._width is None:
            return
        over = _GAP + sum(widths) + _GAP * (len(widths) - 1) - self._width
        mixes = [at for at, column in enumerate(table.columns) if column.unit is Unit.MIX]
        names = [at for at, column in enumerate(table.columns) if column.width == 0]
        others = max((width for at, width in enumerate(widths) if at not in names), default=0)
        wide = {at: min(widths[at], _GOOD_NAME, self._width - 2 * _GAP - others) for at in names}
        for at in (*mixes, *names):
            given = max(0, min(over, widths[at] - _NARROWEST_NAME))
            widths[at] -= given
            over -= given
        if over > 0:
            for at in names:
                widths[at] = max(widths[at], wide[at])

    def _cut(self, cell: Cell, column: Column, text: str, room: int) -> str:
        """Return a text that fits its column: names lose their middle."""
        if column.unit is Unit.MIX and cells_of(text) > room:
            whole = text[: room - 3].rpartition(", ")[0]
            return f"{whole}, …" if whole else f"{text[: room - 1]}…"
        limit = room
        while cells_of(text) > room and limit > 0:
            if isinstance(cell, bytes):
                text = self._display.name(cell, limit=limit)
            else:
                text = self._display.text(text, limit=limit)
            limit -= 1
        return text


def cells_of(text: str) -> int:
    """Return how many cells of a terminal a safe text takes: wide characters take two, marks none."""
    if text.isascii():
        return len(text)
    cells = 0
    for character in text:
        if not unicodedata.combining(character) and unicodedata.category(character) not in {"Mn", "Me"}:
            cells += 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1
    return cells
