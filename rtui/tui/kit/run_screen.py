"""Screens of one run, an analysis or a search: pausing, ending and pacing it, what it has cost, writing its rows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from textual.screen import ScreenResultType

from rtui.keyspace.text.display import SafeText
from rtui.server.scan.run_control import RunControl
from rtui.tui.kit.command import Condition
from rtui.tui.kit.command_screen import CommandScreen
from rtui.tui.kit.table_rows import TableFileError


class RunScreen(CommandScreen[ScreenResultType]):
    """Has the actions that are the same whatever runs; `conditions` say whether it is under way or paused."""

    shows_cost = False
    """Whether the status bar shows what the run has cost the server."""

    @property
    def control(self) -> RunControl:
        """What pauses, stops and paces the run."""
        raise NotImplementedError

    def show_soon(self) -> None:
        """Show what a command has changed, without waiting for the next look."""
        raise NotImplementedError

    def action_pause(self) -> None:
        """Pause it, or resume it."""
        if Condition.PAUSED in self.conditions:
            self.control.resume()
        elif Condition.SCANNING in self.conditions:
            self.control.pause()
        self.show_soon()

    def action_stop(self) -> None:
        """End it; what was found stays."""
        self.control.stop()
        self.show_soon()

    def action_faster(self) -> None:
        """Take the next faster pace."""
        self.control.pace = self.control.pace.faster()
        self.show_soon()

    def action_slower(self) -> None:
        """Take the next slower pace."""
        self.control.pace = self.control.pace.slower()
        self.show_soon()

    def action_cost(self) -> None:
        """Show or hide what it has cost the server."""
        self.shows_cost = not self.shows_cost
        self.show_soon()

    async def write_file(self, write: Callable[[], SafeText]) -> None:
        """Write a file in a thread, and say in a notice what was written or why not.

        `write` returns what it has written, or raises TableFileError.
        """
        try:
            written = await asyncio.to_thread(write)
        except TableFileError as error:
            self.notify(error.reason, title="Not written", severity="error", markup=False)
        else:
            self.notify(written, title="Written", markup=False, timeout=4)
