"""The first screen: shown while connecting, and with what to try when that fails."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.dom import DOMNode
from textual.message import Message
from textual.widgets import Input

from rtui.analysis import humanize
from rtui.keyspace.text.display import SafeText
from rtui.server.wire.errors import ConnectFailure, FailureKind, KeyPassphraseError, RtuiError
from rtui.server.wire.secret import Secret
from rtui.tui.kit.bars import Bar
from rtui.tui.kit.command import (
    APP_COMMANDS,
    SERVERS_COMMAND,
    Condition,
    Conditions,
    Group,
    Owner,
    ScreenCommand,
    bindings,
)
from rtui.tui.kit.command_screen import CommandScreen
from rtui.tui.kit.layout import prose
from rtui.tui.kit.line_view import LinePanel, MakeLines
from rtui.tui.kit.styled_text import Line, Role, Span, gap, literal

CARD_CELLS: Final = 76
"""Width of the card where there is room."""

MIN_CARD_CELLS: Final = 24
FRAME_CELLS: Final = 6
"""What the card's border and padding take of its width."""


CONNECT_COMMANDS: Final = (
    ScreenCommand(
        "retry", ("enter", "r"), "Try again", "Connect again.", Group.APP, Owner.CONNECT, (Condition.FAILED,), footer=1
    ),
    replace(SERVERS_COMMAND, footer=2),
)


TICK_S: Final = 1.0
"""How often it is said how long connecting has taken."""

SLOW_S: Final = 2.0
"""It is said from then on."""


def connecting_line(label: SafeText, waited_s: float) -> Line:
    """Return what is being connected to, and for how long if that is long."""
    waited = f" · {humanize.duration(int(waited_s) * humanize.SECOND_MS)}" if waited_s >= SLOW_S else ""
    line: Line = (gap(1), Span(literal("Connecting to "), Role.MUTED), Span(label, Role.STRONG))
    return (*line, Span(SafeText(waited), Role.MUTED)) if waited else line


_WANTS_PASSWORD: Final = frozenset({FailureKind.NOAUTH, FailureKind.WRONGPASS})


class PasswordInput(Input):
    """A line for a password or passphrase, shown as dots and kept in memory only; Escape gives it up."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "give_up", show=False)]

    def __init__(self) -> None:
        super().__init__(password=True, id="password", compact=True)
        self.cursor_blink = False
        self.display = False
        self.is_of_key = False
        """Whether the passphrase of the client key is asked for."""

    def ask(self, *, of_key: bool) -> None:
        """Show the line, empty, for the password of the user or the passphrase of the key."""
        self.value, self.is_of_key, self.display = "", of_key, True
        self.placeholder = f"{'passphrase of the key' if of_key else 'password'}; it is kept in memory only"
        self.screen.set_focus(self)

    def action_give_up(self) -> None:
        """Hide the line, so that keys are commands again."""
        self.value = ""
        self.display = False
        if self.screen.focused is self:
            self.screen.set_focus(None)


class ConnectScreen(CommandScreen[None]):
    """Shows the server that is being connected to, then why that failed."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(CONNECT_COMMANDS, Owner.CONNECT, Owner.APP)
    SCREEN_COMMANDS = (*CONNECT_COMMANDS, *APP_COMMANDS)
    AUTO_FOCUS = ""

    class Retry(Message):
        """The user wants to try again, with the password, or the passphrase of the key, if one was typed."""

        def __init__(self, password: Secret | None = None, key_password: Secret | None = None) -> None:
            super().__init__()
            self.password, self.key_password = password, key_password

    def __init__(self, label: SafeText) -> None:
        super().__init__()
        self.title_bar = Bar(id="title")
        self.card = LinePanel(id="connect-card")
        self.password_input = PasswordInput()
        self._label = label
        self._failed = False
        self._make: MakeLines | None = None
        self._since_s: float | None = None
        """Since when connecting is under way, on the clock of the event loop; None once something else is shown."""

    def compose(self) -> ComposeResult:
        """Lay the parts out."""
        yield self.title_bar
        with Vertical(id="connect-body"):
            yield self.card
            yield self.password_input
        yield self.footer_bar

    @property
    def action_owners(self) -> Mapping[str, DOMNode]:
        """The screen itself."""
        return {Owner.CONNECT: self}

    @property
    def conditions(self) -> Conditions:
        """Whether connecting has failed."""
        return frozenset({Condition.FAILED} if self._failed else ())

    def on_mount(self) -> None:
        """Show the server."""
        self.title_bar.set_line(
            lambda _width: (Span(literal(" rtui"), Role.BADGE), gap(2), Span(literal("READ-ONLY"), Role.GOOD))
        )
        self.connecting()
        self.set_interval(TICK_S, self._tick)

    @property
    def has_failed(self) -> bool:
        """Whether connecting has failed for good."""
        return self._failed

    def connecting(self) -> None:
        """Show that connecting is under way."""
        self._failed = False
        self.password_input.action_give_up()
        self._since_s = asyncio.get_running_loop().time()
        self._show(lambda _width: [connecting_line(self._label, 0.0)])

    def _tick(self) -> None:
        """Say how long connecting has taken by now."""
        if self._since_s is not None and self.is_current:
            waited_s = asyncio.get_running_loop().time() - self._since_s
            self.card.set_content(lambda _width: [connecting_line(self._label, waited_s)])

    def show_error(self, error: RtuiError, *, is_final: bool) -> None:
        """Show why connecting failed and what to try; unless `is_final`, it is retried by itself."""
        self._failed = is_final
        self._since_s = None

        def lines(width: int) -> list[Line]:
            role = Role.BAD if is_final else Role.WARN
            found: list[Line] = [(gap(1), Span(error.title, role)), (gap(1), Span(self._label, Role.STRONG))]
            found += [(), *prose(error.happened, width, Role.TEXT)]
            return [*found, (), *prose(error.remedy, width, Role.MUTED)] if error.remedy else found

        self._show(lines)
        of_key = isinstance(error, KeyPassphraseError)
        self.password_input.display = False
        if is_final and (of_key or (isinstance(error, ConnectFailure) and error.kind in _WANTS_PASSWORD)):
            self.password_input.ask(of_key=of_key)

    def action_retry(self) -> None:
        """Try again."""
        if self._failed:
            self.connecting()
            self.post_message(self.Retry())

    @on(PasswordInput.Submitted)
    def _password_typed(self, event: PasswordInput.Submitted) -> None:
        """Try again with what was typed; nothing of it is kept on screen."""
        event.stop()
        typed, of_key = Secret(event.value), self.password_input.is_of_key
        self.password_input.value = ""
        self.connecting()
        self.post_message(self.Retry(key_password=typed) if of_key else self.Retry(typed))

    def on_resize(self) -> None:
        """Fit the card to the new width."""
        if self._make is not None:
            self._show(self._make)

    def _show(self, make: MakeLines) -> None:
        """Show lines in the card, which is as high as they need."""
        self._make = make
        width = max(MIN_CARD_CELLS, min(CARD_CELLS, self.size.width - 2))
        self.card.styles.width = width
        self.card.styles.height = len(make(width - FRAME_CELLS)) + 4
        self.card.set_class(self._failed, "-failed")
        self.card.set_content(make)
        self.footer_bar.show_commands(self.offered())
