"""Analyses of test servers, from the connection to the report."""

from __future__ import annotations

from typing import Any

from rtui.analysis.report.document import Report
from rtui.server.analysis.run import AnalysisRun
from rtui.server.options import AnalysisOptions
from rtui.server.scan.pace import Pace
from rtui.server.wire.target import Target
from tests.server.targets import connected


async def report_on(target: Target, *, pace: Pace = Pace.FULL, **options: Any) -> Report:
    """Analyse once; `options` are those of the analysis."""
    async with connected(target) as connection:
        analysing = AnalysisRun(connection, AnalysisOptions(pace=pace, **options))
        await analysing.run()
    assert analysing.report is not None
    return analysing.report
