"""The lines around the panels of the Server screen: tabs, the node, how the asking goes, and rows as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from textual.geometry import Size

from rtui.analysis.health.panel import Line as Figure
from rtui.keyspace.text.display import SafeText
from rtui.server.wire.connection import State
from rtui.tui.kit.layout import MARGIN, Piece, ago, prose, tab, tab_line
from rtui.tui.kit.panel_view import notice_lines
from rtui.tui.kit.status_lines import bar_line, link_words
from rtui.tui.kit.styled_text import Line, Role, Span, clip, gap, left, line_width, literal
from rtui.tui.server.figure_lines import figure_lines
from rtui.tui.server.panels import ServerPanel

TITLE_CELLS: Final = 14
"""Of the names of facts in the card of a row."""

CARD_LINES: Final = 40
"""Lines of a figure in a card, which can be scrolled."""


def panels_line(panels: Sequence[ServerPanel], chosen: int, width: int) -> Line:
    """Return the titles of the panels with their keys, shorter where it is narrow."""
    line = tab_line([SafeText(f"{one.key} {one.title}") for one in panels], chosen, (), width)
    if line_width(line) <= width:
        return line
    for titles in ([f"{one.key} {one.short}" for one in panels], [one.short for one in panels]):
        line = tuple(tab(SafeText(title), is_chosen=at == chosen) for at, title in enumerate(titles))
        if line_width(line) <= width:
            break
    return clip(line, width)


def node_line(node: SafeText | None, nodes: Sequence[SafeText], width: int) -> Line:
    """Return which node of a cluster is shown, and how to get back to all."""
    if node is None:
        return ()
    of = SafeText(f" · node {nodes.index(node) + 1} of {len(nodes)}" if node in nodes else "")
    hint = Span(literal(" · 0 or esc shows all nodes"), Role.FAINT)
    return clip((gap(MARGIN), Span(node, Role.STRONG), Span(of, Role.MUTED), hint), width)


def warning_line(warning: SafeText, width: int) -> Line:
    """Return what no longer holds of the figures, in one line."""
    return clip((gap(MARGIN), Span(warning, Role.WARN)), width)


def status_line(link: State, failure: SafeText | None, age_s: float | None, now_s: float, width: int) -> Line:
    """Return how the asking goes; `now_s` is on the clock of the event loop, `age_s` that of the last sample."""
    head: Line = link_words(link, now_s)
    pieces = []
    if not head:
        head = (Span(literal("watching") if failure is None else literal("not answered"), Role.MUTED),)
    if failure is not None:
        pieces.append(Piece(1, (Span(failure, Role.WARN),), 24))
    if age_s is not None:
        pieces.append(Piece(0, (Span(SafeText(f"asked {ago(age_s) or 'just now'}"), Role.MUTED),)))
    return bar_line(head, pieces, width)


def file_line(file: SafeText, width: int) -> Line:
    """Return what file the figures are out of, and of when."""
    pieces = [Piece(0, (Span(file, Role.TEXT),), 30), Piece(1, (Span(literal("no server is asked"), Role.MUTED),))]
    return bar_line((Span(literal("a file"), Role.WARN),), pieces, width)


def waiting_lines(failure: SafeText | None, width: int) -> list[Line]:
    """Return what stands in place of a panel before the first sample."""
    if failure is None:
        return notice_lines(literal("Asking the server…"), Role.MUTED, width)
    return notice_lines(literal("The server has not answered"), Role.WARN, width, failure)


def row_lines(facts: Sequence[tuple[SafeText, SafeText]], width: int) -> list[Line]:
    """Return a paragraph for each cell of a row, its title beside it."""
    lines: list[Line] = [()]
    for title, text in facts:
        first, *rest = prose(text, width - TITLE_CELLS - 1, Role.TEXT)
        lines.append((gap(1), Span(left(title, TITLE_CELLS), Role.MUTED), *first[1:]))
        lines += [(gap(TITLE_CELLS + 1), *line[1:]) for line in rest]
    return [*lines, ()]


def whole_figure_lines(figure: Figure, width: int) -> list[Line]:
    """Return all about a figure, for a card."""
    return [(), *((gap(1), *line) for line in figure_lines(figure, Size(width - 2, CARD_LINES)))]
