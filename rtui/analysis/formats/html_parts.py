"""What pages are made of: elements with escaped texts, tables, and the page itself, which loads nothing.

Its policy forbids it to: it lets in the one style sheet and the one script that are written into the page, by their
hashes. Without the script everything is there, but nothing zooms or sorts.
"""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Final

from rtui.analysis.report.tables.table import Cell, Column, Table, Unit, cell_interval, cell_reason, cell_text, sort_key
from rtui.keyspace.text.display import display_text

_VOID: Final = frozenset({"meta", "rect", "path", "line", "input"})
"""Elements without an end."""


class Markup(str):
    """Text of a page with its tags, which is not escaped again."""

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
    content = "".join(child if isinstance(child, Markup) else safe(child) for child in children)
    return Markup(f"<{name}{written}>{content}</{name}>")


def safe(text: str) -> Markup:
    """Return text escaped, without control or invisible characters."""
    return Markup(escape(display_text(text, limit=4096)))


SHARE_STEPS: Final = 20
"""A share is drawn under its number in so many steps."""

_MOST_ROWS: Final = 200


def section(table: Table, *, heading: str = "h2", prefix: str = "") -> Markup:
    """Return a table under its heading, with its note; `prefix` is before its id, where a page has several of it."""
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
    return table_section(table, whole, heading=heading, prefix=prefix)


def table_section(table: Table, whole: Markup, *, heading: str = "h2", prefix: str = "") -> Markup:
    """Return the `whole` table as it was drawn under its heading, with its note and how much is left out."""
    more = len(table.rows) - _MOST_ROWS
    notes = [table.note] if table.note else []
    if more > 0:
        notes.append(f"{more:,} more rows are in the JSON form.")
    return element(
        "section",
        element(heading, table.title),
        element("div", whole, class_="scroll", tabindex="0", role="region", aria_label=table.title),
        *(element("p", note, class_="note") for note in notes),
        id=f"{prefix}{table.id}",
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


def page(title: str, header: Markup, main: Markup) -> str:
    """Return a whole page; it ends with a line feed."""
    shares = (f".s{step}{{--share:{step / SHARE_STEPS:g}}}" for step in range(1, SHARE_STEPS + 1))
    style, script = Markup(_inline("page.css") + "".join(shares)), _inline("page.js")
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", title),
        element("style", style),
    )
    body = element("body", header, main, element("script", script))
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


@cache
def _inline(name: str) -> Markup:
    """Return a file that lies beside this module."""
    return Markup((files(__package__) / name).read_text("utf-8"))
