"""The schema as pictures: by names while a scan goes on, and after an analysis."""

from __future__ import annotations

from tests.snapshots.test_screens import MEDIUM, SCANNING, SMALL, Compare, app, doing
from tests.tui.analysed_session import analysed_session
from tests.tui.fixed_session import FixedSession


def test_after_an_analysis(snap_compare: Compare) -> None:
    run = doing("F", "home", "asterisk", "down", "down", "down")
    assert snap_compare(app(analysed_session()), terminal_size=MEDIUM, run_before=run)


def test_by_names_while_scanning(snap_compare: Compare) -> None:
    run = doing("F", "home", "asterisk", "down", "down", "tab")
    assert snap_compare(app(FixedSession(SCANNING)), terminal_size=SMALL, run_before=run)
