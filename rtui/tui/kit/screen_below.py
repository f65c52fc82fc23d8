"""The screen that shows through a translucent one, painted without tinting again what has not changed.

Textual tints every piece of that screen through Rich's console whenever any line of it changes, as the status does four
times a second while keys are scanned. Here each style is tinted once, and a line that is as before stays as it was
painted, with the bytes that Textual keeps with it.
"""

from __future__ import annotations

from typing import Any, Final

from rich.segment import Segment
from rich.style import Style as RichStyle
from textual.cache import LRUCache
from textual.color import Color
from textual.css.styles import RulesMap
from textual.renderables.background_screen import BackgroundScreen
from textual.screen import Screen
from textual.strip import Strip
from textual.style import Style
from textual.visual import RenderOptions, Visual

KEPT_STYLES: Final = 1024
"""How many tinted styles are kept: more than any screen has at a time."""


class ScreenBelow(Visual):
    """The lines of a screen under a tint, in the same colours as a `BackgroundScreen` of Textual's."""

    def __init__(self, screen: Screen[Any], tint: Color) -> None:
        self.screen = screen
        self.tint = tint
        self._base: RichStyle | None = None
        """The style in which what has no colour is painted."""
        self._styles: LRUCache[RichStyle | None, RichStyle] = LRUCache(KEPT_STYLES)
        self._lines: list[tuple[list[Segment], Strip]] = []
        """Each line of the screen as it was, and as it was painted."""

    def render_strips(self, width: int, height: int | None, style: Style, options: RenderOptions) -> list[Strip]:
        """Return the lines of the screen, tinted."""
        base = style.rich_style
        if base != self._base:
            self._base = base
            self._styles.clear()
            self._lines.clear()
        below = [list(strip) for strip in self.screen._compositor.render_strips()[:height]]
        before = self._lines + [([], Strip([]))] * (len(below) - len(self._lines))
        self._lines = [
            old if old[0] == line else (line, Strip(self._tinted(line, base)).adjust_cell_length(width, base))
            for line, old in zip(below, before, strict=False)
        ]
        return [strip for _, strip in self._lines]

    def _tinted(self, line: list[Segment], base: RichStyle) -> list[Segment]:
        tinted = []
        for text, style, _ in line:
            found = self._styles.get(style)
            if found is None:
                (segment,) = BackgroundScreen.process_segments([Segment(text, style)], self.tint)
                found = self._styles[style] = base + segment.style
            tinted.append(Segment(text, found))
        return tinted

    def get_optimal_width(self, rules: RulesMap, container_width: int) -> int:
        """Return the width of the container."""
        return container_width

    def get_height(self, rules: RulesMap, width: int) -> int:
        """Return the height of the screen."""
        return self.screen.size.height
