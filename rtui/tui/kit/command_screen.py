"""A screen whose commands are declared: it offers those that make sense, and has each carried out where it belongs.

Keys, clicks, timers and workers may reach a screen before its widgets are there, while they are being removed, or when
another screen lies on top. `is_ready` and `is_reachable` say so; the application asks them before any action.
"""

from __future__ import annotations

from typing import Any, ClassVar

from textual import events, on
from textual.app import App, ScreenStackError
from textual.await_complete import AwaitComplete
from textual.binding import Binding
from textual.dom import DOMNode, NoScreen
from textual.screen import Screen, ScreenResultType
from textual.widget import Widget
from textual.worker import Worker, WorkerState

from rtui.tui.commands import BY_BINDING_ID, COMMANDS, Command, Scope, When, bindings
from rtui.tui.kit.bars import FooterBar
from rtui.tui.kit.notices import failure_notice
from rtui.tui.kit.styled_text import INK_CLASSES


def carried(*scopes: Scope) -> list[Binding]:
    """Return bindings for commands that something behind a screen carries out."""
    return [binding for scope in scopes for binding in bindings(scope, "carry('{}')")]


def is_ready(screen: Screen[Any]) -> bool:
    """Return whether the widgets of a screen are all there: mounted, and not being removed."""
    is_leaving = screen._pruning or screen._closing or screen._closed
    return not is_leaving and bool(screen.children) and all(child.is_mounted for child in screen.children)


def is_reachable(node: DOMNode) -> bool:
    """Return whether the user can act on a node: the application, or what belongs to the ready screen on top."""
    if isinstance(node, App):
        return True
    try:
        screen = node.screen
        is_on_top = screen.app.screen is screen
    except (NoScreen, ScreenStackError):
        return False
    return is_on_top and is_ready(screen) and not node._pruning


class FocusScreen(Screen[ScreenResultType]):
    """A screen on which one widget has the focus whenever no other has it."""

    @property
    def focus_home(self) -> Widget:
        """The widget that gets the focus when another loses it, such as one that is hidden."""
        raise NotImplementedError

    def watch_focused(self, focused: Widget | None) -> None:
        """Give the focus to `focus_home` when nothing has it, unless the whole terminal has lost it."""
        if focused is None and self.app.app_focus and is_ready(self):
            self.set_focus(self.focus_home)

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        """Leave the screen; nothing happens when it has been left already."""
        return super().dismiss(result) if is_reachable(self) else AwaitComplete()


class CommandScreen(FocusScreen[ScreenResultType]):
    """Keys, footer and palette lead to the same commands."""

    SCOPES: ClassVar[frozenset[Scope]] = frozenset()
    """Whose commands can be reached from here."""
    ESCAPE_TO_MINIMIZE = False
    BLANK = True
    COMPONENT_CLASSES: ClassVar[set[str]] = {*INK_CLASSES}

    def __init__(self) -> None:
        super().__init__()
        self.footer_bar = FooterBar(id="footer")

    def flush(self) -> None:
        """Show what has changed since the last look; nothing before the widgets are there and when they are gone."""
        if is_ready(self):
            self.show_changes()

    def show_changes(self) -> None:
        """Show what has changed since the last look."""
        raise NotImplementedError

    def holds(self) -> frozenset[When]:
        """Return what holds just now."""
        raise NotImplementedError

    def carrier(self, scope: Scope) -> object:
        """Return who carries out the commands of a scope: widgets and the app by actions, a desk by methods."""
        return self.app if scope is Scope.APP else self

    def offered(self) -> list[Command]:
        """Return the commands that make sense just now."""
        holds = self.holds()
        return [command for command in COMMANDS if command.scope in self.SCOPES and command.offered(holds)]

    async def carry_out(self, command: Command) -> None:
        """Carry out a command wherever it belongs; nothing when the user can't act on this screen."""
        if is_reachable(self):
            await self.perform(command)

    async def perform(self, command: Command) -> None:
        """Have a command carried out by who does that."""
        carrier = self.carrier(command.scope)
        if isinstance(carrier, App | Widget):
            await carrier.run_action(command.id)
        else:
            getattr(carrier, command.id)()

    async def action_carry(self, binding_id: str) -> None:
        """Carry out the command with this id, whose key was pressed."""
        await self.carry_out(BY_BINDING_ID[binding_id])

    def on_screen_resume(self) -> None:
        """Adapt to a terminal that was resized while another screen covered this one."""
        if self._size and self._size != self.app.size:
            self.post_message(events.Resize(self.app.size, self.app.size))

    def says(self, error: BaseException) -> bool:
        """Whether a failure of work is told in a message of its own; else the screen shows it anyway."""
        return True

    @on(Worker.StateChanged)
    def _work_failed(self, event: Worker.StateChanged) -> None:
        """Turn a failure of work into a message."""
        error = event.worker.error
        if event.state is WorkerState.ERROR and error is not None and self.says(error):
            self.notify(failure_notice(error), title=event.worker.description, severity="error", markup=False)

    @on(FooterBar.Clicked)
    async def _footer_clicked(self, event: FooterBar.Clicked) -> None:
        await self.carry_out(event.command)
