"""A view of rows, one under the cursor and one under the mouse; subclasses return the lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.style import Style
from textual import events
from textual.geometry import Region
from textual.strip import Strip

from rtui.tui.kit.line_view import PaintedView, changed_until
from rtui.tui.kit.styled_text import Line


class RowsView(PaintedView):
    """Paints rows, and repaints those that have changed."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"rows--cursor", "rows--cursor-blurred", "rows--hover"}
    DEFAULT_CSS = """
    RowsView {
        overflow-x: hidden;
        overflow-y: scroll;
        scrollbar-size-vertical: 1;
        & > .rows--cursor { background: $cursor; color: $cursor-ink; }
        & > .rows--cursor-blurred { background: $cursor-blurred; color: $cursor-ink; }
        & > .rows--hover { background: $hover; }
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._cursor_line = 0
        self._hover_line: int | None = None
        self._painted: dict[int, Line] = {}

    @property
    def cursor_line(self) -> int:
        """The number of the row under the cursor among all rows."""
        return self._cursor_line

    @property
    def lines_in_view(self) -> Sequence[Line]:
        """The lines of the rows on the screen, from the top; fewer than the height of the view at the end."""
        raise NotImplementedError

    def line_at(self, number: int) -> Line | None:
        """Return the line of a row, None where there is no such row."""
        raise NotImplementedError

    def hover(self, number: int | None) -> None:
        """Highlight a row, or none."""
        before, self._hover_line = self._hover_line, number
        for line in {before, number} - {None}:
            self.refresh_line(line or 0)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Highlight the row under the mouse."""
        self.hover(event.y + self.scroll_offset.y)

    def on_leave(self) -> None:
        """No row is under the mouse."""
        self.hover(None)

    def repaint_changes(self) -> None:
        """Repaint the lines in view that have changed, and only those."""
        width = self.scrollable_content_region.width
        now = dict(enumerate(self.lines_in_view))
        changed = [
            Region(0, y, end, 1)
            for y in range(self.size.height)
            if (end := changed_until(self._painted.get(y, ()), now.get(y, ()), width))
        ]
        if changed:
            self.refresh(*changed)

    def render_line(self, y: int) -> Strip:
        """Paint one line of the view."""
        width = self.size.width
        number = y + self.scroll_offset.y
        line = self.line_at(number)
        if line is None:
            self._painted.pop(y, None)
            return Strip.blank(width, self._painter.plain)
        self._painted[y] = line
        return self._painter.paint(line, *self._base(number), width=width)

    def notify_style_update(self) -> None:
        """Forget what was painted in the old style."""
        super().notify_style_update()
        self._painted.clear()

    def _base(self, number: int) -> tuple[Style, bool]:
        """Return the style under the text of a row, and whether it is the style of all its text."""
        if number == self._cursor_line:
            name = "rows--cursor" if self.has_focus else "rows--cursor-blurred"
        elif number == self._hover_line:
            name = "rows--hover"
        else:
            return self._painter.plain, False
        style = self.get_component_rich_style(name, partial=True)
        return self._painter.plain + style, style.color is not None
