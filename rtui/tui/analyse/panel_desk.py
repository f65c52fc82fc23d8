"""Carries out the commands that change what is chosen in a panel: its table, its measure, what its chart shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from rtui.analysis.report.document import Report
from rtui.tui.analyse.big_panel import next_preset
from rtui.tui.analyse.expiry_panel import next_horizon
from rtui.tui.analyse.panel import BY_LENGTH, HORIZON, NODES, PRESET, Area, Choices, Panel
from rtui.tui.analyse.slots_panel import CLUSTER_SIZES, imagines_cluster
from rtui.tui.kit.command import Condition, Conditions


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
    def chart_area(self) -> Area:
        """The cells of the chart over its table."""


class PanelDesk:
    """Makes other choices of those there are; `choose` takes them up."""

    def __init__(self, shows: Shows, choose: Callable[[Choices | None], bool]) -> None:
        self._shows = shows
        self._choose = choose

    @property
    def conditions(self) -> Conditions:
        """What holds of the panel just now."""
        panel, choices, report = self._shows.panel, self._shows.choices, self._shows.report
        if report is None:
            return frozenset()
        found = {
            Condition.SEVERAL_LISTS: len(panel.listings(report, choices)) > 1,
            Condition.ZOOMED: panel.step_out(report, choices) is not None,
            Condition.BY_LENGTH: BY_LENGTH in panel.switches,
            Condition.PRESET: PRESET in panel.switches,
            Condition.NODES: NODES in panel.switches and imagines_cluster(report),
            Condition.FIELD: panel.move is not None,
            Condition.HORIZON: HORIZON in panel.switches,
        }
        return frozenset(condition for condition, is_so in found.items() if is_so)

    def next_list(self) -> None:
        """Show the next table."""
        self._turn(1)

    def previous_list(self) -> None:
        """Show the table before."""
        self._turn(-1)

    def zoom_out(self) -> None:
        """Go to the namespace above."""
        report = self._shows.report
        if report is not None:
            self._choose(self._shows.panel.step_out(report, self._shows.choices))

    def measure(self) -> None:
        """List by bytes, or by length."""
        if BY_LENGTH in self._shows.panel.switches:
            choices = self._shows.choices
            self._choose(replace(choices, by_length=not choices.by_length, list_id="", subject=None))

    def preset(self) -> None:
        """Mark rows by the next thresholds."""
        report = self._shows.report
        if PRESET in self._shows.panel.switches and report is not None:
            self._choose(replace(self._shows.choices, preset=next_preset(report, self._shows.choices)))

    def nodes(self) -> None:
        """Imagine a cluster of another number of nodes."""
        if Condition.NODES in self.conditions:
            larger = [count for count in CLUSTER_SIZES if count > self._shows.choices.nodes]
            self._choose(replace(self._shows.choices, nodes=min(larger, default=CLUSTER_SIZES[0])))

    def weigh(self) -> None:
        """Draw bytes instead of keys, or keys again."""
        if self._shows.panel.move is not None:
            self._choose(replace(self._shows.choices, by_bytes=not self._shows.choices.by_bytes))

    def horizon(self) -> None:
        """Look further ahead."""
        if HORIZON in self._shows.panel.switches:
            self._choose(next_horizon(self._shows.choices))

    def _turn(self, step: int) -> None:
        report = self._shows.report
        if report is not None:
            self._choose(self._shows.panel.turned(report, self._shows.choices, step))

    def move_cell(self, columns: int, lines: int) -> None:
        """Move the cursor of the chart by so many columns and lines."""
        report, move = self._shows.report, self._shows.panel.move
        if report is not None and move is not None:
            self._choose(move(report, self._shows.choices, self._shows.chart_area, columns, lines))
