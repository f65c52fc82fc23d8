"""Starts a hot-key session on the server, once the user has agreed to it, and keeps what the panel says of it fresh."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

from textual.screen import Screen

from rtui.server.analysis_source import AnalysisSource, HotSessions
from rtui.server.guard.evidence import Consent
from rtui.server.hot.report import HOT_EVERY_S
from rtui.server.wire.connection import Online
from rtui.server.wire.errors import RtuiError
from rtui.tui.analyse.hot_session import HotSessionScreen
from rtui.tui.analyse.panel import HOT_SESSION, Panel
from rtui.tui.kit import format as fmt
from rtui.tui.kit.command import Condition, Conditions


class HotSessionDesk:
    """Asks, has the session started, and says what came of it."""

    def __init__(self, screen: Screen[Any], source: AnalysisSource, panel: Callable[[], Panel]) -> None:
        self._screen = screen
        self._panel = panel
        self._source = source
        self._asked_at_s = float("-inf")

    @property
    def offered(self) -> HotSessions | None:
        """Who would start a session, None where there is no such server."""
        source = self._source
        return source if isinstance(source, HotSessions) and source.offers_hot_session else None

    @property
    def conditions(self) -> Conditions:
        """What holds of sessions just now: none may be started while an analysis would be counted in it."""
        is_here = HOT_SESSION in self._panel().switches and self.offered is not None
        is_free = is_here and not self._source.status.is_under_way
        return frozenset({Condition.HOT_SESSION}) if is_free else frozenset()

    def watch(self) -> None:
        """Ask again now and then, while the panel is shown, which keys are hot: a session may have begun or ended."""
        source, now_s = self._source, asyncio.get_running_loop().time()
        if HOT_SESSION not in self._panel().switches or not isinstance(source, HotSessions):
            return
        status = source.status
        is_reachable = status.is_live and isinstance(status.link, Online) and not status.is_under_way
        is_due = source.report is not None and now_s - self._asked_at_s >= HOT_EVERY_S
        if is_reachable and is_due and source.reports_hot_keys:
            self._asked_at_s = now_s
            self._screen.run_worker(
                self._ask_again(source), group="hot keys", exclusive=True, exit_on_error=False, description="hot keys"
            )

    async def _ask_again(self, sessions: HotSessions) -> None:
        """Ask again; a lost connection is in the status bar, anything else comes again when every key is asked."""
        with contextlib.suppress(RtuiError):
            await sessions.ask_hot()

    def ask(self) -> None:
        """Ask the user."""
        if self.conditions:
            self._screen.app.push_screen(HotSessionScreen(), self._answered)

    def _answered(self, consent: Consent | None) -> None:
        offered = self.offered
        if consent is not None and offered is not None:
            self._screen.run_worker(
                self._start(offered, consent), group="hot session", exit_on_error=False, description="hot-key session"
            )

    async def _start(self, sessions: HotSessions, consent: Consent) -> None:
        """Have it started; a refusal is told and costs nothing else."""
        try:
            await sessions.start_hot_session(consent)
        except RtuiError as error:
            text = " ".join(filter(None, (error.happened, error.remedy)))
            self._screen.notify(text, title=error.title, severity="warning", markup=False, timeout=10)
        else:
            self._asked_at_s = float("-inf")
            self.watch()
            lasts = fmt.duration(consent.duration_s * fmt.SECOND_MS)
            text = f"It ends by itself in {lasts}; the panel shows what it finds."
            self._screen.notify(text, title="The server counts its hot keys", markup=False, timeout=10)
