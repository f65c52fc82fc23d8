"""The tree and the details side by side; the border between them is moved with keys or the mouse."""

from __future__ import annotations

from typing import Final

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message
from textual.widget import Widget

from rtui.tui.kit.settings import NARROWEST_TREE, WIDEST_TREE

SIDE_BY_SIDE_CELLS: Final = 100
"""From this width on there is room for both; in narrower terminals one of them has all of it."""

DEFAULT_PERCENT: Final = 56
"""About the width of the tree unless the user chose another; the style sheet has the exact one."""


class Panes(Horizontal):
    """Holds panes that cover it, so that nothing of its own is painted."""

    BLANK = True

    class Divided(Message):
        """The user has given the tree another width, in percent."""

        def __init__(self, percent: int) -> None:
            super().__init__()
            self.percent = percent

    def __init__(self, left: Widget, right: Widget, percent: int | None, *, id: str | None = None) -> None:
        """`percent` is the width of the left one as the user chose it, None for what the style sheet says."""
        super().__init__(id=id)
        self.percent = percent
        self._left, self._right = left, right
        self._is_dragged = False

    def compose(self) -> ComposeResult:
        """Put them side by side."""
        yield self._left
        yield self._right

    @property
    def are_side_by_side(self) -> bool:
        """Whether both are shown."""
        return self.size.width >= SIDE_BY_SIDE_CELLS

    def widen(self, step: int) -> None:
        """Make the left pane so many percent wider."""
        if self.are_side_by_side:
            now = self.percent
            if now is None:
                now = round(100 * self._left.outer_size.width / self.size.width) if self.size.width else DEFAULT_PERCENT
            self._divide_at(now + step)
            self.post_message(self.Divided(self.percent or now))

    def _divide_at(self, percent: int) -> None:
        self.percent = max(NARROWEST_TREE, min(WIDEST_TREE, percent))
        self._divide()

    def _divide(self) -> None:
        """Give the panes their widths, or leave them to the style sheet."""
        for pane, percent in ((self._left, self.percent), (self._right, 100 - (self.percent or 0))):
            if self.percent is not None and self.are_side_by_side:
                pane.styles.width = f"{percent}%"
            else:
                pane.styles.clear_rule("width")

    def on_resize(self) -> None:
        """Divide another width."""
        self._divide()

    def _is_on_border(self, event: events.MouseEvent) -> bool:
        return self.are_side_by_side and self._right.display and event.screen_x == self._right.region.x

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Take hold of the border."""
        if self._is_on_border(event):
            self._is_dragged = True
            self.capture_mouse()
            event.stop()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Move the border with the mouse."""
        if self._is_dragged and self.size.width:
            self._divide_at(round(100 * (event.screen_x - self.region.x) / self.size.width))

    def on_mouse_up(self) -> None:
        """Let go of the border."""
        if self._is_dragged:
            self._is_dragged = False
            self.release_mouse()
            if self.percent is not None:
                self.post_message(self.Divided(self.percent))
