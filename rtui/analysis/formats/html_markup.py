"""HTML elements and tables: text is escaped wherever it is put, unless it is markup already."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Final

from rtui.analysis.report.tables.table import Cell, Column, Table, Unit, cell_interval, cell_reason, cell_text, sort_key
from rtui.keyspace.text.display import display_text

_VOID: Final = frozenset({"meta", "rect", "path", "line", "input"})
"""Elements without an end."""

_TEXT_LIMIT: Final = 4096


class Markup(str):
    """Text of a page with its tags; only `element` and `joined` make it."""

    __slots__ = ()


def element(name: str, /, *children: str, **attributes: str | float | None) -> Markup:
    """Return an element. In the names of attributes `_` stands for `-`, but for one at the end; None leaves one out.

    Numbers have a few figures.
    """
    written = ""
    for key, value in attributes.items():
        if value is not None:
            text = safe(value) if isinstance(value, str) else f"{value:.6g}"
            written += f' {key.rstrip("_").replace("_", "-")}="{text}"'
    if name in _VOID:
        return Markup(f"<{name}{written}/>")
    return Markup(f"<{name}{written}>{joined(children)}</{name}>")


def joined(parts: Iterable[str]) -> Markup:
    """Return parts one behind the other, text escaped."""
    return Markup("".join(part if isinstance(part, Markup) else safe(part) for part in parts))


def safe(text: str) -> Markup:
    """Return text escaped, without control or invisible characters."""
    return Markup(escape(display_text(text, limit=_TEXT_LIMIT)))


SHARE_STEPS: Final = 20
"""A share is drawn under its number in so many steps."""

_MOST_ROWS: Final = 200


def section(table: Table) -> Markup:
    """Return a table under its heading, with its note."""
    rows = table.rows[:_MOST_ROWS]
    head = element(
        "tr",
        *(
            element("th", one.title, scope="col", class_="n" if one.numeric else None, title=one.about or None)
            for one in table.columns
        ),
    )
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


def _cell(cell: Cell, column: Column) -> Markup:
    """Return one cell, with its sort key and a tooltip for its interval or reason."""
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
    classes = "n"
    if column.unit is Unit.SHARE and key is not None:
        classes += f" share s{max(0, min(SHARE_STEPS, round(key[0] * SHARE_STEPS)))}"
    return element("td", text, class_=classes, data_v=None if key is None else key[0], title=title)


def share_styles() -> Markup:
    """Return the styles that say how long the line under a share is."""
    rules = (f".s{step}{{--share:{step / SHARE_STEPS:g}}}" for step in range(1, SHARE_STEPS + 1))
    return joined(map(Markup, rules))
