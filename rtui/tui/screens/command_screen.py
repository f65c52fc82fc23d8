"""A screen whose commands are declared: it offers those that make sense, and has each carried out where it belongs."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import App
from textual.binding import Binding
from textual.getters import query_one
from textual.screen import Screen, ScreenResultType
from textual.widget import Widget

from rtui.tui.commands import BY_BINDING_ID, COMMANDS, Command, Scope, When, bindings
from rtui.tui.ink import INK_CLASSES
from rtui.tui.widgets.bars import FooterBar


def carried(*scopes: Scope) -> list[Binding]:
    """Return bindings for commands that something behind a screen carries out."""
    return [binding for scope in scopes for binding in bindings(scope, "carry('{}')")]


class CommandScreen(Screen[ScreenResultType]):
    """Keys, footer and palette lead to the same commands."""

    SCOPES: ClassVar[frozenset[Scope]] = frozenset()
    """Whose commands can be reached from here."""
    ESCAPE_TO_MINIMIZE = False
    BLANK = True
    COMPONENT_CLASSES: ClassVar[set[str]] = {*INK_CLASSES}

    footer_bar = query_one("#footer", FooterBar)

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
        """Carry out a command wherever it belongs."""
        carrier = self.carrier(command.scope)
        if isinstance(carrier, App | Widget):
            await carrier.run_action(command.id)
        else:
            getattr(carrier, command.id)()

    async def action_carry(self, binding_id: str) -> None:
        """Carry out the command with this id, whose key was pressed."""
        await self.carry_out(BY_BINDING_ID[binding_id])

    @on(FooterBar.Clicked)
    async def _footer_clicked(self, event: FooterBar.Clicked) -> None:
        await self.carry_out(event.command)
