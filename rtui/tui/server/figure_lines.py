"""A figure of a server as lines: how it went, what it means here, what is normal, and what to do where it is not."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from textual.geometry import Size

from rtui.analysis import humanize
from rtui.analysis.facts import Reason, Unknown
from rtui.analysis.health.panel import Line as Figure
from rtui.analysis.health.panel import State, chart_bounds, plotted, top_of_chart, value_text
from rtui.analysis.report.tables.table import cell_reason
from rtui.keyspace.text.display import SafeText
from rtui.tui.kit.chart_lines import beside_each_other, labelled, paragraph, standing
from rtui.tui.kit.layout import TERMINAL, display_text
from rtui.tui.kit.styled_text import Line, Role, Span, gap, literal, right, width_of

BESIDE_FROM: Final = 100
"""From this width on the plot stands beside the text, else below it."""

LABEL_CELLS: Final = 8
"""Cells of the words before the lines: `normal`, `do`, `source`."""

LEAST_PLOT_LINES: Final = 4
"""A plot with fewer lines, its axis among them, is left out."""

LEAST_PLOT_CELLS: Final = 8
"""A plot of fewer cells is left out."""

ROLES: Final = {
    State.PLAIN: Role.TEXT,
    State.NORMAL: Role.GOOD,
    State.WATCH: Role.WARN,
    State.BAD: Role.BAD,
    State.UNKNOWN: Role.MUTED,
}
"""The roles of words for states."""


WRONG: Final = frozenset({State.BAD, State.WATCH})
"""The states of what is not as it should be."""


def sparkline(history: Sequence[float | None], cells: int) -> SafeText:
    """Return how a figure went from its lowest to its highest value, the newest at the right; unknown values are blank.

    Where it has hardly changed all values are low.
    """
    known = plotted(history)
    if not known:
        return literal("")
    return _bars(_resampled(history, cells), min(known), top_of_chart(min(known), max(known)), 1)[0]


def _resampled(history: Sequence[float | None], cells: int) -> list[float | None]:
    """Return at most `cells` values: means of as many neighbours as it takes."""
    count = len(history)
    if count <= cells:
        return list(history)
    bounds = [at * count // cells for at in range(cells + 1)]
    means: list[float | None] = []
    for start, end in pairwise(bounds):
        known = [value for value in history[start:end] if value is not None]
        means.append(sum(known) / len(known) if known else None)
    return means


def _bars(values: Sequence[float | None], low: float, high: float, height: int) -> list[SafeText]:
    """Return vertical bars from `low` at the foot to `high` at the top; nothing for an unknown value."""
    span = high - low or 1.0
    least = span / 1000
    return standing([0.0 if value is None else max(least, value - low) for value in values], height, most=span)


def plot_lines(figure: Figure, size: Size, span_s: float | None, *, is_over: bool = False) -> list[Line]:
    """Return a plot of the session with its scale and its times; nothing where there is no room or nothing to plot.

    `span_s` is how long ago the first sample
    was taken, in seconds; `is_over` is whether the last one was taken long ago, too, and it is how long before that.
    """
    known = plotted(figure.history)
    if not known or size.height < LEAST_PLOT_LINES:
        return []
    low, high = chart_bounds(known)
    ends = [value_text(figure, value, TERMINAL) for value in (high, low)]
    gutter = max(map(width_of, ends)) + 1
    cells = size.width - gutter
    if cells < LEAST_PLOT_CELLS:
        return []
    values = _resampled(figure.history, cells)
    bars = _bars(values, low, high, size.height - 1)
    scale = [ends[0], *[literal("")] * (len(bars) - 2), ends[1]]
    role = ROLES[figure.state] if figure.state in WRONG else Role.BAR
    lines: list[Line] = [
        (Span(right(text, gutter - 1), Role.MUTED), gap(1), Span(line, role))
        for text, line in zip(scale, bars, strict=True)
    ]
    began = (
        literal("")
        if span_s is None
        else SafeText(f"{humanize.short_duration(round(span_s) * 1000)} {'before' if is_over else 'ago'}")
    )
    now = right(literal("end" if is_over else "now"), max(0, len(values) - width_of(began)))
    return [*lines, (gap(gutter), Span(began, Role.MUTED), Span(now, Role.MUTED))]


def figure_lines(figure: Figure, size: Size, span_s: float | None = None, *, is_over: bool = False) -> list[Line]:
    """Return all about a figure: its text, and the plot of the session beside or below it, as far as it fits."""
    if size.width >= BESIDE_FROM:
        cells = size.width * 11 // 20
        text = _text_lines(figure, cells - 2)[: size.height]
        plot = plot_lines(figure, Size(size.width - cells, size.height), span_s, is_over=is_over)
        return beside_each_other(text, plot, cells) if plot else text
    text = _text_lines(figure, size.width)[: size.height]
    return [*text, *plot_lines(figure, Size(size.width, size.height - len(text)), span_s, is_over=is_over)]


def _text_lines(figure: Figure, width: int) -> list[Line]:
    """Return what the value means here, what is normal, what to do, and where that comes from."""
    word = SafeText("") if figure.state is State.PLAIN else SafeText(f"  {figure.state}")
    head: Line = (
        Span(display_text(figure.title), Role.STRONG), gap(2), Span(value_text(figure, display=TERMINAL)),
        Span(word, ROLES[figure.state]),
    )  # fmt: skip
    lines = [head]
    if isinstance(figure.value, Unknown):
        role = Role.WARN if figure.value.reason is Reason.DENIED else Role.MUTED
        lines += paragraph(SafeText(f"{display_text(cell_reason(figure.value))}."), width, role)
    if figure.said:
        lines += paragraph(figure.said, width, Role.TEXT)
    is_wrong = figure.state in WRONG
    for label, text, role in (
        ("do" if is_wrong else "if not", figure.remedy, Role.TEXT if is_wrong else Role.MUTED),
        ("normal", figure.normal, Role.MUTED),
        ("rule", figure.rule, Role.MUTED),
        ("source", figure.source, Role.MUTED),
    ):
        if text:
            lines += labelled(label, paragraph(display_text(text), width - LABEL_CELLS, role), LABEL_CELLS)
    return lines
