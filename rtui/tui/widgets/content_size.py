"""Tells a scrolling widget how large its content is without laying the whole screen out again."""

from __future__ import annotations

from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.widget import Widget


def set_content_height(view: ScrollView, lines: int) -> None:
    """Say how many lines a view scrolls over.

    Setting `virtual_size` lays out every widget of the screen, ten times a second while a scan adds rows. Nothing of
    that is needed where the scrollbar has its place whether it is needed or not, as it must have in `view`.
    """
    size = Size(view.scrollable_content_region.width, lines)
    if size != view.virtual_size:
        view.set_reactive(Widget.virtual_size, size)
        view._scroll_update(size)  # what Textual itself does at the end of a layout
