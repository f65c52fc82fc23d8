"""How servers are, as text for a terminal or a log and as Markdown: what is wrong first, then every panel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.facts import Unknown
from rtui.analysis.findings.server import ServerHealth, server_health
from rtui.analysis.formats.findings import markdown_lines, text_lines
from rtui.analysis.formats.markdown import ROWS, escaped, table_markdown
from rtui.analysis.formats.text import DEFAULT_WIDTH, cells_of, table_text
from rtui.analysis.health.lines import value_text
from rtui.analysis.health.panel import Panel, State
from rtui.analysis.health.replication_panel import ROLES
from rtui.analysis.health.view import HealthView
from rtui.analysis.report.tables.table import Column, Table, Unit, cell_reason, cell_text
from rtui.keyspace.text.display import SafeText, display_text

_FIGURE: Final = Column("figure", "figure", Unit.TEXT, 28)
_VALUE: Final = Column("value", "value", Unit.COUNT, 12)
_STATE: Final = Column("state", "state", Unit.TEXT, 7, "Whether the value is normal, by the threshold beside it")
_NORMAL: Final = Column("normal", "normal", Unit.TEXT, 20)
_SAID: Final = Column("said", "what it means here", Unit.TEXT)
_FIGURES: Final = (_FIGURE, _VALUE, _STATE, _NORMAL, _SAID)

_LEAST_ROOM: Final = 32
"""Characters that an explanation has at least."""


def figures_table(panel: Panel) -> Table:
    """Return the lines of a panel as a table."""
    rows = tuple(
        (
            line.title,
            line.value if isinstance(line.value, Unknown) else value_text(line),
            "" if line.state is State.PLAIN else line.state.value,
            line.normal,
            line.said or cell_reason(line.value),
        )
        for line in panel.lines
    )
    return Table(panel.id, panel.title, _FIGURES, rows)


def health_text(views: Sequence[HealthView]) -> str:
    """Return all about each node, in lines; ends with a newline."""
    return "\n".join(line for view in views for line in _node_text(view)) + "\n"


def _node_text(view: HealthView) -> Iterator[str]:
    health = server_health(view)
    yield title(view, health)
    yield ""
    yield from text_lines(health.found)
    for panel in health.panels:
        yield from ("", panel.title, *_figure_lines(panel))
        for table in map(_shortened, panel.tables):
            yield ""
            yield table_text(table).rstrip("\n")
        for note in panel.notes:
            yield from wrap(display_text(note, limit=4096), DEFAULT_WIDTH, initial_indent="  ", subsequent_indent="  ")
    yield ""


def _figure_lines(panel: Panel) -> Iterator[str]:
    """Yield the lines of a panel; what is normal and what a value means is wrapped beside them."""
    rows = [
        [cell_text(cell, column) for cell, column in zip(row, _FIGURES, strict=True)]
        for row in figures_table(panel).rows
    ]
    widths = [max((cells_of(row[at]) for row in rows), default=0) for at in range(3)]
    for name, value, state, normal, said in rows:
        before = f"  {name:<{widths[0]}}  {value:>{widths[1]}}  {state:<{widths[2]}}  "
        explained = "; ".join([*([f"normal: {normal}"] if normal else []), *([said] if said else [])])
        room = max(DEFAULT_WIDTH, len(before) + _LEAST_ROOM)
        after = " " * len(before)
        yield from wrap(explained, room, initial_indent=before, subsequent_indent=after) or [before.rstrip()]


def health_markdown(views: Sequence[HealthView]) -> str:
    """Return a section for each node; nothing that came from a server can become markup. Ends with a newline."""
    return "\n".join(["# rtui health", "", *(line for view in views for line in _node_markdown(view))]) + "\n"


def _node_markdown(view: HealthView) -> Iterator[str]:
    health = server_health(view)
    yield from (f"## {escaped(title(view, health))}", "")
    yield from markdown_lines(health.found, "###")
    for panel in health.panels:
        if not panel.lines:
            yield from ("", f"### {escaped(panel.title)}")
        for table in ([figures_table(panel)] if panel.lines else []) + list(map(_shortened, panel.tables)):
            yield from ("", f"### {escaped(table.title)}", "", table_markdown(table).rstrip("\n"))
            yield from ("", escaped(table.note)) if table.note else ()
        for note in panel.notes:
            yield from ("", escaped(note))
    yield ""


def title(view: HealthView, health: ServerHealth) -> SafeText:
    """Return a node in a line: `10.0.0.5:6379 · redis 7.4.1 · primary · 2026-09-21 14:13:20 UTC · fragmented`."""
    product = "valkey" if view.text("valkey_version") else "redis"
    version = view.text("valkey_version") or view.text("redis_version")
    role = ROLES.get(view.text("role"), "")
    parts = [
        view.latest.node,
        f"{product} {version}" if version else "",
        role,
        f"{humanize.moment(view.latest.at_ms / 1000)} UTC",
        health.headline or "nothing wrong",
    ]
    return SafeText(" · ".join(display_text(part, limit=200) for part in parts if part))


def _shortened(table: Table) -> Table:
    """Return a table with its first rows; settings are all there."""
    return table if table.id == "settings" or len(table.rows) <= ROWS else table.picked(range(ROWS))
