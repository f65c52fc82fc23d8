"""Pages as Markdown with the tables of GitHub, for a wiki or a ticket; nothing in them can become other markup."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from rtui.analysis.findings.finding import Found
from rtui.analysis.formats import blocks
from rtui.analysis.formats.text import ending_lines, left_off
from rtui.analysis.report.tables.table import Table, Unit, cell_text
from rtui.keyspace.text.display import display_text

_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>#|~&$@]|:(?=//|\w+:)|(?<=www)\.)")
"""Special characters of Markdown, and of the HTML, links, mentions and formulas that its readers know."""

_BACKTICKS: Final = re.compile("`+")

_DEEPEST: Final = 3
"""Sections further in have headings of this level, too."""


def page_markdown(page: blocks.BlockPage) -> str:
    """Return a page; ends with a newline."""
    parts = [[f"# {escaped(page.title)}"], *(lines for block in page.blocks for lines in _block(block, 2))]
    return "\n\n".join("\n".join(lines) for lines in parts) + "\n"


def _block(block: blocks.Block, level: int) -> Iterator[list[str]]:
    """Yield the lines of a block in parts that empty lines separate; its headings are of this level."""
    heading = "#" * level
    match block:
        case blocks.Section():
            yield [f"{heading} {escaped(block.title)}"]
            for inner in block.blocks:
                yield from _block(inner, min(level + 1, _DEEPEST))
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
            yield from _findings(block.found, heading)
        case blocks.GroupedRows():
            yield from _listing(block, heading)
        case blocks.FigureTable():
            yield list(_table(block.table))
        case Table() if block.rows:
            table = blocks.shortened(block)
            yield [f"{heading} {escaped(table.title)}"]
            yield list(_table(table))
            yield from [[escaped(table.note)]] if table.note else ()
        case blocks.ReportCharts() | Table():
            pass


def _findings(found: Found, heading: str) -> Iterator[list[str]]:
    """Yield a table, a section for each finding, then how much was found and by which rules."""
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


def _listing(block: blocks.GroupedRows, heading: str) -> Iterator[list[str]]:
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
    """Return one table without its title; ends with a newline."""
    return "\n".join(_table(table)) + "\n"


def _table(table: Table) -> Iterator[str]:
    yield markdown_row([escaped(column.title) for column in table.columns])
    yield markdown_row(["--:" if column.numeric else ":--" for column in table.columns])
    for row in table.rows:
        cells = []
        for cell, column in zip(row, table.columns, strict=True):
            is_name = column.unit is Unit.NAME and isinstance(cell, bytes) and cell
            cells.append(code(cell_text(cell, column)) if is_name else escaped(cell_text(cell, column)))
        yield markdown_row(cells)


def markdown_row(cells: Sequence[str]) -> str:
    """Return a line of a table."""
    return f"| {' | '.join(cells)} |"


def escaped(text: str) -> str:
    """Return a text that Markdown shows as it is."""
    return _SPECIAL.sub(r"\\\1", display_text(text, limit=4096))


def code(text: str) -> str:
    """Return a name as code in a table: nothing in it means anything but the bar of the table, which is escaped."""
    fence = "`" * (max((len(run) for run in _BACKTICKS.findall(text)), default=0) + 1)
    padding = " " if text.startswith(("`", " ")) or text.endswith(("`", " ")) else ""
    return f"{fence}{padding}{text}{padding}{fence}".replace("|", "\\|")
