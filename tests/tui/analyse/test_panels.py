"""What keys do in the panels with charts, and that nothing but an explicit yes starts a hot-key session."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rtui.analysis.report.document import Report
from rtui.server.guard.evidence import Consent
from rtui.server.hot.hotkeys import SessionRefusedError
from rtui.server.scan.progress import ScanState
from rtui.tui.analyse.expiry_panel import TimeRange
from rtui.tui.analyse.hot_panel import HotSessionScreen
from tests.made_report import made_report
from tests.tui.analyse.analysing import AnalyseUser, analysing
from tests.tui.analyse.fixed_analysis import FixedAnalysis


class SessionAnalysis(FixedAnalysis):
    """An analysis of a server that has hot-key sessions."""

    def __init__(self, report: Report, refusal: SessionRefusedError | None = None) -> None:
        super().__init__(report)
        self.put(report, ScanState.DONE)
        self.offers_hot_session = True
        self.refusal = refusal
        self.consents: list[Consent] = []
        self.reports_hot_keys = True

    async def ask_hot(self) -> None:
        self.asked.append("hot")

    async def start_hot_session(self, consent: Consent) -> None:
        self.consents.append(consent)
        if self.refusal is not None:
            raise self.refusal


def is_asking(user: AnalyseUser) -> bool:
    return isinstance(user.screen.app.screen, HotSessionScreen)


@pytest.mark.slow
async def test_a_session_begins_with_what_the_user_has_agreed_to() -> None:
    source = SessionAnalysis(made_report())
    async with analysing(source) as user:
        await user.press("4", "H")
        await user.until_shown("HOTKEYS START", "17 %", "1.6 %")
        await user.press("d", "s", "l", "y")
        await user.until(lambda: bool(source.consents))
        assert source.consents == [Consent(300, 10, discards_result=True)]
        await user.until_shown("Tracking hot keys")


async def test_the_hot_keys_grow_older_while_they_are_looked_at() -> None:
    source = FixedAnalysis(made_report())
    source.put(source.report, ScanState.DONE)
    async with analysing(source) as user:
        await user.press("4")
        await user.until_shown("4s old")
        source.status = replace(source.status, hot_since_s=60.0)
        user.screen.flush()
        await user.until_shown("1m 4s old")
        await user.press("2", "4")
        await user.until_shown("1m 4s old")


async def test_hot_keys_are_asked_for_again_only_while_they_are_shown() -> None:
    source = SessionAnalysis(made_report())
    async with analysing(source) as user:
        user.screen.flush()
        assert "hot" not in source.asked
        await user.press("4")
        user.screen.flush()
        await user.until(lambda: source.asked.count("hot") == 1)
        user.screen.flush()
        await user.pilot.pause()
        assert source.asked.count("hot") == 1


async def test_nothing_but_yes_starts_a_session() -> None:
    source = SessionAnalysis(made_report())
    async with analysing(source) as user:
        await user.press("4")
        for key in ("escape", "q", "n"):
            await user.press("H")
            await user.until(lambda: is_asking(user))
            await user.press("enter", "space", key)
            await user.until(lambda: not is_asking(user))
        assert source.consents == []


async def test_a_refused_session_is_told_and_costs_nothing_else() -> None:
    refusal = SessionRefusedError("No hot-key session", "A session runs; it is not rtui's to stop.")
    async with analysing(SessionAnalysis(made_report(), refusal)) as user:
        await user.press("4", "H", "y")
        await user.until_shown("No hot-key session", "not rtui's to stop")


@pytest.mark.slow
async def test_sessions_are_offered_only_where_there_are_any_and_not_while_a_pass_would_be_counted() -> None:
    async with analysing(FixedAnalysis(made_report())) as user:
        await user.press("4", "H")
        assert not is_asking(user)
    source = SessionAnalysis(made_report())
    source.put(made_report(), ScanState.RUNNING)
    async with analysing(source) as user:
        await user.press("4", "H")
        assert not is_asking(user)


async def test_time_ranges_timelines_and_slots_are_chosen_by_keys_by_the_table_and_by_mouse() -> None:
    async with analysing(FixedAnalysis(made_report())) as user:
        await user.press("5")
        await user.until_shown("coming expiries of shop:session")
        await user.press("right_square_bracket")
        await user.until_shown("coming expiries of all keys")
        await user.press("5")
        for time_range in (TimeRange.HOUR, TimeRange.DAY, TimeRange.WEEK, TimeRange.ALL, TimeRange.HOUR):
            await user.until_shown(f"[{time_range.title}]")
            await user.press("z")
        await user.press("6")
        await user.until_shown("slots 10,768–10,783")
        await user.press("shift+down", "shift+right")
        await user.until_shown("slots 11,808–11,823")
        await user.press("down")
        await user.until_shown("slots 6,880–6,895")
        await user.pilot.click("#chart", offset=(9, 1))
        await user.until_shown("slots 0–15")
        await user.press("6", "m")
        await user.until_shown("1.75 GiB in 16,384 slots")
        await user.press("N")
        await user.until_shown("[12]", "as a cluster of 12")
