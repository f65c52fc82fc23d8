"""Bars of one line: the title, a warning, the status, the footer, tabs, and a line for typing.

The title names the server, its database or the panel, and shows the server's figures and the trouble it is in.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import ClassVar, Final

from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.reactive import Reactive
from textual.widgets import Input

from rtui.keyspace.text.display import SafeText
from rtui.server.browsing.status import BrowsingStatus
from rtui.server.health.session import Trouble
from rtui.tui.kit.command import Owner, ScreenCommand, footer_commands
from rtui.tui.kit.layout import display_text
from rtui.tui.kit.line_view import LinePanel
from rtui.tui.kit.status_lines import title_action_of
from rtui.tui.kit.styled_text import Line, Role, Span, clip, gap, line_width, literal

_BETWEEN: Final = 2

WAYS: Final = 90
"""From this place in the footer on there are the ways to all other commands, and out."""

OTHER_WAYS: Final = frozenset({"app.goto", "app.command_palette"})
"""Commands that the help replaces in a narrow footer."""


class Bar(LinePanel):
    """A line made for the width of the bar."""

    DEFAULT_CSS = """
    Bar { height: 1; background: $panel; }
    """

    def set_line(self, make: Callable[[int], Line]) -> None:
        """Show the line that `make` returns for the bar's width, now and after each resize."""
        self.set_content(lambda width: [make(width)])


class LinkedBar(Bar):
    """A bar with pieces that run actions when they are clicked."""

    def __init__(self, action_of: Callable[[Span], str | None], *, id: str | None = None) -> None:
        """`action_of` returns the action of a piece of the line as it is shown, None if the piece has none."""
        super().__init__(id=id)
        self._action_of = action_of

    async def on_click(self, event: events.Click) -> None:
        end = 0
        for span in self.lines[0] if self.lines else ():
            end += line_width((span,))
            if event.x < end:
                action = self._action_of(span)
                if action is not None:
                    await self.screen.run_action(action)
                return


class Banner(Bar):
    """A warning above everything else; displayed only while there is one. A click runs the recommended action."""

    DEFAULT_CSS = """
    Banner { display: none; background: $surface; }
    """

    def __init__(self, remedy: str) -> None:
        """`remedy` is the action that refreshes the outdated rows."""
        super().__init__(id="banner")
        self._remedy = remedy

    async def on_click(self) -> None:
        await self.screen.run_action(self._remedy)

    def show_warning(self, make: Callable[[int], Line] | None) -> bool:
        """Show this warning, or hide the banner for None; return whether the parts below have moved."""
        has_moved = self.display != (make is not None)
        if has_moved:
            self.display = make is not None
        if make is not None:
            self.set_line(make)
        return has_moved


class FooterBar(Bar):
    """The commands that make sense at the moment, with their keys; a click runs one."""

    def __init__(self) -> None:
        super().__init__(id="footer")
        self._commands: tuple[ScreenCommand, ...] = ()
        self._message: Line = ()
        self._first: Collection[Owner] = ()

    def show_commands(
        self, commands: Sequence[ScreenCommand], message: Line = (), first: Collection[Owner] = ()
    ) -> None:
        """Show the commands that have a place in the footer, or a message followed by the commands that still fit.

        Commands of the owners in `first` stand before all others, and stay when there is no room for others.
        """
        each = footer_commands(commands)
        shown = (*(one for one in each if one.owner in first), *(one for one in each if one.owner not in first))
        if (shown, message, first) != (self._commands, self._message, self._first):
            self._commands, self._message, self._first = shown, message, first
            self.set_line(self._line)

    async def on_click(self, event: events.Click) -> None:
        x = line_width(self._message) + (_BETWEEN if self._message else 1)
        for command, width in self._fitting(self.size.width - x):
            if x <= event.x < x + width:
                await self.screen.run_action(command.action)
                return
            x += width + _BETWEEN

    def _line(self, width: int) -> Line:
        head = (*self._message, gap(_BETWEEN)) if self._message else (gap(1),)
        spans: list[Span] = [*head]
        for command, _ in self._fitting(width - line_width(head)):
            spans += [
                Span(SafeText(command.first_key), Role.ACCENT),
                gap(1),
                Span(SafeText(command.title), Role.MUTED),
                gap(_BETWEEN),
            ]
        return tuple(spans) or (Span(literal("")),)

    def _fitting(self, width: int) -> list[tuple[ScreenCommand, int]]:
        """Return the commands that fit, with their widths; the ways to all other commands stay.

        Where some commands come first, only help and leaving stay before the last of them goes.
        """
        sized = [(command, len(command.first_key) + 1 + len(command.title)) for command in self._commands]
        while len(sized) > 1 and sum(size + _BETWEEN for _, size in sized) > width + _BETWEEN:
            own = [at for at, (one, _) in enumerate(sized) if one.footer < WAYS]
            others = [at for at in own if sized[at][0].owner not in self._first]
            ways = [at for at, (one, _) in enumerate(sized) if one.name in OTHER_WAYS] if self._first else []
            sized.pop((others or ways or own or [-1])[-1])
        return sized


class TabBar(Bar):
    """Titles of tabs, to be clicked; its line is made by `tab_line`. Notes beside them may be clicked, too."""

    DEFAULT_CSS = """
    TabBar { background: $background; }
    """

    def __init__(
        self, choose: Callable[[int], object], action_of: Callable[[Span], str | None] = lambda span: None, *, id: str
    ) -> None:
        """`choose` gets the number of a clicked title; `action_of` returns the action of a piece of a note."""
        super().__init__(id=id)
        self._choose, self._action_of = choose, action_of

    async def on_click(self, event: events.Click) -> None:
        x = index = 0
        for span in self.lines[event.y] if event.y < len(self.lines) else ():
            is_title = span.role in (Role.TAB, Role.TAB_ON)
            end = x + line_width((span,))
            if is_title and x <= event.x < end:
                self._choose(index)
                return
            if x <= event.x < end and (action := self._action_of(span)) is not None:
                await self.screen.run_action(action)
                return
            x, index = end, index + is_title


class InputLine(Input):
    """A line as wide as its place allows, whatever is typed: Textual's lays out the whole screen for each letter."""

    virtual_size: Reactive[Size] = Reactive(Size(0, 0))

    @property
    def is_open(self) -> bool:
        return self.has_class("-open")

    def open(self, value: str = "") -> None:
        """Show the line with a text to change, and take the keyboard at once: the next key is meant for the line."""
        self.value = value
        self.cursor_position = len(value)
        self.add_class("-open")
        self.screen.set_focus(self)

    def close(self) -> None:
        self.remove_class("-open")


class FilterInput(InputLine):
    """A line over the status bar; hidden until it is wanted."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("down,tab", "screen.leave_filter", show=False)]

    def __init__(self, placeholder: str, *, keys_hint: Line = (), id: str = "filter") -> None:
        """`keys_hint` stands in the footer while the line is typed."""
        super().__init__(placeholder=placeholder, id=id, compact=True, select_on_focus=False, max_length=512)
        self.cursor_blink = False
        self._keys_hint = keys_hint

    @property
    def keys_hint(self) -> Line:
        return self._keys_hint


class TitleBar(LinkedBar):
    """The first line of a screen; clicks lead to other servers and databases, and to the server's trouble."""

    def __init__(self) -> None:
        super().__init__(self._action_of, id="title")

    @property
    def server_status(self) -> BrowsingStatus | None:
        status: BrowsingStatus | None = getattr(self.app, "server_status", None)
        return status

    def set_line(self, make: Callable[[int], Line]) -> None:
        """Show a line in the width left by the server's trouble, which stands at the right."""
        status = self.server_status
        trouble = None if status is None else status.trouble
        if trouble is None:
            super().set_line(make)
        else:
            mark = trouble_line(trouble)
            super().set_line(lambda width: _with_mark(make, mark, width))

    @staticmethod
    def _action_of(span: Span) -> str | None:
        return "app.server" if span.text.startswith(MARK) else title_action_of(span)


MARK = literal("! ")
"""Stands before the server's trouble, and is the key that shows it."""


def trouble_line(trouble: Trouble) -> Line:
    """Return the worst trouble in a word, and the number of others: `! memory-near-limit +2`."""
    more = f" +{trouble.more:,}" if trouble.more else ""
    text = display_text(f"{MARK}{trouble.word}{more}")
    return Span(text, Role.BAD if trouble.is_error else Role.WARN), gap(1)


def _with_mark(make: Callable[[int], Line], mark: Line, width: int) -> Line:
    room = width - line_width(mark) - 1
    if room <= 0:
        return clip(mark, width)
    line = make(room)
    return (*line, gap(1 + room - line_width(line)), *mark)
