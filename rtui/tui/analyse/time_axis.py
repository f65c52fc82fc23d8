"""The time axis of the expiry timeline: how far it reaches, and columns of equal time that begin at round times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from enum import Enum
from typing import Final

from rtui.analysis.report.document import ExpiryBin
from rtui.analysis.report.members import DAY_S, HOUR_S, MINUTE_S
from rtui.keyspace.text.display import SafeText
from rtui.tui.kit.styled_text import literal

WEEK_S: Final = 7 * DAY_S


class TimeRange(Enum):
    """How far ahead the timeline reaches, in seconds; 0 for up to the last expiry."""

    HOUR = HOUR_S
    DAY = DAY_S
    WEEK = WEEK_S
    ALL = 0

    @property
    def title(self) -> SafeText:
        """Its name on the screen."""
        return _TITLES[self]


_TITLES: Final = {
    TimeRange.HOUR: literal("next hour"),
    TimeRange.DAY: literal("next day"),
    TimeRange.WEEK: literal("next week"),
    TimeRange.ALL: literal("all"),
}

_STEPS_S: Final = (
    *(MINUTE_S * minutes for minutes in (1, 2, 5, 10, 15, 30)),
    *(HOUR_S * hours for hours in (1, 2, 3, 6, 12)),
    *(DAY_S * days for days in (1, 2, 7, 14, 28, 91, 182, 364, 3640, 36_400, 364_000)),
)
"""Lengths of a column: divisors of an hour or a day, or whole days, so that columns begin at round times."""

_TICKS_S: Final = (*_STEPS_S, 3_640_000 * DAY_S)


@dataclass(frozen=True, slots=True)
class Axis:
    """Columns of equal time, spread over the cells of a line."""

    start_s: float
    """Seconds since the epoch."""
    step_s: int
    columns: int
    cells: int
    """At least as many as columns."""

    @property
    def end_s(self) -> float:
        """The end of the last column, in seconds since the epoch."""
        return self.start_s + self.step_s * self.columns

    def cell_of(self, moment_s: float) -> int:
        """Return the first cell of the column of a moment; it may lie outside of the axis."""
        column = int((moment_s - self.start_s) // self.step_s)
        return -(-column * self.cells // self.columns)

    def column_of(self, cell: int) -> int:
        """Return the column that a cell belongs to."""
        return cell * self.columns // self.cells


def axis_for(time_range: TimeRange, bins: Sequence[ExpiryBin], now_s: float, cells: int, zone: tzinfo | None) -> Axis:
    """Return the axis for so many cells; columns begin at round times of the zone, None for the local one."""
    offset = offset_s(now_s, zone)
    reach = time_range.value or max([bins[-1].start_s + bins[-1].width_s - now_s if bins else 0.0, float(HOUR_S)])
    step = next((step for step in _STEPS_S if reach / step + 1 <= cells), _STEPS_S[-1])
    start = (now_s + offset) // step * step - offset
    columns = max(1, min(cells, int(-(-(now_s + reach - start) // step))))
    return Axis(start, step, columns, cells)


def offset_s(moment_s: float, zone: tzinfo | None) -> float:
    """Return the offset of a zone from UTC at a moment, in seconds."""
    try:
        ahead = datetime.fromtimestamp(moment_s, UTC).astimezone(zone).utcoffset()
    except (OverflowError, ValueError, OSError):
        return 0.0
    return ahead.total_seconds() if ahead is not None else 0.0


def zone_name(moment_s: float, zone: tzinfo | None) -> SafeText:
    """Return the name of a zone: `UTC`, `UTC+2`."""
    offset = offset_s(moment_s, zone)
    if not offset:
        return literal("UTC")
    hours, minutes = divmod(round(abs(offset)) // MINUTE_S, 60)
    sign = "+" if offset > 0 else "-"
    return SafeText(f"UTC{sign}{hours}" + (f":{minutes:02}" if minutes else ""))


def ticks(axis: Axis, zone: tzinfo | None, cells_apart: int) -> list[tuple[int, SafeText]]:
    """Return (cell, text) of round moments along the axis, at least `cells_apart` apart."""
    apart = axis.step_s * axis.columns * cells_apart / axis.cells
    step = next((step for step in _TICKS_S if step >= apart), _TICKS_S[-1])
    offset = offset_s(axis.start_s, zone)
    first = -(-(axis.start_s + offset) // step) * step - offset
    moments = (first + step * number for number in range(axis.cells // cells_apart + 2))
    return [(axis.cell_of(moment), tick_text(moment, zone, step)) for moment in moments if moment < axis.end_s]


def tick_text(moment_s: float, zone: tzinfo | None, step_s: float) -> SafeText:
    """Return a moment as text for an axis: `14:30`, at midnight and for days `22 Sep`, for years `Sep 2031`."""
    if step_s >= 364 * DAY_S:
        return _formatted(moment_s, zone, "%b %Y")
    is_midnight = (moment_s + offset_s(moment_s, zone)) % DAY_S == 0
    return _formatted(moment_s, zone, "%d %b" if is_midnight or step_s >= DAY_S else "%H:%M")


def clock(moment_s: float, zone: tzinfo | None) -> SafeText:
    """Return the time of day: `14:30`."""
    return _formatted(moment_s, zone, "%H:%M")


def day_and_clock(moment_s: float, zone: tzinfo | None) -> SafeText:
    """Return a moment with its day: `22 Sep 14:30`."""
    return _formatted(moment_s, zone, "%d %b %H:%M")


def _formatted(moment_s: float, zone: tzinfo | None, form: str) -> SafeText:
    try:
        return SafeText(datetime.fromtimestamp(moment_s, zone).strftime(form))
    except (OverflowError, ValueError, OSError):
        return literal("far future")
