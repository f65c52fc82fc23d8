"""A scrollbar that is painted again only when it would look different: in a long list most moves leave it as it is."""

from __future__ import annotations

from math import ceil
from typing import Any, Self

from textual.geometry import Region
from textual.scrollbar import ScrollBar

EIGHTHS = 8
"""A thumb ends at eighths of a cell."""


class StillScrollBar(ScrollBar):
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
