"""The blocks of a page: text and Markdown (`text.py`) and HTML (`html.py`) are each one writer over them.

All texts are safe to show. Tables are blocks themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from rtui.analysis.report.tables.table import Table

if TYPE_CHECKING:
    from rtui.analysis.findings.finding import Found
    from rtui.analysis.findings.server import ComparedLine
    from rtui.analysis.report.document import Report


class Paragraph(NamedTuple):
    """Lines of text."""

    lines: Sequence[str]


class Items(NamedTuple):
    """A list, in text a line each; a title stands for a section of its own, which text does without."""

    lines: Sequence[str]
    title: str = ""


class Facts(NamedTuple):
    """Words, each with its text."""

    title: str
    rows: Sequence[tuple[str, str]]


class Note(NamedTuple):
    """A remark on the block before it, without a full stop."""

    text: str


class Findings(NamedTuple):
    """Findings in full: each with its evidence, its reason and its remedy."""

    found: Found


class RowGroup(NamedTuple):
    """Rows of a listing under a title of their own; without one they stand below the names of its columns."""

    title: str
    rows: Sequence[Sequence[str]]
    left_off: int = 0


class GroupedRows(NamedTuple):
    """Groups of rows whose columns stand below each other; the columns of numbers are all but the first, or none."""

    title: str
    columns: Sequence[str]
    groups: Sequence[RowGroup]
    has_numbers: bool = False
    rest: str = ""
    """How much is in no group; may be empty."""
    notes: Sequence[str] = ()


class FigureTable(NamedTuple):
    """The figures of a panel of a server, as a table and with their histories."""

    table: Table
    lines: Sequence[ComparedLine]


class ReportCharts(NamedTuple):
    """The drawings of a report: its namespaces by size, and when keys expire."""

    report: Report


class Section(NamedTuple):
    """Blocks under a heading."""

    title: str
    blocks: Sequence[Block]
    id: str = ""
    prefix: str = ""
    """The prefix of the ids of its blocks, where a page has several of a kind."""


Block: TypeAlias = (
    Paragraph | Items | Facts | Note | Findings | GroupedRows | FigureTable | ReportCharts | Table | Section
)


class PageHead(NamedTuple):
    """The head of a page that is looked at in a browser."""

    kicker: str
    """The command: `rtui report`."""
    title: str
    badge: tuple[str, str]
    about: str = ""
    notes: Sequence[str] = ()
    tiles: Sequence[tuple[str, str]] | None = None
    """The main figures, each with its name; None for no room for any."""
    warnings: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class BlockPage:
    """A document for people."""

    title: str
    blocks: Sequence[Block]
    has_headline: bool = False
    """Whether the title says something that text has to say, too."""
    head: PageHead | None = None


ROWS: Final = 20
"""Rows of a table in text and Markdown, unless set here: a list is read from its top, and JSON has all of it."""

_OWN_ROWS: Final = {"namespaces": 60, "findings": 1_000, "settings": 1_000}


def shortened(table: Table) -> Table:
    rows = _OWN_ROWS.get(table.id, ROWS)
    if len(table.rows) <= rows:
        return table
    note = f"{table.note} " if table.note else ""
    return replace(table.picked(range(rows)), note=f"{note}The first {rows:,} of {len(table.rows):,}.")
