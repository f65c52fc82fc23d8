"""A report as Markdown with the tables of GitHub, for a wiki or a ticket."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from rtui.analysis.findings.contents import findings
from rtui.analysis.findings.table import findings_table
from rtui.analysis.report.document import Report
from rtui.analysis.report.tables.contents import about, headline, tables
from rtui.analysis.report.tables.table import Table, Unit, cell_text
from rtui.keyspace.text.display import display_text

_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>#|~&$@]|:(?=//|\w+:)|(?<=www)\.)")
"""What means something in a line of Markdown, or in the HTML, links, mentions and formulas that its readers know."""

_BACKTICKS: Final = re.compile("`+")


def write_markdown(report: Report) -> str:
    """Return the report; nothing that came from a server or a key can become markup. Ends with a newline."""
    lines = [f"# {escaped(headline(report))}", ""]
    lines += [f"- **{escaped(str(what))}**: {escaped(str(text))}" for what, text in about(report).rows]
    for table in (findings_table(findings(report)), *shown_tables(report)):
        if not table.rows:
            continue
        lines += ["", f"## {escaped(table.title)}", "", *_table(table)]
        lines += ["", escaped(table.note)] if table.note else []
    return "\n".join(lines) + "\n"


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


ROWS: Final = 20
"""Rows of a table, unless it says otherwise: a list is read from its top, and JSON has all of it."""

_OWN_ROWS: Final = {"namespaces": 60}


def shown_tables(report: Report) -> Iterator[Table]:
    """Yield the tables that have rows, each cut to the first, with a note of how many there are more."""
    for table in tables(report):
        rows = _OWN_ROWS.get(table.id, ROWS)
        if len(table.rows) > rows:
            note = f"{table.note} " if table.note else ""
            note += f"The first {rows:,} of {len(table.rows):,}."
            yield replace(table.picked(range(rows)), note=note)
        elif table.rows:
            yield table
