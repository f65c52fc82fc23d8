"""Carries out the commands that are about an analysis as a whole: begin, pause, pace, end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from rtui.analysis.humanize import keys
from rtui.analysis.report.document import CoverageKind
from rtui.keyspace.text.display import SafeText
from rtui.server.analysis_source import AnalysisSource
from rtui.server.scan.progress import ScanState
from rtui.tui.kit.command import Condition, Conditions

KEEP: Final = SafeText("Keep them")
REPLACE: Final = SafeText("Replace them by an estimate from random keys")
"""What can be done where an estimate would take the place of exact figures."""


class AnalysisDesk:
    """Speaks with the source; `say` is called when something about it is to be shown.

    `ask` asks the user to choose one of some entries, under a title, and calls back with its number or None.
    """

    def __init__(
        self,
        source: AnalysisSource,
        say: Callable[[], None],
        ask: Callable[[SafeText, Sequence[SafeText], Callable[[int | None], None]], object],
    ) -> None:
        self._source = source
        self._ask = ask
        self._say = say
        self.shows_cost = False

    @property
    def conditions(self) -> Conditions:
        """What holds of the analysis just now."""
        status = self._source.status
        state = status.progress.state
        found = {
            Condition.LIVE: status.is_live,
            Condition.READY: status.is_live and not status.is_under_way,
            Condition.SCANNING: status.is_under_way and state is not ScanState.PAUSED,
            Condition.PAUSED: status.is_under_way and state is ScanState.PAUSED,
        }
        return frozenset(condition for condition, holds in found.items() if holds)

    def begin(self) -> None:
        """Ask every key."""
        if Condition.READY in self.conditions:
            self._source.begin()
            self._say()

    def estimate(self) -> None:
        """Ask a sample; where it would take the place of exact figures, only if the user says so."""
        if Condition.READY not in self.conditions:
            return
        report = self._source.report
        if report is not None and report.head.coverage.kind is CoverageKind.EXACT and report.head.coverage.keys:
            title = SafeText(f"The figures of {keys(report.head.coverage.keys)} are exact")
            self._ask(title, (KEEP, REPLACE), self._answered)
        else:
            self._estimate()

    def _answered(self, choice: int | None) -> None:
        if choice == 1 and Condition.READY in self.conditions:
            self._estimate()

    def _estimate(self) -> None:
        self._source.begin(estimate=True)
        self._say()

    def pause(self) -> None:
        """Pause, or go on."""
        if Condition.PAUSED in self.conditions:
            self._source.control.resume()
        elif Condition.SCANNING in self.conditions:
            self._source.control.pause()
        self._say()

    def stop(self) -> None:
        """End with what there is."""
        self._source.control.stop()
        self._say()

    def faster(self) -> None:
        """Take the next faster pace."""
        self._source.control.faster()
        self._say()

    def slower(self) -> None:
        """Take the next slower pace."""
        self._source.control.slower()
        self._say()

    def cost(self) -> None:
        """Show or hide what the server was asked for in all."""
        self.shows_cost = not self.shows_cost
        self._say()
