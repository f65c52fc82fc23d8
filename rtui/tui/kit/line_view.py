"""Tells a scrolling widget how large its content is without laying the whole screen out again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from math import ceil
from typing import Any, ClassVar, Self

from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBar
from textual.strip import Strip
from textual.widget import Widget

from rtui.tui.kit.painter import Painter
from rtui.tui.kit.styled_text import Line, line_width


def set_content_height(view: ScrollView, lines: int) -> None:
    """Say how many lines a view scrolls over.

    Setting `virtual_size` lays out every widget of the screen, ten times a second while a scan adds rows. Nothing of
    that is needed where the scrollbar has its place whether it is needed or not, as it must have in `view`.
    """
    size = Size(view.scrollable_content_region.width, lines)
    if size != view.virtual_size:
        view.set_reactive(Widget.virtual_size, size)
        view._scroll_update(size)  # what Textual itself does at the end of a layout


EIGHTHS = 8
"""A thumb ends at eighths of a cell."""


class QuietScrollBar(ScrollBar):
    """Asks for no repaint when its thumb stays where it is."""

    _shown: tuple[Any, ...] = ()

    def refresh(self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False) -> Self:
        """Repaint if there is anything to be seen of what has changed."""
        if repaint and not (regions or layout or recompose):
            look = self._look()
            if look == self._shown:
                return self
            self._shown = look
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    def notify_style_update(self) -> None:
        """Repaint in other colours."""
        super().notify_style_update()
        self._shown = ()

    def _look(self) -> tuple[Any, ...]:
        """Return what decides how it looks besides its colours: where the thumb is, to an eighth, and the mouse."""
        cells, total, window = self.size.height, self.window_virtual_size, self.window_size
        if not (self.vertical and cells and 0 < window < total):
            return cells, total, window, self.position, self.mouse_over, self.grabbed
        thumb = max(1.0, window * cells / total)
        start = int((cells - thumb) * self.position / (total - window) * EIGHTHS)
        return cells, start, ceil(thumb * EIGHTHS), self.mouse_over, self.grabbed


class PaintedView(ScrollView):
    """Its subclasses return a strip of the full width for each line, from `render_line`.

    Textual has every widget under a changed region give all its lines, and for each line asks the styles for borders,
    padding and tints first. A view that has none of these gives its lines as they are; a click through the tree paints
    in half the time.
    """

    ALLOW_SELECT = False

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        self._frame: dict[int, Strip] = {}
        self._look: tuple[Any, ...] = ()
        super().__init__(id=id, classes=classes)
        self._painter = Painter(self)

    @property
    def vertical_scrollbar(self) -> ScrollBar:
        """The scrollbar at the right, made when it is asked for, as Textual does it."""
        if self._vertical_scrollbar is None:
            bar = QuietScrollBar(vertical=True, name="vertical", thickness=self.scrollbar_size_vertical)
            bar.display = False
            self._vertical_scrollbar = bar
            self.app._start_widget(self, bar)
        return self._vertical_scrollbar

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the lines of a region, painting only those that are not there any more."""
        self._painter.begin_frame()
        if not self._is_bare:
            return super().render_lines(crop)
        background = self.background_colors[1]
        filters = self.get_line_filters()
        look = (self.size, background, *filters)
        if look != self._look:
            self._frame.clear()
            self._look = look
        strips = []
        for y in crop.line_range:
            strip = self._frame.get(y)
            if strip is None:
                strip = self.render_line(y)
                for line_filter in filters:
                    strip = strip.apply_filter(line_filter, background)
                self._frame[y] = strip
            strips.append(strip)
        if crop.column_span != (0, self.size.width):
            return [strip.crop(*crop.column_span) for strip in strips]
        return strips

    @property
    def _is_bare(self) -> bool:
        """Whether nothing has to be drawn around or over the lines."""
        styles = self.styles
        return not (styles.gutter or styles.tint.a) and self.opacity == 1

    def _set_dirty(self, *regions: Region) -> None:
        """Paint these lines anew, or all; this is where Textual hears of every change of a widget's look."""
        super()._set_dirty(*regions)
        if not regions:
            self._frame.clear()
        for region in regions:
            for y in region.line_range:
                self._frame.pop(y, None)

    def notify_style_update(self) -> None:
        """Paint anew what was painted in the old style."""
        super().notify_style_update()
        self._frame.clear()
        self._painter.forget()


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

    def set_content(self, make: MakeLines) -> None:
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


class ScrollingPanel(LinePanel):
    """Lines that are scrolled with the keyboard."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "scroll_up", show=False),
        Binding("down,j", "scroll_down", show=False),
        Binding("pageup,ctrl+b", "page_up", show=False),
        Binding("pagedown,ctrl+f,space", "page_down", show=False),
        Binding("home,g", "scroll_home", show=False),
        Binding("end,G", "scroll_end", show=False),
    ]
    DEFAULT_CSS = """
    ScrollingPanel { height: 1fr; overflow-y: scroll; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.can_focus = True


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
