"""Says how the scan and the server are doing, and carries out the commands that are about them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from rtui.keyspace.text.display import SafeText
from rtui.server.scan.progress import ScanState
from rtui.server.wire.connection import Online
from rtui.tui.browse.session import Session
from rtui.tui.kit.bars import Bar
from rtui.tui.kit.status_lines import status_line, title_line
from rtui.tui.kit.styled_text import own


@dataclass(frozen=True, slots=True)
class Bars:
    """Where it is said."""

    title: Bar
    status: Bar


class ScanDesk:
    """Binds the session's figures to the bars at the edges."""

    def __init__(self, session: Session, label: SafeText | None, is_filling: Callable[[], bool] | None) -> None:
        """`label` stands for the server's own in the title; `is_filling` says whether somebody still adds keys."""
        self._session = session
        self._label = label
        self._is_filling = is_filling
        self._shows_cost = False
        self._bars: Bars | None = None

    def use(self, bars: Bars) -> None:
        """Say it in these bars."""
        self._bars = bars

    def say(self) -> None:
        """Say who the server is and how the scan is doing."""
        if self._bars is None:
            return
        status, now = self._session.status, asyncio.get_running_loop().time()
        note = own("the demo is being loaded") if self._is_filling is not None else None
        shows_cost, label = self._shows_cost, self._label
        self._bars.title.tell(lambda width: title_line(status, width, label))
        self._bars.status.tell(lambda width: status_line(status, now, width, shows_cost=shows_cost, note=note))

    @property
    def is_at_rest(self) -> bool:
        """Whether hardly anything can change by itself: only the server's own figures, now and then."""
        status = self._session.status
        is_over = status.progress.state.is_over or status.progress.state is ScanState.PAUSED
        return is_over and isinstance(status.link, Online) and self._is_filling is None

    def has_just_been_filled(self) -> bool:
        """Say, once, that whoever added keys is done: what was scanned before is not everything."""
        if self._is_filling is None or self._is_filling():
            return False
        self._is_filling = None
        return True

    def pause(self) -> None:
        """Hold the scan, or go on with it."""
        if self._session.status.progress.state is ScanState.PAUSED:
            self._session.control.resume()
        else:
            self._session.control.pause()
        self.say()

    def faster(self) -> None:
        """Take the next faster pace."""
        self._session.control.faster()
        self.say()

    def slower(self) -> None:
        """Take the next slower pace."""
        self._session.control.slower()
        self.say()

    def cost(self) -> None:
        """Show or hide what the server was asked for in all."""
        self._shows_cost = not self._shows_cost
        self.say()
