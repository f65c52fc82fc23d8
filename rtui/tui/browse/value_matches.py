"""What is found inside a value: pages that are read one after the other until there is a page of matches."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Final

from rtui.analysis.facts import KeyFacts
from rtui.keyspace.types import STRING
from rtui.server.browsing.session import BrowsingSession
from rtui.server.facts.preview.page import Preview

MOST_FOUND: Final = 100
"""A page of what was found ends with so many matches,"""

MOST_LOOKED_AT: Final = 100_000
"""or when so many elements were looked at,"""

MOST_BYTES_LOOKED_AT: Final = 16 << 20
"""in a string so many bytes."""


def is_enough(found: Preview) -> bool:
    """Return whether what was found so far is shown as a page, and the next one is fetched only when it is wanted."""
    count = len(found.rows) if found.elements is None else found.elements
    most = MOST_LOOKED_AT if found.type != STRING.name else MOST_BYTES_LOOKED_AT
    return count >= MOST_FOUND or found.looked_at >= most or found.refusal is not None


def with_more(found: Preview, more: Preview) -> Preview:
    """Return what was found so far with what was found behind it; the page stays the first one."""
    elements = None if found.elements is None else found.elements + (more.elements or 0)
    wide = found if len(found.columns) >= len(more.columns) else more
    rows = (*found.rows, *more.rows)
    if found.columns != more.columns:
        rows = tuple((*row, None)[: len(wide.columns)] for row in rows)
    window, kind = (more.window, more.kind) if more.window is not None else (found.window, found.kind)
    return replace(
        found,
        columns=wide.columns,
        rows=rows,
        elements=elements,
        window=window,
        kind=kind,
        looked_at=found.looked_at + more.looked_at,
        next_page=more.next_page,
        refusal=more.refusal,
    )


async def matches(session: BrowsingSession, facts: KeyFacts, preview: Preview) -> AsyncIterator[Preview]:
    """Yield what was found after a first page, each time with more, until it is enough or there is no more."""
    while preview.next_page is not None and preview.window is None and not is_enough(preview):
        more = await session.keys.preview(facts, preview.next_page)
        preview = with_more(preview, more)
        yield preview
        if more.refusal is not None:
            return
