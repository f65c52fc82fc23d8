"""The first screen: it paints at once, connects behind it, and says what to try when that fails."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.getters import query_one
from textual.message import Message
from textual.screen import Screen

from rtui.keyspace.display import SafeText
from rtui.tui.commands import Scope, When, bindings, footer_commands
from rtui.tui.ink import Line, Role, Span, gap, own
from rtui.tui.lines.facts_grid import prose
from rtui.tui.widgets.bars import Bar, FooterBar
from rtui.tui.widgets.line_panel import LinePanel

Connect = Callable[[], Coroutine[Any, Any, None]]
"""Connects; an error that is its user's to read is shown here."""


class ConnectScreen(Screen[None]):
    """Says whom it connects to, then why it could not."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Scope.CONNECT)]

    card = query_one("#connect-card", LinePanel)
    footer_bar = query_one("#footer", FooterBar)
    title_bar = query_one("#title", Bar)

    class Retry(Message):
        """The user wants to try again."""

    def __init__(self, label: SafeText) -> None:
        super().__init__()
        self._label = label
        self._failed = False

    def compose(self) -> ComposeResult:
        """Lay the parts out."""
        yield Bar(id="title")
        with Vertical(id="connect-body"):
            yield LinePanel(id="connect-card")
        yield FooterBar(id="footer")

    def on_mount(self) -> None:
        """Say whom it connects to."""
        self.title_bar.say(lambda _width: (Span(own(" rtui"), Role.BADGE), gap(2), Span(own("READ-ONLY"), Role.GOOD)))
        self.connecting()

    def connecting(self) -> None:
        """Say that it is under way."""
        self._failed = False
        self.card.set_class(False, "-failed")
        line: Line = (gap(1), Span(own("Connecting to "), Role.MUTED), Span(self._label, Role.STRONG))
        self._show([line])

    def failed(self, title: SafeText, happened: SafeText, remedy: SafeText) -> None:
        """Say what happened and what to try."""
        self._failed = True
        self.card.set_class(True, "-failed")
        width = max(20, min(76, self.size.width - 8))
        lines: list[Line] = [(gap(1), Span(title, Role.BAD)), (), (gap(1), Span(self._label, Role.STRONG))]
        lines += [(), *prose(happened, width, Role.TEXT)]
        if remedy:
            lines += [(), *prose(remedy, width, Role.MUTED)]
        self._show(lines)

    def action_retry(self) -> None:
        """Try again."""
        if self._failed:
            self.connecting()
            self.post_message(self.Retry())

    async def on_footer_bar_clicked(self, event: FooterBar.Clicked) -> None:
        """Carry a clicked command out."""
        target = self.app if event.command.scope is Scope.APP else self
        await target.run_action(event.command.id)

    def _show(self, lines: list[Line]) -> None:
        self.card.styles.height = len(lines) + 4
        self.card.show(lines)
        holds = frozenset({When.FAILED} if self._failed else ())
        self.footer_bar.offer(footer_commands((Scope.CONNECT, Scope.APP), holds))
