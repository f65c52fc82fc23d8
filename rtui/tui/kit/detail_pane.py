"""Panes side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message

from rtui.keyspace.text.display import SafeText
from rtui.tui.kit.layout import tab_line
from rtui.tui.kit.line_view import LinePanel, MakeLines
from rtui.tui.kit.styled_text import Line


class Panes(Horizontal):
    """Holds panes that cover it, so that nothing of its own is painted."""

    BLANK = True


class DetailBody(LinePanel):
    """The part that scrolls; it takes the keyboard so that long values can be read."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "scroll_up", show=False),
        Binding("down,j", "scroll_down", show=False),
        Binding("pageup,ctrl+b", "page_up", show=False),
        Binding("pagedown,ctrl+f,space", "page_down", show=False),
        Binding("home,g", "scroll_home", show=False),
        Binding("end,G", "scroll_end", show=False),
    ]
    DEFAULT_CSS = """
    DetailBody { height: 1fr; overflow-y: scroll; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.can_focus = True


class DetailPane(Vertical):
    """Head, tabs and body; each is given as a function of the width and made anew when that changes."""

    DEFAULT_CSS = """
    DetailPane {
        & > #detail-head { height: 6; }
        & > #detail-tabs { height: 2; }
    }
    """

    class TabClicked(Message):
        """A tab was clicked."""

        def __init__(self, index: int) -> None:
            super().__init__()
            self.index = index

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._head = LinePanel(id="detail-head")
        self._tabs = LinePanel(id="detail-tabs")
        self.body = DetailBody(id="detail-body")
        self._titles: tuple[SafeText, ...] = ()

    def compose(self) -> ComposeResult:
        """Put the three parts under each other."""
        yield self._head
        yield self._tabs
        yield self.body

    def show_head(self, make: MakeLines) -> None:
        """Show these facts."""
        self._head.say(make)

    def show_tabs(self, titles: Sequence[SafeText], chosen: int, notes: Sequence[Line] = ()) -> None:
        """Show these tabs, one of them chosen, and beside them the first of the notes for which there is room."""
        self._titles = tuple(titles)
        self._tabs.say(lambda width: [(), tab_line(titles, chosen, notes, width)])

    def show_body(self, make: MakeLines, *, from_top: bool = True) -> None:
        """Show this body, from its first line unless it is the same thing anew."""
        if from_top:
            self.body.scroll_to(y=0, animate=False, force=True, immediate=True)
        self.body.say(make)

    def on_click(self, event: events.Click) -> None:
        """Choose the tab under the mouse."""
        if event.widget is not self._tabs or event.y != self._tabs.region.y - self.region.y:
            return
        x = 1
        for index, title in enumerate(self._titles):
            if x <= event.x - (self._tabs.region.x - self.region.x) < x + len(title) + 2:
                self.post_message(self.TabClicked(index))
            x += len(title) + 3
