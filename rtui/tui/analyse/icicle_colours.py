"""What the colours of the icicle stand for: keys without TTL, keys that nobody uses, or the type of most keys.

Each block also says it in words where there is room, so that no colour is needed to read it. What was not asked has no
colour, and the legend says why.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from enum import Enum
from typing import Final, LiteralString, NamedTuple

from rtui.analysis import humanize as fmt
from rtui.analysis.estimates import Estimate
from rtui.analysis.humanize import Mark
from rtui.analysis.report.document import ColumnState, Report, Stats
from rtui.analysis.report.members import Figure
from rtui.analysis.report.tables.cells import Cells, plain
from rtui.keyspace.text.display import SafeText
from rtui.tui.kit.layout import display, display_text
from rtui.tui.kit.styled_text import (
    HEAT,
    Line,
    Role,
    Span,
    clip,
    fill_role,
    gap,
    line_width,
    literal,
    type_role,
    width_of,
)

BORDERS: Final = (0.01, 0.10, 0.50, 0.90)
"""Shares from which on a block has the second, third, fourth and fifth of the heat colours."""

LEVELS: Final[tuple[LiteralString, ...]] = (" <1% ", " 1% ", " 10% ", " 50% ", " 90% ")
"""What stands in the legend on each of these colours."""

LEGENDS: Final = {
    "no_ttl_share": literal("keys without TTL"),
    "idle_30d_share": literal("keys idle for more than 30 days"),
    "cold_share": literal("keys whose access counter is 0"),
}
"""Of which keys the colours show the share, by the column of the tables."""

NAME_CELLS: Final = 16
"""Names of types are cut beyond this."""


class Colouring(Enum):
    """What the colours stand for; the value is the fact that has to be known, as reports name it."""

    NO_TTL = "ttl"
    IDLE = "idle"
    TYPE = "type"


class Look(NamedTuple):
    """How a block is painted, and what that means for this namespace: `58% no TTL`."""

    role: Role
    meaning: SafeText


NO_COLOUR: Final = Look(Role.FILL, SafeText(""))
"""A block of which the fact is not known."""


def look_of(report: Report, colouring: Colouring) -> Callable[[Stats], Look]:
    """Return what gives each namespace of a report its look."""
    if colouring is Colouring.TYPE:
        return _by_type
    column, words = _column(report, colouring)
    cells = Cells(report)

    def look(stats: Stats) -> Look:
        share = cells.figures(stats)[column]
        if not isinstance(share, int | float | Estimate):
            return NO_COLOUR
        level = HEAT[bisect_right(BORDERS, plain(share))]
        return Look(level, SafeText(f"{_share_text(share)} {words}"))

    return look


def _column(report: Report, colouring: Colouring) -> tuple[str, LiteralString]:
    """Return which share the colours show, and what the keys in it are."""
    if colouring is Colouring.NO_TTL:
        return "no_ttl_share", "no TTL"
    top = report.summary.root.stats
    return ("cold_share", "counter 0") if _is_cold(top) else ("idle_30d_share", "idle > 30d")


def _is_cold(top: Stats) -> bool:
    """Whether access counters are known where idle times are not."""
    return top.idle is None and top.frequency is not None


def _by_type(stats: Stats) -> Look:
    """Return the look of the type that most keys have."""
    if not stats.types:
        return NO_COLOUR
    name, keys = stats.types[0]
    shown = display(name, limit=NAME_CELLS)
    if len(stats.types) > 1 and (total := plain(stats.keys)):
        is_estimate = isinstance(keys, Estimate)
        part = fmt.share(min(1.0, plain(keys) / total), Mark.ABOUT if is_estimate else Mark.EXACT)
        shown = SafeText(f"{shown} {part}")
    return Look(fill_role(name), shown)


def _share_text(share: Figure) -> SafeText:
    return fmt.share(plain(share), Mark.ABOUT if isinstance(share, Estimate) else Mark.EXACT)


def legend(report: Report, colouring: Colouring, width: int) -> Line:
    """Return what the colours mean, in at most `width` cells."""
    if colouring is Colouring.TYPE:
        return _type_legend(report, width)
    top = report.summary.root.stats
    if look_of(report, colouring)(top) is NO_COLOUR:
        return clip(_not_known(report, colouring), width)
    column, _ = _column(report, colouring)
    spans = [gap(1), Span(LEGENDS[column], Role.MUTED), gap(1)]
    for text, role in zip(LEVELS, HEAT, strict=True):
        spans += (Span(literal(text), role), gap(1))
    return clip(tuple(spans), width)


def _type_legend(report: Report, width: int) -> Line:
    """Return the types that keys have, those of most keys first, as many as fit."""
    spans: list[Span] = [gap(1), Span(literal("type of most keys "), Role.MUTED)]
    types = report.summary.root.stats.types
    if not types:
        return clip(_not_known(report, Colouring.TYPE), width)
    for name, _keys in types:
        shown = display(name, limit=NAME_CELLS)
        if line_width(tuple(spans)) + width_of(shown) + 3 > width:
            break
        spans += (Span(literal("▌"), type_role(name)), Span(shown, type_role(name)), gap(2))
    return clip(tuple(spans), width)


def _not_known(report: Report, colouring: Colouring) -> Line:
    """Return why the blocks have no colour."""
    name = fmt.fact_name(colouring.value)
    column = report.head.columns.get(colouring.value)
    if column is None or column.state in (ColumnState.COMPLETE, ColumnState.SOME):
        return gap(1), Span(SafeText(f"no colour: {name} is not known"), Role.MUTED)
    reason = f" ({column.reason})" if column.reason else ""
    state = {ColumnState.UNSUPPORTED: "not available"}.get(column.state, column.state.value)
    role = Role.WARN if column.state is ColumnState.DENIED else Role.MUTED
    return gap(1), Span(display_text(f"no colour: {name} {state}{reason}", limit=300), role)
