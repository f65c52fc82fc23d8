"""Turning all pages of a preview."""

from __future__ import annotations

from rtui.server.facts.key_facts import key_facts, key_preview
from rtui.server.facts.preview.page import Preview, PreviewRow
from rtui.server.wire.capability import Capabilities
from rtui.server.wire.connection import Connection

MOST_PAGES = 2_000
"""Where a walk that does not end is given up."""


async def looked_at(connection: Connection, key: bytes, capabilities: Capabilities | None = None) -> Preview:
    """The first page of a key."""
    return await key_preview(connection, await key_facts(connection, key, capabilities), capabilities=capabilities)


async def all_pages(connection: Connection, key: bytes, *, window_bytes: int = 4096) -> list[Preview]:
    """Every page from the first to the last."""
    capabilities = Capabilities()
    facts = await key_facts(connection, key, capabilities)
    pages: list[Preview] = []
    page = None
    for _ in range(MOST_PAGES):
        shown = await key_preview(connection, facts, page, capabilities=capabilities, window_bytes=window_bytes)
        pages.append(shown)
        page = shown.next_page
        if page is None:
            return pages
    raise AssertionError(f"more than {MOST_PAGES} pages")


async def all_rows(connection: Connection, key: bytes) -> list[PreviewRow]:
    """The rows of every page; of a random sample that comes before the pages, none."""
    pages = await all_pages(connection, key)
    following = pages[0].next_page
    if following is not None and following.whole_values:
        pages = pages[1:]
    return [row for page in pages for row in page.rows]
