"""Reads one page of the value of a key, with the reader of its type: the way into the readers of `preview`.

It is a module of its own since it is above the registry of types, and the readers are below it.
"""

from __future__ import annotations

from dataclasses import replace

from rtui.analysis.facts import KeyFacts, Unknown
from rtui.server.facts.preview.page import FIRST, Page, Preview, PreviewKind
from rtui.server.facts.preview.value_reader import STRING_WINDOW_BYTES, Refused, ValueReader
from rtui.server.facts.types import queries_of
from rtui.server.wire.capability import Capabilities, KeyReader, Querier


async def key_preview(
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
        return Preview(facts.key, facts.type, PreviewKind.NOTHING, page, refusal=facts.type)
    querier = Querier(connection, Capabilities() if capabilities is None else capabilities, connection.own_reads)
    reader = ValueReader(querier, facts, page, window_bytes)
    try:
        shown = await queries_of(facts.type).preview(reader)
    except Refused as refused:
        return replace(reader.preview(PreviewKind.NOTHING), refusal=refused.why)
    is_empty = not shown.rows and (shown.window is None or not shown.window.data)
    if not is_empty or page.number == 1 or shown.next_page is not None:
        return shown
    ended = "nothing is here: the value has become shorter, or ended with the page before"
    return replace(shown, notes=(*shown.notes, ended))
