"""Pages by scan cursor: a call may come back empty, and then the next one follows by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rtui.server.guard import Command
from rtui.server.preview.page import Page
from rtui.server.preview.replies import scan_page
from rtui.server.preview.source import Source
from rtui.server.reply import Reply

MAX_EMPTY_CALLS: Final = 10
"""How many empty answers in a row end a page all the same: a table right after a mass deletion is mostly holes."""


async def scanned(source: Source, page: Page, ask: Callable[[int], Command]) -> tuple[int, list[Reply]]:
    """Scan from the page's cursor until something is found; give the cursor behind it, 0 at the end, and what it is."""
    cursor = page.position if isinstance(page.position, int) else 0
    (reply,) = await source.begin(ask(cursor))
    cursor, found = scan_page(reply)
    for _ in range(MAX_EMPTY_CALLS - 1):
        if found or not cursor:
            break
        (reply,) = await source.more(ask(cursor))
        cursor, found = scan_page(reply)
    return cursor, found
