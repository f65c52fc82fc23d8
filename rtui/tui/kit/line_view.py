"""Widgets that paint lines of spans: a fast view, a panel of given lines, one that is scrolled by keys, and rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from math import ceil
from typing import Any, ClassVar, Final, Self

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.cache import LRUCache
from textual.color import Color
from textual.filter import LineFilter
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBar
from textual.strip import Strip
from textual.widget import Widget

from rtui.tui.kit.styled_text import ROLE_CLASS_PREFIX, Line, Role, line_width


def set_content_height(view: ScrollView, lines: int) -> None:
    """Set how many lines a view scrolls over.

    Setting `virtual_size` alone would lay out every widget of the screen, ten times a second while a scan adds rows.
    That is not needed in a view whose scrollbar is always displayed, as that of `view` must be.
    """
    size = Size(view.scrollable_content_region.width, lines)
    if size != view.virtual_size:
        view.set_reactive(Widget.virtual_size, size)
        view._scroll_update(size)  # what Textual itself does at the end of a layout


EIGHTHS = 8
"""A scrollbar's thumb is drawn to an eighth of a cell."""


class QuietScrollBar(ScrollBar):
    """A scrollbar that is not repainted while its thumb stays where it is."""

    _shown: tuple[Any, ...] = ()

    def refresh(self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False) -> Self:
        """Repaint if the thumb has moved, to an eighth of a cell."""
        if repaint and not (regions or layout or recompose):
            cells, total, window = self.size.height, self.window_virtual_size, self.window_size
            shown: tuple[Any, ...] = cells, total, window, self.position, self.mouse_over, self.grabbed
            if self.vertical and cells and 0 < window < total:
                thumb = max(1.0, window * cells / total)
                start = int((cells - thumb) * self.position / (total - window) * EIGHTHS)
                shown = cells, start, ceil(thumb * EIGHTHS), self.mouse_over, self.grabbed
            if shown == self._shown:
                return self
            self._shown = shown
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._shown = ()


class PaintedView(ScrollView):
    """A view whose subclasses return a strip of the full width for each line from `render_line`; strips are kept.

    Textual has each widget under a changed region render all its lines, and for each line looks up styles of borders,
    padding and tints. A view without these returns its lines as they are, in half the time.
    """

    ALLOW_SELECT = False

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        self._frame: dict[int, Strip] = {}
        self._strips_key: tuple[Any, ...] = ()
        super().__init__(id=id, classes=classes)
        self._painter = Painter(self)

    @property
    def vertical_scrollbar(self) -> ScrollBar:
        """The scrollbar at the right, made on first use, as Textual does."""
        if self._vertical_scrollbar is None:
            bar = QuietScrollBar(vertical=True, name="vertical", thickness=self.scrollbar_size_vertical)
            bar.display = False
            self._vertical_scrollbar = bar
            self.app._start_widget(self, bar)
        return self._vertical_scrollbar

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the lines of a region; cached lines are not painted again."""
        self._painter.begin_frame()
        styles = self.styles
        if styles.gutter or styles.tint.a or self.opacity != 1:
            return super().render_lines(crop)
        background = self.background_colors[1]
        filters = self.get_line_filters()
        key = (self.size, background, *filters)
        if key != self._strips_key:
            self._frame.clear()
            self._strips_key = key
        strips = []
        for y in crop.line_range:
            strip = self._frame.get(y)
            if strip is None:
                strip = self._frame[y] = filtered(self.render_line(y), filters, background)
            strips.append(strip)
        if crop.column_span != (0, self.size.width):
            return [strip.crop(*crop.column_span) for strip in strips]
        return strips

    def _set_dirty(self, *regions: Region) -> None:
        """Drop the kept strips of these regions, or all; Textual calls this for every visible change of a widget."""
        super()._set_dirty(*regions)
        if not regions:
            self._frame.clear()
        for region in regions:
            for y in region.line_range:
                self._frame.pop(y, None)

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._frame.clear()
        self._painter.forget()


def filtered(strip: Strip, filters: Sequence[LineFilter], background: Color) -> Strip:
    """Return the filtered strip; the same object if the filters change nothing, since each has seven caches."""
    segments = before = list(strip)
    for line_filter in filters:
        segments = line_filter.apply(segments, background)
    return strip if segments == before else Strip(segments, strip.cell_length)


MakeLines = Callable[[int], Sequence[Line]]
"""Returns the lines of a panel for its width."""


class LinePanel(PaintedView):
    """Shows lines of spans; when they are replaced, only lines that differ are repainted, up to the last such cell."""

    DEFAULT_CSS = """
    LinePanel { overflow-x: hidden; overflow-y: hidden; scrollbar-size-vertical: 1; }
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.can_focus = False
        self.lines: tuple[Line, ...] = ()
        self._make: MakeLines | None = None

    def set_content(self, make: MakeLines) -> None:
        """Show the lines that `make` returns for the width of the panel, now and after each resize."""
        self._make = make
        self.on_resize()

    def on_resize(self) -> None:
        width = self.scrollable_content_region.width
        if width and self._make is not None:
            self.show(self._make(width))

    def show(self, lines: Sequence[Line]) -> None:
        before, after = self.lines, tuple(lines)
        if before == after:
            return
        self.lines = after
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
        width = self.size.width
        index = y + self.scroll_offset.y
        if not 0 <= index < len(self.lines):
            return Strip.blank(width, self._painter.plain)
        return self._painter.paint(self.lines[index], self._painter.plain, width=width)


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


_ON_HIGHLIGHTED_ROW: Final = {Role.FAINT: Role.MUTED, Role.TRACK: Role.TEXT}
"""Roles that are replaced on the row of the cursor or mouse, whose background is too bright for them."""

KEPT_STRIPS: Final = 256

KEPT_CHARACTERS: Final = 4096
"""Longer lines, in characters, are painted each time."""


class Painter:
    """Paints lines in the styles of a widget and of its screen's roles, which are looked up once until `forget`.

    Painted strips are kept, since most frames show old lines elsewhere; Textual keeps their rendered bytes with them.
    """

    def __init__(self, widget: Widget) -> None:
        self._widget = widget
        self._plain: Style | None = None
        self._styles: dict[tuple[Style, Role], Style] = {}
        self._strips: LRUCache[tuple[Line, Style, int], Strip] = LRUCache(KEPT_STRIPS)

    @property
    def plain(self) -> Style:
        """The style of the widget itself, looked up once a frame, since that goes through all its ancestors."""
        if self._plain is None:
            self._plain = self._widget.rich_style
        return self._plain

    def begin_frame(self) -> None:
        """Look the widget's own style up again: an ancestor's may have changed."""
        self._plain = None

    def forget(self) -> None:
        self._plain = None
        self._styles.clear()
        self._strips.clear()

    def paint(self, line: Line, base: Style, is_plain: bool = False, *, width: int) -> Strip:
        """Return the strip of a line: each span in its role's style over `base`, cut or padded to `width` cells.

        With `is_plain`, all spans are in the style of `base`.
        """
        key = (line, base, width)
        strip = self._strips.get(key)
        if strip is None:
            styles = [base if is_plain else self._style(base, span.role) for span in line]
            segments = [Segment(span.text, style) for span, style in zip(line, styles, strict=True) if span.text]
            missing = width - line_width(line)
            if missing > 0:
                segments.append(Segment(" " * missing, base))
            strip = Strip(Segment.simplify(segments), width)
            if missing < 0:
                strip = Strip(strip, width - missing).adjust_cell_length(width, base)
            if sum(len(span.text) for span in line) <= KEPT_CHARACTERS:
                self._strips[key] = strip
        return strip

    def _style(self, base: Style, role: Role) -> Style:
        if base.bgcolor != self.plain.bgcolor:
            role = _ON_HIGHLIGHTED_ROW.get(role, role)
        if role is Role.TEXT:
            return base
        style = self._styles.get((base, role))
        if style is None:
            role_style = self._widget.screen.get_component_rich_style(f"{ROLE_CLASS_PREFIX}{role}", partial=True)
            style = self._styles[base, role] = base + role_style
        return style


class RowsView(PaintedView):
    """Paints rows, one under the cursor and one under the mouse, and repaints changed rows."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"rows--cursor", "rows--cursor-blurred", "rows--hover"}
    DEFAULT_CSS = """
    RowsView {
        overflow-x: hidden;
        overflow-y: scroll;
        scrollbar-size-vertical: 1;
        & > .rows--cursor { background: $cursor; color: $cursor-ink; }
        & > .rows--cursor-blurred { background: $cursor-blurred; color: $cursor-blurred-ink; }
        & > .rows--hover { background: $hover; }
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.cursor_line = 0
        self._hover_line: int | None = None
        self._painted: dict[int, Line] = {}

    def line_at(self, number: int) -> Line | None:
        """Return the line of a row by its number; None beyond the last."""
        raise NotImplementedError

    @property
    def lines_in_view(self) -> list[Line]:
        """The lines of the rows on the screen, from the top; fewer than the height of the view at the end."""
        top = self.scroll_offset.y
        lines = map(self.line_at, range(top, top + self.size.height))
        return [line for line in lines if line is not None]

    def move_to(self, line: int) -> None:
        """Put the cursor on a row by its number, or on the first or last one, and bring it into view."""
        raise NotImplementedError

    def put_cursor(self, line: int) -> None:
        """Move the cursor from its line to this one, repaint both, and scroll the new one into view."""
        before, self.cursor_line = self.cursor_line, line
        self.refresh_line(before)
        self.refresh_line(line)
        self.scroll_to_region(Region(0, line, 1, 1), animate=False, force=True, x_axis=False, immediate=True)

    def scroll_top_to(self, line: int) -> None:
        """Scroll so that this row, or the first one, is the top one."""
        self.scroll_to(y=max(0, line), animate=False, force=True, immediate=True)

    def move_by(self, lines: int) -> None:
        self.move_to(self.cursor_line + lines)

    def action_cursor_up(self) -> None:
        self.move_by(-1)

    def action_cursor_down(self) -> None:
        self.move_by(1)

    def action_page_up(self) -> None:
        self.move_by(-max(1, self.size.height - 1))

    def action_page_down(self) -> None:
        self.move_by(max(1, self.size.height - 1))

    def action_first(self) -> None:
        self.move_to(0)

    def action_last(self) -> None:
        self.move_to(self.virtual_size.height - 1)

    def hover(self, number: int | None) -> None:
        before, self._hover_line = self._hover_line, number
        for line in {before, number} - {None}:
            self.refresh_line(line or 0)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        self.hover(event.y + self.scroll_offset.y)

    def on_leave(self) -> None:
        self.hover(None)

    def repaint_changes(self) -> None:
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
        width = self.size.width
        number = y + self.scroll_offset.y
        line = self.line_at(number)
        if line is None:
            self._painted.pop(y, None)
            return Strip.blank(width, self._painter.plain)
        self._painted[y] = line
        if number not in (self.cursor_line, self._hover_line):
            return self._painter.paint(line, self._painter.plain, width=width)
        blurred = "" if self.has_focus else "-blurred"
        name = f"rows--cursor{blurred}" if number == self.cursor_line else "rows--hover"
        style = self.get_component_rich_style(name, partial=True)
        return self._painter.paint(line, self._painter.plain + style, style.color is not None, width=width)

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._painted.clear()


class OpenRows(RowsView):
    """Rows of which Enter or a second click opens one."""

    class Opened(Message):
        """The row under the cursor is to be opened."""

    def action_open(self) -> None:
        self.post_message(self.Opened())

    def on_click(self, event: events.Click) -> None:
        line = event.y + self.scroll_offset.y
        if 0 <= line < self.virtual_size.height:
            self.move_to(line)
            if event.chain == 2:
                self.action_open()
