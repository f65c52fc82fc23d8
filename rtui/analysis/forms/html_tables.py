"""Tables of a report as tables of a page: intervals and reasons on hover, sorted by a click on a heading."""

from __future__ import annotations

from typing import Final

from rtui.analysis.forms.html_markup import Markup, element, joined
from rtui.analysis.tables.cell_text import cell_interval, cell_reason, cell_text
from rtui.analysis.tables.ordering import sort_key
from rtui.analysis.tables.table import Cell, Column, Table, Unit

SHARE_STEPS: Final = 20
"""A share is drawn under its number in so many steps."""

_MOST_ROWS: Final = 200


def section(table: Table) -> Markup:
    """Return a table under its heading, with its note."""
    rows = table.rows[:_MOST_ROWS]
    head = element("tr", *(_heading(column) for column in table.columns))
    body = (
        element("tr", *(_cell(cell, column) for cell, column in zip(row, table.columns, strict=True))) for row in rows
    )
    whole = element("table", element("thead", head), element("tbody", *body))
    more = len(table.rows) - len(rows)
    notes = [table.note] if table.note else []
    if more:
        notes.append(f"{more:,} more rows are in the JSON form of the report.")
    return element(
        "section",
        element("h2", table.title),
        element("div", whole, class_="scroll", tabindex="0", role="region", aria_label=table.title),
        *(element("p", note, class_="note") for note in notes),
        id=table.id,
    )


def _heading(column: Column) -> Markup:
    """Return the heading of a column."""
    kind = "n" if column.numeric else None
    return element("th", column.title, scope="col", class_=kind, title=column.about or None)


def _cell(cell: Cell, column: Column) -> Markup:
    """Return one cell with what sorts it and what explains it."""
    text = cell_text(cell, column)
    title: str | None = cell_reason(cell) or None
    interval = cell_interval(cell, column)
    if interval is not None:
        title = f"95 % interval: {interval}"
    if column.unit is Unit.NAME and isinstance(cell, bytes):
        return element("td", element("code", text), title=title)
    if not column.numeric:
        return element("td", text, title=title)
    key = sort_key(cell)
    return element("td", text, class_=_classes(column, key), data_v=None if key is None else key[0], title=title)


def _classes(column: Column, key: tuple[float, str, bytes] | None) -> str:
    """Return the classes of a number: those of a share draw it."""
    if column.unit is not Unit.SHARE or key is None:
        return "n"
    return f"n share s{max(0, min(SHARE_STEPS, round(key[0] * SHARE_STEPS)))}"


def share_styles() -> Markup:
    """Return the styles that say how long the line under a share is."""
    rules = (f".s{step}{{--share:{step / SHARE_STEPS:g}}}" for step in range(1, SHARE_STEPS + 1))
    return joined(map(Markup, rules))
