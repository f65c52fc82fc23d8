"""The schema as pictures: by names while a scan goes on, and after an analysis."""

from __future__ import annotations

import pytest

from tests.snapshots.test_screens import MEDIUM, SCANNING, SMALL, Compare, app, doing
from tests.tui.analysed_session import analysed_session
from tests.tui.fixed_session import FixedSession


@pytest.mark.parametrize("size", [SMALL, MEDIUM], ids=["80x24", "120x36"])
def test_after_an_analysis(snap_compare: Compare, size: tuple[int, int]) -> None:
    run = doing("F", "home", "asterisk", "down", "down", "down")
    assert snap_compare(app(analysed_session()), terminal_size=size, run_before=run)


@pytest.mark.parametrize("size", [SMALL, MEDIUM], ids=["80x24", "120x36"])
def test_by_names_while_scanning(snap_compare: Compare, size: tuple[int, int]) -> None:
    run = doing("F", "home", "asterisk", "down", "down", *(["tab"] if size == SMALL else []))
    assert snap_compare(app(FixedSession(SCANNING)), terminal_size=size, run_before=run)
