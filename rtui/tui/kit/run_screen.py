"""Screens of one run, an analysis or a search: pausing, ending and pacing it, what it has cost."""

from __future__ import annotations

from textual.screen import ScreenResultType

from rtui.server.scan.run_control import RunControl
from rtui.tui.kit.command import Condition
from rtui.tui.kit.command_screen import CommandScreen


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
