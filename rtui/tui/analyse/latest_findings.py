"""What rules find in the report that is shown, looked for whenever there is a newer one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from textual.dom import DOMNode
from textual.worker import Worker

from rtui.analysis.findings.table import gone
from rtui.analysis.report.document import Report
from rtui.tui.kit.command_screen import Work

if TYPE_CHECKING:
    from rtui.analysis.findings.comparison import FindingsComparison
    from rtui.analysis.findings.finding import Finding, Found
    from rtui.registry.registry import Registry
    from rtui.registry.rules import RuleLevels


@dataclass(eq=False, slots=True)
class LatestFindings:
    """The findings of one Analyse screen. Looking takes up to 100 ms, so a thread does it."""

    levels: RuleLevels | None = None
    """Severities and parameters of rules; None for the defaults."""
    registry: Registry | None = None
    """What is written about the keys."""
    found: Found | None = None
    """None until rules have looked at a first report."""
    compared: FindingsComparison | None = None
    """What became of findings since the earlier report, if there is one."""
    revision: int = 0
    """Grows with each report that rules have looked at."""
    _listed: tuple[int, dict[str, Finding]] = (-1, {})
    _report: Report | None = None
    _before: Report | None = None
    _looking: Worker[None] | None = None

    @property
    def listed(self) -> dict[str, Finding]:
        """The findings that are shown, by what tells each from others, in their order; last those that are gone."""
        if self._listed[0] != self.revision or self.found is None:
            shown = {} if self.found is None else dict(zip(self.found.identities, self.found.findings, strict=True))
            self._listed = self.revision, shown | ({} if self.compared is None else gone(self.compared))
        return self._listed[1]

    def look(self, screen: DOMNode, report: Report, before: Report | None, then: Callable[[], None]) -> None:
        """Look at a report in a worker of `screen`, unless that was done, and call `then`.

        `before` is an earlier report to compare with.
        """
        if report is self._report and before is self._before:
            return
        self._report, self._before = report, before
        work: Work = partial(self._look, report, before, then)
        self._looking = screen.run_worker(
            work, group="findings", exclusive=True, exit_on_error=False, description="findings"
        )

    async def _look(self, report: Report, before: Report | None, then: Callable[[], None]) -> None:
        self.found, self.compared = await asyncio.to_thread(self._find, report, before)
        self.revision += 1
        then()

    def _find(self, report: Report, before: Report | None) -> tuple[Found, FindingsComparison | None]:
        from rtui.analysis.findings.comparison import compare_findings  # noqa: PLC0415 - when the panel is shown
        from rtui.analysis.findings.contents import findings, with_registry  # noqa: PLC0415

        found = with_registry(findings(report, self.levels, before), report, self.registry)
        return found, None if before is None else compare_findings(before, report, self.levels)
