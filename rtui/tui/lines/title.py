"""The title bar: which server this is, that nothing is written, and how it is doing."""

from __future__ import annotations

from typing import Final

from rtui.analysis.estimate import Estimate
from rtui.keyspace.display import SafeText
from rtui.server.browsing_status import BrowsingStatus
from rtui.server.connection import Lost
from rtui.server.handshake import NoTouch
from rtui.tui import format as fmt
from rtui.tui.ink import Line, Role, Span, clip, cut_middle, gap, joined, line_width, own
from rtui.tui.lines.fitting import Piece, fitted
from rtui.tui.shown import display_text

MIN_LABEL_CELLS: Final = 20
"""A server label is cut in the middle beyond a quarter of the line, but not below this."""

IDENTITY_CELLS: Final = 60
"""The identity keeps so much of the line when figures want more."""

NAME: Final[Line] = (Span(own(" rtui"), Role.BADGE), Span(own("  ")))
"""The left end of the bar."""


def title_line(status: BrowsingStatus, width: int, label: SafeText | None = None) -> Line:
    """Return the title bar in exactly `width` cells; `label` stands for the server's own."""
    name = cut_middle(label if label is not None else status.label, max(MIN_LABEL_CELLS, width // 4))
    figures = fitted(_figures(status), max(0, width - IDENTITY_CELLS))
    room = width - line_width(NAME) - line_width(figures) - 2
    who = clip(fitted(_identity(status, name), room), room)
    blank = width - line_width(NAME) - line_width(who) - line_width(figures) - 1
    return clip((*NAME, *who, gap(blank), *figures, gap(1)), width)


def _identity(status: BrowsingStatus, name: SafeText) -> list[Piece]:
    """Return the pieces that say who the server is and what rtui promises."""
    server = status.server
    pieces = [Piece(0, (Span(name, Role.STRONG),))]
    if server.product_name:
        words = [server.product_name, *([display_text(server.version_text)] if server.version_text else [])]
        pieces.append(Piece(5, (Span(joined(words, " "), Role.MUTED),)))
    if server.role:
        pieces.append(Piece(4, (Span(display_text(server.role), Role.MUTED),)))
    if server.cluster_note:
        pieces.append(Piece(1, (Span(display_text(server.cluster_note), Role.WARN),)))
    pieces.append(Piece(2, (Span(SafeText(f"db{status.db}"), Role.MUTED),)))
    pieces.append(Piece(0, (Span(own("READ-ONLY"), Role.GOOD),)))
    pieces.append(_no_touch(status.no_touch))
    return pieces


_NO_TOUCH_MISSING: Final = {
    NoTouch.UNSUPPORTED: own("NO-TOUCH not supported"),
    NoTouch.DENIED: own("NO-TOUCH denied"),
}


def _no_touch(state: NoTouch) -> Piece:
    """Say whether looking leaves idle times and frequencies alone."""
    if state is NoTouch.ON:
        return Piece(3, (Span(own("NO-TOUCH"), Role.GOOD),))
    return Piece(1, (Span(_NO_TOUCH_MISSING[state], Role.WARN),))


def _figures(status: BrowsingStatus) -> list[Piece]:
    """Return the figures at the right end, the last ones that the server told while the connection is lost."""
    server, is_lost = status.server, isinstance(status.link, Lost)
    role = Role.MUTED if is_lost else Role.TEXT
    pieces: list[Piece] = [Piece(0, (Span(own("last known"), Role.WARN),))] if is_lost else []
    if server.used_memory_bytes is not None:
        used = fmt.size(server.used_memory_bytes)
        limit = server.maxmemory_bytes
        text = joined((used, fmt.size(limit)), "/") if limit else used
        pieces.append(Piece(2, (Span(own("mem "), Role.MUTED), Span(text, role))))
    keys = _keys(status)
    if keys is not None:
        pieces.append(Piece(0, (Span(keys, role), Span(own(" keys"), Role.MUTED))))
    if server.ops_per_s is not None and not is_lost:
        pieces.append(Piece(3, (Span(fmt.short_count(server.ops_per_s)), Span(own(" ops/s"), Role.MUTED))))
    return pieces


def _keys(status: BrowsingStatus) -> SafeText | None:
    """Return how many keys the database has, by its own word or by the sample."""
    if isinstance(status.total, Estimate):
        return fmt.estimated(status.total, fmt.short_count)
    return None if status.total is None else fmt.count(status.total)
