"""The hand-made reports by what is special in each."""

from __future__ import annotations

from typing import Final

from rtui.analysis.report.document import Report
from tests.made_report import denied_report, empty_report, estimate_report, made_report, partial_report

MADE: Final[dict[str, Report]] = {
    "exact": made_report(),
    "estimate": estimate_report(),
    "partial": partial_report(),
    "denied": denied_report(),
    "empty": empty_report(),
}
