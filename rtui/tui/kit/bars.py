"""The one-line bars at the edges of the screen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from textual import events
from textual.message import Message

from rtui.keyspace.text.display import SafeText
from rtui.tui.kit.command import Command
from rtui.tui.kit.line_view import LinePanel
from rtui.tui.kit.styled_text import Line, Role, Span, gap, line_width, literal

_BETWEEN: Final = 2


class Bar(LinePanel):
    """One line."""

    DEFAULT_CSS = """
    Bar { height: 1; background: $panel; }
    """

    def set_line(self, make: Callable[[int], Line]) -> None:
        """Show the line that `make` returns for the bar's width, now and after each resize."""
        self.set_content(lambda width: [make(width)])


class Banner(Bar):
    """A warning about everything below it, there only while there is one."""

    DEFAULT_CSS = """
    Banner { display: none; background: $surface; }
    """

    def __init__(self) -> None:
        super().__init__(id="banner")

    def warn(self, make: Callable[[int], Line] | None) -> bool:
        """Show this warning, or none; returns whether the parts below have moved."""
        has_moved = self.display != (make is not None)
        if has_moved:
            self.display = make is not None
        if make is not None:
            self.set_line(make)
        return has_moved


class FooterBar(Bar):
    """The commands that make sense just now, with their keys; a click runs one."""

    class Clicked(Message):
        """A command was clicked."""

        def __init__(self, command: Command) -> None:
            super().__init__()
            self.command = command

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._commands: tuple[Command, ...] = ()
        self._message: Line = ()

    def offer(self, commands: Sequence[Command], message: Line = ()) -> None:
        """Show these commands, or a message with what is left of them behind it."""
        if (tuple(commands), message) != (self._commands, self._message):
            self._commands, self._message = tuple(commands), message
            self.set_line(self._line)

    def on_click(self, event: events.Click) -> None:
        """Run the command under the mouse."""
        x = line_width(self._message) + (_BETWEEN if self._message else 1)
        for command, width in self._fitting(self.size.width - x):
            if x <= event.x < x + width:
                self.post_message(self.Clicked(command))
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

    def _fitting(self, width: int) -> list[tuple[Command, int]]:
        """Return the commands that fit, with their widths; those that help to find the rest stay."""
        sized = [(command, len(command.first_key) + 1 + len(command.title)) for command in self._commands]
        while len(sized) > 1 and sum(size + _BETWEEN for _, size in sized) > width + _BETWEEN:
            droppable = [at for at, (command, _) in enumerate(sized) if command.footer < 90]
            sized.pop(droppable[-1] if droppable else -1)
        return sized


class TabBar(Bar):
    """Shows a line made by `tab_line`; each span that is a title can be clicked."""

    DEFAULT_CSS = """
    TabBar { background: $background; }
    """

    class Chosen(Message):
        """A title was clicked."""

        def __init__(self, bar: TabBar, index: int) -> None:
            super().__init__()
            self.bar = bar
            self.index = index

        @property
        def control(self) -> TabBar:
            """The bar, for handlers that are for one of several."""
            return self.bar

    def on_click(self, event: events.Click) -> None:
        """Choose the title under the mouse."""
        x = index = 0
        for span in self.lines[0] if self.lines else ():
            is_title = span.role in (Role.TAB, Role.TAB_ON)
            end = x + line_width((span,))
            if is_title and x <= event.x < end:
                self.post_message(self.Chosen(self, index))
                return
            x, index = end, index + is_title
