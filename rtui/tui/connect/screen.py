"""The first screen: shown while connecting, and with what to try when that fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.dom import DOMNode
from textual.message import Message

from rtui.keyspace.text.display import SafeText
from rtui.server.wire.errors import RtuiError
from rtui.tui.kit.bars import Bar
from rtui.tui.kit.command import APP_COMMANDS, Condition, Conditions, Group, Owner, ScreenCommand, bindings
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
)


class ConnectScreen(CommandScreen[None]):
    """Shows the server that is being connected to, then why that failed."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(CONNECT_COMMANDS, Owner.CONNECT)
    SCREEN_COMMANDS = (*CONNECT_COMMANDS, *APP_COMMANDS)

    class Retry(Message):
        """The user wants to try again."""

    def __init__(self, label: SafeText) -> None:
        super().__init__()
        self.title_bar = Bar(id="title")
        self.card = LinePanel(id="connect-card")
        self._label = label
        self._failed = False
        self._make: MakeLines | None = None

    def compose(self) -> ComposeResult:
        """Lay the parts out."""
        yield self.title_bar
        with Vertical(id="connect-body"):
            yield self.card
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

    def connecting(self) -> None:
        """Show that connecting is under way."""
        self._failed = False
        line: Line = (gap(1), Span(literal("Connecting to "), Role.MUTED), Span(self._label, Role.STRONG))
        self._show(lambda _width: [line])

    def show_error(self, error: RtuiError, *, is_final: bool) -> None:
        """Show why connecting failed and what to try; unless `is_final`, it is retried by itself."""
        self._failed = is_final

        def lines(width: int) -> list[Line]:
            role = Role.BAD if is_final else Role.WARN
            found: list[Line] = [(gap(1), Span(error.title, role)), (gap(1), Span(self._label, Role.STRONG))]
            found += [(), *prose(error.happened, width, Role.TEXT)]
            return [*found, (), *prose(error.remedy, width, Role.MUTED)] if error.remedy else found

        self._show(lines)

    def action_retry(self) -> None:
        """Try again."""
        if self._failed:
            self.connecting()
            self.post_message(self.Retry())

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
