"""A scrolling view that paints its own lines and shows those again that nothing has touched."""

from __future__ import annotations

from typing import Any

from textual.geometry import Region
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBar
from textual.strip import Strip

from rtui.tui.widgets.painter import Painter
from rtui.tui.widgets.still_scrollbar import StillScrollBar


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
            bar = StillScrollBar(vertical=True, name="vertical", thickness=self.scrollbar_size_vertical)
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
