"""The help screen: every command with its keys, from the declarations."""

from __future__ import annotations

from itertools import groupby
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widget import Widget

from rtui.keyspace.display import SafeText
from rtui.tui.commands import COMMANDS, Group, Scope
from rtui.tui.ink import INK_CLASSES, Line, Role, Span, gap, left, line_width, own
from rtui.tui.lines.facts_grid import prose
from rtui.tui.screens.command_screen import FocusScreen
from rtui.tui.widgets.detail_pane import DetailBody

KEY_CELLS: Final = 14
"""Width of the column of keys."""

TITLE_CELLS: Final = 18
"""Width of the column of titles."""

LEGEND: Final = (
    own("1,204 is exact. ≥ 1,204 has been seen so far. ≈ 1.2k comes from a sample or is what the server estimates. "
        "– means that there is nothing, denied that the server does not tell."),
    own("What is copied is sent to the terminal (OSC 52), which does not say whether it puts it onto the clipboard. "
        "tmux does with set -g set-clipboard on, screen and macOS's own terminal never; w writes a table to a file."),
    own("rtui only reads. What it may send is a closed list: rtui commands prints it, rtui acl a user for it."),
)  # fmt: skip
"""What the marks mean, below the commands."""


class HelpScreen(ModalScreen[None], FocusScreen[None]):
    """Lists the commands; any of the usual keys closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark,f1", "dismiss", "Close", show=False)]
    COMPONENT_CLASSES: ClassVar[set[str]] = {*INK_CLASSES}

    def __init__(self) -> None:
        super().__init__()
        self.body = DetailBody(id="help-body")

    @property
    def focus_home(self) -> Widget:
        """The list."""
        return self.body

    def compose(self) -> ComposeResult:
        """Lay the list into a card."""
        with Vertical(id="help-card") as card:
            card.border_title = "Help"
            card.border_subtitle = "esc closes"
            yield self.body

    def on_mount(self) -> None:
        """Show the list."""
        self.body.say(help_lines)
        self.body.focus()


def help_lines(width: int) -> list[Line]:
    """Return all commands under their headings for a panel of this width."""
    shown = [command for command in COMMANDS if command.scope is not Scope.CONNECT]
    lines: list[Line] = []
    for group, commands in groupby(sorted(shown, key=lambda c: list(Group).index(c.group)), lambda c: c.group):
        lines += [(), (gap(1), Span(SafeText(group.value), Role.ACCENT))]
        for command in commands:
            head: Line = (
                gap(1),
                Span(left(SafeText(command.key_text or "–"), KEY_CELLS), Role.STRONG),
                Span(left(SafeText(command.title), TITLE_CELLS)),
            )
            lines += _described(head, SafeText(command.help), width)
    lines += [(), (gap(1), Span(own("Figures"), Role.ACCENT))]
    for sentence in LEGEND:
        lines += prose(sentence, width, Role.MUTED)
    return lines


def _described(head: Line, text: SafeText, width: int) -> list[Line]:
    """Return a command with its help beside it, or below it where it is narrow."""
    room = width - line_width(head) - 1
    if room < 24:
        return [head, *((gap(3), *line) for line in prose(text, width - 3, Role.MUTED))]
    first, *rest = prose(text, room + 2, Role.MUTED)
    indent = gap(line_width(head))
    return [(*head, *first[1:]), *((indent, *line[1:]) for line in rest)]
