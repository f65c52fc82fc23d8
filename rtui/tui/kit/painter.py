"""Paints lines in the styles of a widget, and knows again what it has painted: most frames show old lines elsewhere."""

from __future__ import annotations

from typing import Final

from rich.segment import Segment
from rich.style import Style
from textual.cache import LRUCache
from textual.strip import Strip
from textual.widget import Widget

from rtui.tui.kit.styled_text import ROLE_CLASS_PREFIX, Line, Role, line_width

_ON_A_LIT_ROW: Final = {Role.FAINT: Role.MUTED, Role.TRACK: Role.TEXT}
"""Over the background of the cursor or of the mouse faint text needs more ink, and a bar's track would be a hole."""

KEPT_STRIPS: Final = 256
"""So many painted lines are kept: a few screens of scrolling."""

KEPT_CHARACTERS: Final = 4096
"""Lines of more characters than this are painted anew each time."""


class Painter:
    """The styles of one widget and the inks of its screen, looked up once until they change; `forget` is called then.

    A strip that was painted before brings along what Textual has made of it, down to the bytes for the terminal.
    """

    def __init__(self, widget: Widget) -> None:
        self._widget = widget
        self._plain: Style | None = None
        self._inks: dict[tuple[Style, Role], Style] = {}
        self._strips: LRUCache[tuple[Line, Style, int], Strip] = LRUCache(KEPT_STRIPS)

    @property
    def plain(self) -> Style:
        """The style of the widget itself; it takes a walk through all above it, so once a frame is enough."""
        if self._plain is None:
            self._plain = self._widget.rich_style
        return self._plain

    def begin_frame(self) -> None:
        """Look at the widget's own style again: what lies under it may have changed."""
        self._plain = None

    def forget(self) -> None:
        """Look at all styles again."""
        self._plain = None
        self._inks.clear()
        self._strips.clear()

    def paint(self, line: Line, base: Style, is_plain: bool = False, *, width: int) -> Strip:
        """Return the strip of a line: each span in its role's style over `base`, cut or padded to `width` cells.

        With `is_plain`, all spans are in the style of `base`.
        """
        key = (line, base, width)
        strip = self._strips.get(key)
        if strip is None:
            styles = [base if is_plain else self._ink(base, span.role) for span in line]
            segments = [Segment(span.text, style) for span, style in zip(line, styles, strict=True) if span.text]
            strip = Strip(segments, line_width(line)).adjust_cell_length(width, base).simplify()
            if sum(len(span.text) for span in line) <= KEPT_CHARACTERS:
                self._strips[key] = strip
        return strip

    def _ink(self, base: Style, role: Role) -> Style:
        """Return how a role looks over `base`."""
        if base.bgcolor != self.plain.bgcolor:
            role = _ON_A_LIT_ROW.get(role, role)
        if role is Role.TEXT:
            return base
        style = self._inks.get((base, role))
        if style is None:
            ink = self._widget.screen.get_component_rich_style(f"{ROLE_CLASS_PREFIX}{role}", partial=True)
            style = self._inks[base, role] = base + ink
        return style
