"""The status bar of the tree: how the scan is doing, with the commands that pause and pace it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from rtui.keyspace.text.display import SafeText
from rtui.server.browsing.session import BrowsingSession
from rtui.server.scan.progress import ScanState
from rtui.server.wire.connection import Online
from rtui.tui.kit.bars import LinkedBar
from rtui.tui.kit.command import Owner
from rtui.tui.kit.status_lines import run_action_of, status_line
from rtui.tui.kit.styled_text import joined, literal


class StatusBar(LinkedBar):
    """Shows the figures of a session's scan and controls the scan."""

    def __init__(self, session: BrowsingSession, is_filling: Callable[[], bool] | None) -> None:
        """`is_filling` returns whether keys are still being added, as while the demo loads; None: they are not."""
        super().__init__(lambda span: run_action_of(span, Owner.SCAN), id="status")
        self._session = session
        self._is_filling = is_filling
        self._shows_cost = False
        self.watching = SafeText("")
        """What is watched; empty for nothing."""
        self.marked = 0
        """How many keys are marked."""

    def show_status(self) -> None:
        """Show how the scan is doing now."""
        status, now_s = self._session.status, asyncio.get_running_loop().time()
        note = literal("the demo is being loaded") if self._is_filling is not None else None
        marked = SafeText(f"{self.marked} marked" if self.marked else "")
        shows_cost, doing = self._shows_cost, joined([one for one in (marked, self.watching) if one])
        self.set_line(lambda width: status_line(status, now_s, width, shows_cost=shows_cost, note=note, doing=doing))

    @property
    def is_at_rest(self) -> bool:
        """Whether hardly anything can change by itself: only the server's own figures, now and then."""
        status = self._session.status
        is_over = status.progress.state.is_over or status.progress.state is ScanState.PAUSED
        return is_over and isinstance(status.link, Online) and self._is_filling is None

    def has_just_been_filled(self) -> bool:
        """Return True once, when the keys have all been added: what was scanned before is not everything."""
        if self._is_filling is None or self._is_filling():
            return False
        self._is_filling = None
        return True

    def action_pause(self) -> None:
        """Pause the scan, or go on with it."""
        control = self._session.control
        if self._session.status.progress.state is ScanState.PAUSED:
            control.resume()
        else:
            control.pause()
        self.show_status()

    def action_faster(self) -> None:
        """Take the next faster pace."""
        self._session.control.pace = self._session.control.pace.faster()
        self.show_status()

    def action_slower(self) -> None:
        """Take the next slower pace."""
        self._session.control.pace = self._session.control.pace.slower()
        self.show_status()

    def action_cost(self) -> None:
        """Show or hide what rtui has cost the server in total."""
        self._shows_cost = not self._shows_cost
        self.show_status()
