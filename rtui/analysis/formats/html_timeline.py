"""The expiry forecast as bars over time: the next hour, day, week and later, with cliffs marked and listed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.formats.html_markup import Markup, element
from rtui.analysis.humanize import Mark
from rtui.analysis.report.document import Cliff, CoverageKind, ExpiryBin, Report, Timeline
from rtui.analysis.report.members import DAY_S, HOUR_S
from rtui.analysis.report.tables.cell_text import noun_of, written, written_keys
from rtui.analysis.report.tables.cells import plain
from rtui.analysis.report.timeline import columns

COLUMNS: Final = 60
"""Bars of each chart."""

_MARKS: Final = {CoverageKind.PARTIAL: Mark.AT_LEAST, CoverageKind.ESTIMATE: Mark.ABOUT}
"""What stands before numbers that come without an interval."""

_HEIGHT: Final = 100
_STEP: Final = 10
"""Width of a bar in the units of the drawing."""


@dataclass(frozen=True, slots=True)
class _Range:
    """A range of time with a chart of its own."""

    title: str
    start_s: float
    """Since the report was made."""
    end_s: float


def timeline(report: Report) -> Markup:
    """Return the charts and the list of cliffs; nothing where nothing expires."""
    lines = report.summary.expiry.timelines
    if not lines or not lines[0].bins:
        return Markup("")
    now = report.head.made_at_s
    bins = lines[0].bins
    found = report.summary.expiry.cliffs
    mark = _MARKS.get(report.head.coverage.kind, Mark.EXACT)
    charts = [chart for span in _ranges(now, bins) for chart in _chart(span, now, lines[0], found, mark)]
    if not charts:
        return Markup("")
    return element(
        "section",
        element("h2", "Coming expiries"),
        element("p", "Keys by the moment at which they expire, in UTC; each chart has its own scale.", class_="note"),
        element("div", *charts, class_="charts"),
        _cliffs(found, mark),
        id="timeline",
    )


def _ranges(now: float, bins: Sequence[ExpiryBin]) -> Iterator[_Range]:
    """Yield the ranges of time that get a chart each, up to the last expiry."""
    yield _Range("next hour", 0, HOUR_S)
    yield _Range("then the next day", HOUR_S, DAY_S)
    yield _Range("then the next week", DAY_S, 7 * DAY_S)
    last = max(one.start_s + one.width_s for one in bins) - now
    if last > 7 * DAY_S:
        yield _Range("later", 7 * DAY_S, last)


def _chart(span: _Range, now: float, line: Timeline, found: Sequence[Cliff], mark: Mark) -> Iterator[Markup]:
    """Yield the chart of a range, unless nothing expires in it."""
    start, width = now + span.start_s, span.end_s - span.start_s
    (whole,), bars = columns(line, start, start + width, 1), columns(line, start, start + width, COLUMNS)
    heights = [plain(one.keys) for one in bars]
    highest = max((one.keys for one in bars), key=plain)
    top = plain(highest)
    if plain(whole.keys) < 1:
        return
    steep = [
        at
        for at in range(COLUMNS)
        if any(
            one.start_s < start + (at + 1) * width / COLUMNS and one.end_s > start + at * width / COLUMNS
            for one in found
        )
    ]
    calm = [at for at in range(COLUMNS) if at not in steep]
    keys = written_keys(whole.keys, mark)
    noun = noun_of(whole.keys, "key")
    title = f"{span.title}: {keys} {noun} {'expires' if noun == 'key' else 'expire'}"
    drawing = element(
        "svg",
        element("title", title),
        element("path", d=_path(heights, calm, top), class_="bars"),
        element("path", d=_path(heights, steep, top), class_="bars steep"),
        viewBox=f"0 0 {COLUMNS * _STEP} {_HEIGHT}",
        preserveAspectRatio="none",
        role="img",
    )
    middle = start + width / 2
    yield element(
        "figure",
        element(
            "figcaption",
            element("b", span.title),
            element("span", f"{keys} {noun} · the highest bar is {written(highest, humanize.short_count)}"),
        ),
        drawing,
        element("div", *(element("span", _clock(at, width)) for at in (start, middle, start + width)), class_="axis"),
    )


def _path(heights: Sequence[float], columns: Sequence[int], top: float) -> str:
    bars = []
    for at in columns:
        height = _HEIGHT * heights[at] / top
        if height > 0:
            height = max(height, 1.0)
            bars.append(f"M{at * _STEP} {_HEIGHT}v-{height:.1f}h{_STEP - 2}v{height:.1f}z")
    return "".join(bars)


def _cliffs(found: Sequence[Cliff], mark: Mark) -> Markup:
    items = (
        element(
            "li",
            element("b", f"{humanize.moment(one.start_s)[:16]} – {humanize.moment(one.end_s)[11:16]}"),
            f" · {written_keys(one.keys, mark)} {noun_of(one.keys, 'key')} of ",
            element("code", one.label),
            f", {written(one.share, humanize.share)} of it"
            + ("" if one.memory_bytes is None else f", {written(one.memory_bytes, humanize.size, mark)}"),
        )
        for one in found[:20]
    )
    return element("ul", *items, class_="cliffs") if found else Markup("")


def _clock(at_s: float, width_s: float) -> str:
    """Return a moment as an axis shows it: the time of day, or the date where the range is longer than a day."""
    text = humanize.moment(at_s)
    return text[11:16] if width_s <= DAY_S else text[:10]
