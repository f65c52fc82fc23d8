"""A panel of painted lines that repaints only what changed, so that a slow link carries little."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest

from textual.geometry import Region
from textual.strip import Strip

from rtui.tui.ink import Line, line_width
from rtui.tui.widgets.content_size import set_content_height
from rtui.tui.widgets.painted_view import PaintedView

MakeLines = Callable[[int], Sequence[Line]]
"""Returns the lines of a panel for its width."""


class LinePanel(PaintedView):
    """Shows lines of spans; setting new ones repaints the lines that differ, up to their last differing cell."""

    DEFAULT_CSS = """
    LinePanel { overflow-x: hidden; overflow-y: hidden; scrollbar-size-vertical: 1; }
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.can_focus = False
        self._lines: tuple[Line, ...] = ()
        self._make: MakeLines | None = None

    @property
    def lines(self) -> tuple[Line, ...]:
        """The lines shown."""
        return self._lines

    def say(self, make: MakeLines) -> None:
        """Show the lines that `make` returns for the width of the panel, now and after each resize."""
        self._make = make
        self._remake()

    def on_resize(self) -> None:
        """Make the lines for the new width."""
        self._remake()

    def _remake(self) -> None:
        width = self.scrollable_content_region.width
        if width and self._make is not None:
            self.show(self._make(width))

    def show(self, lines: Sequence[Line]) -> None:
        """Show these lines instead, repainting what differs."""
        before, after = self._lines, tuple(lines)
        if before == after:
            return
        self._lines = after
        if self.styles.overflow_y != "hidden":
            set_content_height(self, len(after))
        top, height = self.scroll_offset.y, self.size.height
        changed = [
            Region(0, y - top, end, 1)
            for y, (old, new) in enumerate(zip_longest(before, after, fillvalue=()))
            if top <= y < top + height and (end := changed_until(old, new, self.size.width))
        ]
        if changed:
            self.refresh(*changed)

    def render_line(self, y: int) -> Strip:
        """Paint one line of the viewport."""
        width = self.size.width
        index = y + self.scroll_offset.y
        if not 0 <= index < len(self._lines):
            return Strip.blank(width, self._painter.plain)
        return self._painter.paint(self._lines[index], self._painter.plain, width=width)


def changed_until(old: Line, new: Line, width: int) -> int:
    """Return the column after the last cell in which two lines differ, 0 when they are equal."""
    if old == new:
        return 0
    old_width, new_width = line_width(old), line_width(new)
    if old_width != new_width:
        return min(width, max(old_width, new_width))
    end = new_width
    for before, after in zip(reversed(old), reversed(new), strict=False):
        if before != after:
            break
        end -= line_width((after,))
    return min(width, end)
