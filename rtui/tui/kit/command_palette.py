"""The command palette: the declared commands that make sense just now, found by name."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from textual import on
from textual.command import CommandInput, CommandList, CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.widget import Widget
from textual.worker import Worker, WorkerState

from rtui.tui.kit.command import Command
from rtui.tui.kit.command_screen import CommandScreen, FocusScreen, is_ready

Run = Callable[[], Coroutine[Any, Any, None]]


class PaletteScreen(CommandPalette, FocusScreen[None]):
    """Textual's palette; several clicks beside it close it once, and not the screen below too."""

    @property
    def focus_home(self) -> Widget:
        """The line that is typed."""
        return self.query_one(CommandInput)

    def run_worker(self, *args: Any, **options: Any) -> Worker[Any]:
        """Start a worker whose failure is handled here."""
        return super().run_worker(*args, **options | {"exit_on_error": False})

    @on(Worker.StateChanged)
    def _search_ended(self, event: Worker.StateChanged) -> None:
        """Raise what a search failed with, unless the palette has been left: then it finds no list to fill."""
        error = event.worker.error
        if event.state is WorkerState.ERROR and error is not None and is_ready(self):
            raise error

    def _action_command_list(self, action: str) -> None:
        """Move in the list, where there is any room for it: Textual's fails where there is none."""
        if self.query_one(CommandList).scrollable_content_region.area:
            super()._action_command_list(action)


class CommandProvider(Provider):
    """Offers the commands of the screen below."""

    async def discover(self) -> Hits:
        """Offer everything, in the order of the help screen."""
        for command, run in self._commands():
            yield DiscoveryHit(_title(command), run, text=command.title, help=command.help)

    async def search(self, query: str) -> Hits:
        """Offer what matches, by title or by help."""
        matcher = self.matcher(query)
        for command, run in self._commands():
            score = max(matcher.match(command.title), 0.5 * matcher.match(command.help))
            if score > 0:
                yield Hit(score, _title(command), run, text=command.title, help=command.help)

    def _commands(self) -> list[tuple[Command, Run]]:
        screen = self.screen
        if not isinstance(screen, CommandScreen):
            return []
        return [(command, partial(screen.run_action, command.action)) for command in screen.offered()]


def _title(command: Command) -> Content:
    """Return a title with its keys."""
    keys = f"  {command.key_text}" if command.keys else ""
    return Content(f"{command.title}{keys}")
