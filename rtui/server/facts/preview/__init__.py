"""A bounded look into a value: one file a family of types, chosen by what the server calls the type."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

from rtui.analysis.facts import KeyFacts, Unknown
from rtui.server.facts.preview.collections import read_array, read_list, read_set, read_zset
from rtui.server.facts.preview.described import read_description
from rtui.server.facts.preview.hashes import read_hash
from rtui.server.facts.preview.page import FIRST, STRING_WINDOW_BYTES, Kind, Page, Preview
from rtui.server.facts.preview.source import Refused, Source
from rtui.server.facts.preview.streams import read_stream
from rtui.server.facts.preview.strings import read_string
from rtui.server.wire.capability import Capabilities, KeyReader, Querier

__all__ = ["Page", "Preview", "preview"]


_FAMILIES: Final[dict[bytes, Callable[[Source, Page], Awaitable[Preview]]]] = {
    b"hash": read_hash,
    b"list": read_list,
    b"set": read_set,
    b"zset": read_zset,
    b"stream": read_stream,
    b"array": read_array,
}
"""How a page of each type is read, but for strings and the types whose content is not read."""


async def preview(
    connection: KeyReader,
    facts: KeyFacts,
    page: Page | None = None,
    *,
    capabilities: Capabilities | None = None,
    window_bytes: int = STRING_WINDOW_BYTES,
) -> Preview:
    """Read one page of a key's value, the first when no page is given; `window_bytes` ≤ 64 KiB is for strings.

    A refusal, a key that is gone or has changed its type, and a value that is too large are previews too: `refusal`
    says which. Raises ConnectionLost.
    """
    page = FIRST if page is None else page
    if isinstance(facts.type, Unknown):
        return Preview(facts.key, facts.type, Kind.NOTHING, page, refusal=facts.type)
    querier = Querier(connection, Capabilities() if capabilities is None else capabilities, connection.own_reads)
    source = Source(querier, facts)
    try:
        if facts.type == b"string":
            return _marked(await read_string(source, page, window_bytes))
        return _marked(await _FAMILIES.get(facts.type, read_description)(source, page))
    except Refused as refused:
        return Preview(
            key=facts.key,
            type=facts.type,
            kind=Kind.NOTHING,
            page=page,
            total=facts.length,
            refusal=refused.why,
            touched=source.touches,
        )


def _marked(shown: Preview) -> Preview:
    """Say of an empty page that is not the first why it is empty."""
    is_empty = not shown.rows and (shown.window is None or not shown.window.data)
    if not is_empty or shown.page.number == 1 or shown.next_page is not None:
        return shown
    return replace(
        shown, notes=(*shown.notes, "nothing is here: the value has become shorter, or ended with the page before")
    )
