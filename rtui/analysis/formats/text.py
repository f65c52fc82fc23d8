"""Pages as text for a terminal, in aligned columns, and as Markdown with the tables of GitHub.

Nothing in the Markdown can become other markup.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from textwrap import wrap
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.findings.finding import Found
from rtui.analysis.formats import blocks
from rtui.analysis.report.tables.table import Cell, Column, Table, Unit, cell_text
from rtui.keyspace.text.display import Display, display_text
from rtui.registry.rules import Severity

DEFAULT_WIDTH: Final = 110
_NARROWEST_NAME: Final = 16
_GOOD_NAME: Final = 32
"""Most characters of a name if columns have to follow below the others."""
_LEAST_ROOM: Final = 32
_LEAST_TEXT: Final = 18
_GAP: Final = 2
_ASCII: Final = str.maketrans({"≥": ">=", "≈": "~", "–": "-", "×": "x", "…": "...", "·": "-", "─": "-", "µ": "u"})


def page_text(page: blocks.BlockPage, *, width: int | None = DEFAULT_WIDTH, ascii_only: bool = False) -> str:
    """Return a page in lines of `width` characters, or of their natural length if it is None; ends with a newline.

    Numbers are never cut, names in the middle; columns that do not fit follow below the others. Texts of findings and
    figures keep their lines.
    """
    writer = _TextWriter(width, Display(ascii_only=ascii_only))
    headline = [blocks.Paragraph((page.title,))] if page.has_headline else []
    return _joined(list(writer.lines([*headline, *page.blocks]))[1:], ascii_only=ascii_only)


def table_text(table: Table, *, width: int | None = DEFAULT_WIDTH, ascii_only: bool = False) -> str:
    return _joined(_TextWriter(width, Display(ascii_only=ascii_only)).table(table), ascii_only=ascii_only)


def _joined(lines: Iterable[str], *, ascii_only: bool) -> str:
    text = "\n".join(line.rstrip() for line in lines) + "\n"
    return text.translate(_ASCII) if ascii_only else text


class _TextWriter:
    """Lays blocks out in one width."""

    def __init__(self, width: int | None, display: Display) -> None:
        self._width = width
        self._display = display

    def lines(self, page: Sequence[blocks.Block], *, below_heading: bool = False) -> Iterator[str]:
        """Yield the lines of all blocks, an empty line before each that does not belong to the block above it."""
        for block in page:
            lines = list(self._block(block))
            belongs = isinstance(block, blocks.Note) or (
                below_heading and isinstance(block, blocks.Items | blocks.FigureTable)
            )
            yield from ("", *lines) if lines and not belongs else lines
            below_heading = below_heading and not lines

    def _block(self, block: blocks.Block) -> Iterator[str]:
        match block:
            case blocks.Section():
                yield block.title
                yield from self.lines(block.blocks, below_heading=True)
            case blocks.Paragraph():
                yield from (
                    line for text in block.lines for line in self._paragraph(self._display.text(text, limit=4096))
                )
            case blocks.Items():
                yield from block.lines
            case blocks.Facts():
                rows = [[self._display.text(part, limit=4096) for part in row] for row in block.rows]
                room = max((len(what) for what, _ in rows), default=0)
                for what, text in rows:
                    yield from self._paragraph(text, before=f"{what:<{room}}  ")
            case blocks.Note():
                yield from self._paragraph(self._display.text(block.text, limit=4096), before="  ")
            case blocks.Findings():
                yield from _findings(block.found)
            case blocks.GroupedRows():
                yield from _listing(block)
            case blocks.FigureTable():
                yield from self._figures(block.table)
            case Table(id="findings"):
                yield from self._findings_table(block)
            case Table() if block.rows:
                yield from self.table(blocks.shortened(block))
            case blocks.ReportCharts() | Table():
                pass

    def _findings_table(self, table: Table) -> Iterator[str]:
        """Yield the findings, a paragraph each: in a column, sentences would be cut."""
        if not table.rows and not table.note:
            return
        yield table.title
        for row in table.rows:
            severity, title, memory, _, rule = map(cell_text, row, table.columns)
            size = "" if row[2] is None else memory
            before = self._display.text(f"  {severity:<5}  {size:>10}  ")
            yield from self._paragraph(self._display.text(f"{title} ({rule})", limit=4096), before=before)
        if table.note:
            yield from self._paragraph(self._display.text(table.note, limit=4096), before="  ")

    def _figures(self, table: Table) -> Iterator[str]:
        """Yield the metrics of a panel; Redis' names, expected values and meanings are wrapped beside them."""
        titles = [one.title for at, one in enumerate(table.columns[:-2]) if at != 1]
        rows = [[cell_text(cell, one) for cell, one in zip(row, table.columns, strict=True)] for row in table.rows]
        shown = [[title, *cells] for title, _, *cells, _, _ in rows]
        widths = [max(map(cells_of, column)) for column in zip(*shown, strict=True)]
        if len(titles) > 3 and rows:
            widths = [max(width, len(title)) for width, title in zip(widths, titles, strict=True)]
            yield _aligned(titles, widths)
        for (_, field, *_, normal, said), cells in zip(rows, shown, strict=True):
            before = _aligned(cells, widths)
            expected = f"expected: {normal}" if normal else ""
            explained = "; ".join(filter(None, (field, expected, said)))
            if self._width is None:
                yield before + explained
                continue
            room = max(self._width, len(before) + _LEAST_ROOM)
            yield from wrap(explained, room, initial_indent=before, subsequent_indent=" " * len(before)) or [before]

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
            cells = [self._cells(row[at], column, shown[at], widths[at]) for at, column in enumerate(columns)]
            lines += [list(line) for line in zip_longest(*cells, fillvalue="")]
        parts = [[0]]
        for at in range(1, len(widths)):
            needed = sum(widths[one] + _GAP for one in (*parts[-1], at))
            if self._width is not None and needed > self._width and len(parts[-1]) > 1:
                parts.append([0])
            parts[-1].append(at)
        for part in parts:
            for line in lines:
                padded = ""
                for at in part:
                    blank = " " * (widths[at] - cells_of(line[at]))
                    padded += " " * _GAP + (blank + line[at] if columns[at].numeric else line[at] + blank)
                yield padded
        if table.note:
            yield from self._paragraph(self._display.text(table.note, limit=4096), before="  ")

    def _fit(self, table: Table, widths: list[int]) -> None:
        """Narrow texts, mixes, then columns of flexible width, until the line fits or they would be hard to read."""
        if self._width is None:
            return
        over = _GAP + sum(widths) + _GAP * (len(widths) - 1) - self._width
        mixes = [at for at, column in enumerate(table.columns) if column.unit is Unit.MIX]
        texts = [at for at, column in enumerate(table.columns) if at and column.unit is Unit.TEXT]
        while over > 0 and texts and widths[widest := max(texts, key=widths.__getitem__)] > _LEAST_TEXT:
            widths[widest] -= 1
            over -= 1
        names = [at for at, column in enumerate(table.columns) if column.width == 0 and at not in texts]
        others = max((width for at, width in enumerate(widths) if at not in names), default=0)
        wide = {at: min(widths[at], _GOOD_NAME, self._width - 2 * _GAP - others) for at in names}
        for at in (*mixes, *names):
            given = max(0, min(over, widths[at] - _NARROWEST_NAME))
            widths[at] -= given
            over -= given
        if over > 0:
            for at in names:
                widths[at] = max(widths[at], wide[at])

    def _cells(self, cell: Cell, column: Column, text: str, room: int) -> list[str]:
        if column.unit is Unit.TEXT and cells_of(text) > room:
            return wrap(text, room)
        return [self._cut(cell, column, text, room)]

    def _cut(self, cell: Cell, column: Column, text: str, room: int) -> str:
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


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *numbers, state = zip(cells, widths, strict=True)
    parts = [f"{first[0]:<{first[1]}}", *(f"{text:>{width}}" for text, width in numbers), f"{state[0]:<{state[1]}}"]
    return f"  {'  '.join(parts)}  "


def _listing(block: blocks.GroupedRows) -> Iterator[str]:
    is_headed = any(not group.title for group in block.groups)
    rows = [*([block.columns] if is_headed else []), *(row for group in block.groups for row in group.rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    widths = widths if block.has_numbers else [*widths[:-1], 0]
    side = ">" if block.has_numbers else "<"

    def aligned(row: Sequence[str]) -> str:
        rest = (f"{text:{side}{width}}" for text, width in zip(row[1:], widths[1:], strict=True))
        return "  ".join([f"{row[0]:<{widths[0]}}", *rest])

    parts = []
    for group in block.groups:
        lines = [group.title or aligned(block.columns), *map(aligned, group.rows)]
        parts.append([*lines, *([left_off(group)] if group.left_off else [])])
    parts += [[block.rest]] if block.rest else []
    parts += [[*block.notes]] if block.notes else []
    for at, part in enumerate(parts):
        yield from ("", *part) if at else part


def left_off(group: blocks.RowGroup) -> str:
    return f"… and {group.left_off:,} more"


def _findings(found: Found) -> Iterator[str]:
    for one in found.findings:
        yield f"{one.severity}  {one.rule}  {one.size}"
        yield f"  {one.title}"
        yield from (f"    {line}" for line in one.evidence)
        note = f"\n           ({one.query_note})" if one.query_note else ""
        yield from (f"  {what:<7}  {text}" for what, text in one.explained)
        yield from (f"  query    {query}{note}",) if (query := one.query) else ()
        yield from (f"  command  {one.command}", "")
    yield from ending_lines(found)


def ending_lines(found: Found) -> Iterator[str]:
    for rest in found.unlisted:
        yield f"not listed: {humanize.counted(rest.places, 'more place')} of {rest.rule}, all less costly"
    for why, rules in found.doubts.items():
        yield f"not checked: {', '.join(rules)} ({why})"
    for note in found.notes:
        yield f"note: {note}"
    by = f"{humanize.counted(len(found.judged), 'rule')}: {', '.join(found.judged)}" if found.judged else "no rule"
    yield f"{summary(found)}{found.so_far} by {by}."


def summary(found: Found) -> str:
    """Return how much is found: `1 error and 2 warnings`."""
    counts = Counter(one.severity for one in found.findings)
    errors = humanize.counted(counts[Severity.ERROR], "error")
    return f"{errors} and {humanize.counted(counts[Severity.WARN], 'warning')}"


def cells_of(text: str) -> int:
    """Return the width of a safe text in terminal cells: wide characters take two, marks none."""
    if text.isascii():
        return len(text)
    cells = 0
    for character in text:
        if not unicodedata.combining(character) and unicodedata.category(character) not in {"Mn", "Me"}:
            cells += 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1
    return cells


_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>#|~&$@]|:(?=//|\w+:)|(?<=www)\.)")
"""Special characters of Markdown, and of the HTML, links, mentions and formulas that its readers know."""

_BACKTICKS: Final = re.compile("`+")

_DEEPEST: Final = 3
"""Sections further in have headings of this level, too."""


def page_markdown(page: blocks.BlockPage) -> str:
    parts = [[f"# {escaped(page.title)}"], *(lines for block in page.blocks for lines in _markdown(block, 2))]
    return "\n\n".join("\n".join(lines) for lines in parts) + "\n"


def _markdown(block: blocks.Block, level: int) -> Iterator[list[str]]:
    """Yield the lines of a block in parts that empty lines separate; its headings are of this level."""
    heading = "#" * level
    match block:
        case blocks.Section():
            yield [f"{heading} {escaped(block.title)}"]
            for inner in block.blocks:
                yield from _markdown(inner, min(level + 1, _DEEPEST))
        case blocks.Paragraph():
            yield list(map(escaped, block.lines))
        case blocks.Items():
            if block.lines:
                yield from [[f"{heading} {block.title}"]] if block.title else ()
                yield [f"- {escaped(line)}" for line in block.lines]
        case blocks.Facts():
            yield [f"- **{escaped(what)}**: {escaped(text)}" for what, text in block.rows]
        case blocks.Note():
            yield [escaped(block.text)]
        case blocks.Findings():
            yield from _findings_markdown(block.found, heading)
        case blocks.GroupedRows():
            yield from _listing_markdown(block, heading)
        case blocks.FigureTable():
            yield list(_table_rows(block.table))
        case Table() if block.rows:
            table = blocks.shortened(block)
            yield [f"{heading} {escaped(table.title)}"]
            yield list(_table_rows(table))
            yield from [[escaped(table.note)]] if table.note else ()
        case blocks.ReportCharts() | Table():
            pass


def _findings_markdown(found: Found, heading: str) -> Iterator[list[str]]:
    if found.findings:
        rows = [f"| {one.severity} | {one.rule} | {escaped(one.title)} | {one.size} |" for one in found.findings]
        yield ["| severity | rule | finding | bytes |", "|---|---|---|--:|", *rows]
    for one in found.findings:
        yield [f"{heading} {one.rule}: {escaped(one.where)}"]
        yield [f"{escaped(one.title)}."]
        lines = [f"- {escaped(line)}" for line in one.evidence]
        lines += [f"- {what.capitalize()}: {escaped(text)}" for what, text in one.explained]
        yield [
            *lines,
            *(f"- {what}: {code(text)}" for what, text in (("Query", one.query), ("Look", one.command)) if text),
        ]
    yield list(map(escaped, ending_lines(found)))


def _listing_markdown(block: blocks.GroupedRows, heading: str) -> Iterator[list[str]]:
    head = [markdown_row(block.columns)]
    head.append(markdown_row([":--", *["--:" if block.has_numbers else ":--"] * (len(block.columns) - 1)]))
    for group in block.groups:
        yield from [[f"{heading} {group.title}"]] if group.title else ()
        first = code if block.has_numbers else escaped
        yield [*head, *(markdown_row([first(row[0]), *map(escaped, row[1:])]) for row in group.rows)]
        yield from [[left_off(group)]] if group.left_off else ()
    yield from [[escaped(block.rest)]] if block.rest else ()
    yield from [[f"- {escaped(note)}" for note in block.notes]] if block.notes else ()


def table_markdown(table: Table) -> str:
    return "\n".join(_table_rows(table)) + "\n"


def _table_rows(table: Table) -> Iterator[str]:
    yield markdown_row([escaped(column.title) for column in table.columns])
    yield markdown_row(["--:" if column.numeric else ":--" for column in table.columns])
    for row in table.rows:
        cells = []
        for cell, column in zip(row, table.columns, strict=True):
            is_name = column.unit is Unit.NAME and isinstance(cell, bytes) and cell
            cells.append(code(cell_text(cell, column)) if is_name else escaped(cell_text(cell, column)))
        yield markdown_row(cells)


def markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", display_text(text, limit=4096))


def code(text: str) -> str:
    """Return a name as code in a table: nothing in it means anything but the bar of the table, which is escaped."""
    fence = "`" * (max((len(run) for run in _BACKTICKS.findall(text)), default=0) + 1)
    padding = " " if text.startswith(("`", " ")) or text.endswith(("`", " ")) else ""
    return f"{fence}{padding}{text}{padding}{fence}".replace("|", "\\|")
