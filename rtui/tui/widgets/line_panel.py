"""A panel of painted lines that repaints only what changed, so that a slow link carries little."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.scroll_view import ScrollView
from textual.strip import Strip

from rtui.tui.ink import COMPONENT_PREFIX, INK_CLASSES, Line, Role, line_width
from rtui.tui.widgets.content_size import set_content_height


class LinePanel(ScrollView):
    """Shows lines of spans; setting new ones repaints the lines that differ, up to their last differing cell."""

    COMPONENT_CLASSES: ClassVar[set[str]] = set(INK_CLASSES)
    ALLOW_SELECT = False

    DEFAULT_CSS = """
    LinePanel { overflow-x: hidden; overflow-y: hidden; scrollbar-size-vertical: 1; }
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.can_focus = False
        self._lines: tuple[Line, ...] = ()

    @property
    def lines(self) -> tuple[Line, ...]:
        """The lines shown."""
        return self._lines

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
        base = self.rich_style
        if not 0 <= index < len(self._lines):
            return Strip.blank(width, base)
        return paint(self._lines[index], base, self.ink, width)

    def ink(self, role: Role) -> Style:
        """Return how a role looks in this widget."""
        return self.get_component_rich_style(f"{COMPONENT_PREFIX}{role}", partial=True)


def paint(line: Line, base: Style, ink: Callable[[Role], Style], width: int) -> Strip:
    """Return the strip of a line: each span in its role's style over `base`, cut or padded to `width` cells."""
    segments = [
        Segment(span.text, base if span.role is Role.TEXT else base + ink(span.role)) for span in line if span.text
    ]
    return Strip(segments, line_width(line)).adjust_cell_length(width, base).simplify()


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
