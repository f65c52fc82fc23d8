"""Carries out the commands that change what the chart of a panel shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from rtui.analysis.report import Report
from rtui.tui.command import When
from rtui.tui.lines.analyse.expiry import next_horizon
from rtui.tui.panel import HORIZON, Area, Choices, Panel
from rtui.tui.widgets.chart import Chart


class Shows(Protocol):
    """What a screen of panels shows just now."""

    @property
    def panel(self) -> Panel:
        """The panel."""

    @property
    def choices(self) -> Choices:
        """What is chosen in it."""

    @property
    def report(self) -> Report | None:
        """The report, None while there is nothing to show."""

    @property
    def chart(self) -> Chart:
        """The chart over its table."""


class ChartDesk:
    """Moves the cursor of a chart and switches what it draws; `choose` takes the outcome up."""

    def __init__(self, shows: Shows, choose: Callable[[Choices | None], bool]) -> None:
        self._shows = shows
        self._choose = choose

    def holds(self) -> frozenset[When]:
        """Return what holds of the chart just now."""
        panel = self._shows.panel
        found = {When.FIELD: panel.move is not None, When.HORIZON: HORIZON in panel.switches}
        return frozenset(condition for condition, is_so in found.items() if is_so)

    def weigh(self) -> None:
        """Draw bytes instead of keys, or keys again."""
        if self._shows.panel.move is not None:
            self._choose(replace(self._shows.choices, by_bytes=not self._shows.choices.by_bytes))

    def horizon(self) -> None:
        """Look further ahead."""
        if HORIZON in self._shows.panel.switches:
            self._choose(next_horizon(self._shows.choices))

    def cell_left(self) -> None:
        """Move the cursor to the left."""
        self._move(-1, 0)

    def cell_right(self) -> None:
        """Move the cursor to the right."""
        self._move(1, 0)

    def cell_up(self) -> None:
        """Move the cursor up."""
        self._move(0, -1)

    def cell_down(self) -> None:
        """Move the cursor down."""
        self._move(0, 1)

    def _move(self, columns: int, lines: int) -> None:
        report, move = self._shows.report, self._shows.panel.move
        if report is not None and move is not None:
            size = self._shows.chart.size
            self._choose(move(report, self._shows.choices, Area(size.width, size.height), columns, lines))
