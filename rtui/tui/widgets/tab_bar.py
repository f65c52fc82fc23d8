"""A line of titles to choose one from by a click."""

from __future__ import annotations

from textual import events
from textual.message import Message

from rtui.tui.ink import Role, line_width
from rtui.tui.widgets.bars import Bar


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
