"""Fetches what is shown of the row under the cursor: facts and a page of the value, or what lies in a namespace.

What lies directly below a namespace is counted without opening it, which would make the store larger.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from rtui.analysis.facts import KeyFacts, Unknown
from rtui.keyspace.rows.rows import Row, RowKind
from rtui.keyspace.slices import Slicer, Slices
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.store.packed_names import unpack_inline
from rtui.keyspace.text.display import SafeText
from rtui.keyspace.text.segments import Separators
from rtui.keyspace.types import STRING
from rtui.server.facts.preview.page import FIRST, Find, Page, Preview, PreviewKind
from rtui.server.facts.preview.strings import is_text
from rtui.server.wire.errors import RtuiError
from rtui.tui.browse.document import Document, open_document
from rtui.tui.browse.session import Session
from rtui.tui.browse.tree_lines import REASONS
from rtui.tui.kit.command_screen import Work, drive
from rtui.tui.kit.layout import display_text

GROWTH: Final = 1.125
"""During a scan a namespace is counted again when it has grown by this factor."""

LARGEST: Final = 200
"""Only so many of the largest namespaces are listed."""

MOST_KEYS: Final = 200_000
"""Unopened namespaces of more keys are not counted just because the cursor rests on them."""

BATCH: Final = 2_048
"""How many children are handled between two checks of the clock."""


@dataclass(frozen=True, slots=True)
class ChildCount:
    """A namespace directly below: its label with the separator, its keys, and whether a sample says so."""

    label: bytes
    keys: float
    is_estimate: bool = False


@dataclass(frozen=True, slots=True)
class ChildCounts:
    """The namespaces directly below one, largest first, and the keys directly below, when it had `of` keys in all."""

    parts: tuple[ChildCount, ...] = ()
    namespaces: int = 0
    keys: int = 0
    of: int = 0


@dataclass(frozen=True, slots=True)
class CountedState:
    """The state in which a namespace was counted: how many keys it had, and whether it was open."""

    node: Namespace
    keys: int
    opened: bool

    def is_due(self, last: CountedState, *, complete: bool) -> bool:
        """Return whether to count again; on any change once the counts are totals (`complete`)."""
        if self.node is not last.node or self.opened != last.opened:
            return True
        return self.keys != last.keys if complete else self.keys > last.keys * GROWTH


def count_children(node: Namespace, separators: Separators) -> Slices[ChildCounts | None]:
    """Count what lies directly below, in slices; None where that is not known or would take long."""
    slicer, of, kept = Slicer(), node.count, node.suffixes
    if node.listed:
        found: list[tuple[float, int]] = []
        for start in range(0, len(node.labels), BATCH):
            ordinals = range(start, min(start + BATCH, len(node.labels)))
            found += [(-weight, at) for weight, at in zip(node.weights(ordinals), ordinals, strict=True)]
            found = sorted(found)[:LARGEST]
            yield from slicer.pause()
        parts = tuple(ChildCount(node.labels[at], -weight, -weight > node.count_at(at)) for weight, at in found)
        return ChildCounts(parts, len(node.labels), node.key_total, of)
    if node.dropped or of > MOST_KEYS or kept is None:
        return None
    counts: Counter[bytes] = Counter()
    brace_before = node.brace_before
    batches = [unpack_inline(kept)] if isinstance(kept, bytes) else (chunk.names() for _, chunk in kept.chunks())
    for names in batches:
        cut = separators.split_batch(names, brace_before=brace_before)
        counts.update(head + separator if separator else b"" for head, separator, _ in cut)
        yield from slicer.pause()
    keys = counts.pop(b"", 0)
    parts = tuple(ChildCount(label, count) for label, count in counts.most_common(LARGEST))
    return ChildCounts(parts, len(counts), keys, of)


REST_S: Final = 0.06
"""The cursor must rest so long on a row before the server is asked, so that moving past keys costs nothing."""

GRACE_S: Final = 0.15
"""An incomplete detail is shown after so long; until then the one before stays, so that the screen does not flicker."""


UNDECODED: Final = frozenset({PreviewKind.HYPERLOGLOG, PreviewKind.BITMAP})
"""What strings may be that is no encoded value."""

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


def may_be_encoded(beginning: bytes) -> bool:
    """Return whether more than the beginning is needed to decode it: it is JSON, binary, or one long word."""
    is_word = not any(byte in beginning for byte in b" \t\n")
    return is_word or beginning[:1] in (b"{", b"[") or not is_text(beginning, cut_after=True)


Spawn = Callable[[Work], object]
"""Starts a worker, which ends the one before."""


@dataclass(frozen=True, slots=True)
class Detail:
    """The row or key under the cursor and what has been fetched of it so far."""

    row: Row | None = None
    """None for a key that is not listed, and for nothing."""
    key: bytes | None = None
    """None for a namespace and for nothing."""
    facts: KeyFacts | None = None
    preview: Preview | None = None
    children: ChildCounts | None = None
    """What lies directly below a namespace, if it was counted."""
    document: Document | None = None
    """What the bytes of a string mean; None for other types, and where only a part of it was read."""
    is_fetching_page: bool = False
    """Another page is being fetched."""
    refused_place: SafeText | None = None
    """Why there is no place such as the user has typed."""
    failure: SafeText | None = None
    """Why nothing more was fetched, such as a lost connection."""


class DetailFetcher:
    """Fetches the detail of one thing at a time; a newer request ends an older one."""

    def __init__(self, session: Session, spawn: Spawn, on_change: Callable[[Detail], None]) -> None:
        """`spawn` starts workers; `on_change` is called with each detail that is to be shown."""
        self._session = session
        self._spawn = spawn
        self._on_change = on_change
        self._counted: CountedState | None = None
        self._fetching: object | None = None
        """Identifies the fetch of facts and value that is under way."""
        self._wanted: Detail | None = None
        """Where the cursor has gone, until it has rested there."""
        self._before_find: Page | None = None
        """Where the user was in the value before looking for something in it."""
        self.detail = Detail()

    def show(self, row: Row | None, *, at_once: bool = False) -> None:
        """Fetch the detail of the row under the cursor, once the cursor rests there."""
        key = row.key() if row is not None and row.kind is RowKind.KEY else None
        now = self.detail
        if key is not None and key == now.key and now.row is None and now.failure is None and self._wanted is None:
            self.detail = replace(now, row=row)  # it was looked up by its name, and has its row now
            if self._fetching is None:
                self._on_change(self.detail)
            return
        wanted = Detail(row, key)
        self._start(partial(self._load, wanted, 0.0 if at_once else REST_S), wanted)

    def recount(self, *, complete: bool) -> None:
        """Count the children of the namespace under the cursor again if its own count has changed enough."""
        row = self.detail.row
        if row is None or row.kind is RowKind.KEY or self._wanted is not None:
            return
        state = CountedState(row.namespace, row.namespace.count, row.namespace.opened)
        if self._counted is None or state.is_due(self._counted, complete=complete):
            self._counted = state
            self._start(partial(self._load, self.detail, 0.0))

    def show_key(self, key: bytes) -> None:
        """Fetch the detail of a key that may not be listed."""
        wanted = Detail(None, key)
        self._start(partial(self._load, wanted, 0.0), wanted)

    def reload(self) -> None:
        """Fetch everything again."""
        blank = replace(self.detail, facts=None, preview=None, document=None, failure=None, refused_place=None)
        self._start(partial(self._load, blank, 0.0))

    def refresh(self, *, at_once: bool = False) -> None:
        """Fetch all that is shown of a key again, showing the old facts until the new ones are there.

        A fetch that is under way is not repeated, unless `at_once` is set: it may have gone to another server.
        """
        is_under_way = self._fetching is not None and not at_once
        if self.detail.key is None or self._wanted is not None or is_under_way:
            return
        self._start(partial(self._load, replace(self.detail, failure=None, is_fetching_page=False), 0.0))

    def turn(self, page: Page) -> None:
        """Fetch another page of the value."""
        if self.detail.facts is not None:
            self._start(partial(self._turn, self.detail, page))

    def find(self, find: Find) -> None:
        """Show what matches in the value, page by page; `leave_found` goes back to the page of now."""
        preview = self.detail.preview
        if preview is None or self.detail.facts is None:
            return
        if preview.page.find is None:
            self._before_find = preview.page
        self.turn(Page(find=find))

    def leave_found(self) -> bool:
        """Go back from what was found to the page before; return whether something was found."""
        preview, page = self.detail.preview, self._before_find
        if preview is None or preview.page.find is None:
            return False
        self._before_find = None
        self.turn(FIRST if page is None else page)
        return True

    def go_to(self, text: str) -> None:
        """Fetch the page at a typed place; where there is none, the detail says why."""
        if self.detail.facts is not None:
            self._start(partial(self._go_to, self.detail, self.detail.facts, text))

    def _start(self, work: Work, wanted: Detail | None = None) -> None:
        self._wanted = wanted
        self._spawn(work)

    async def _load(self, detail: Detail, rest_s: float) -> None:
        """Fetch facts, then the first page of the value."""
        if rest_s:
            await asyncio.sleep(rest_s)
        self.detail, self._wanted = detail, None
        key = detail.key
        if key is None:
            if detail.row is not None:
                node = detail.row.namespace
                self._counted = CountedState(node, node.count, node.opened)
                children = await drive(count_children(node, self._session.store.separators))
                self.detail = replace(detail, children=children)
            self._on_change(self.detail)
            return
        before, shown = detail.facts, detail.preview
        async with self._showing_progress():
            facts = await self._session.key_facts(key)
            self.detail = replace(self.detail, facts=facts)
            is_same_type = before is not None and before.type == facts.type
            page = shown.page if is_same_type and shown is not None else None
            await self._read(facts, FIRST if page is None else page)

    async def _turn(self, detail: Detail, page: Page) -> None:
        """Fetch another page."""
        self.detail = replace(detail, is_fetching_page=True, refused_place=None)
        if detail.facts is None:
            return
        async with self._showing_progress():
            await self._read(detail.facts, page)

    async def _go_to(self, detail: Detail, facts: KeyFacts, text: str) -> None:
        """Ask where a place is and fetch the page there."""
        self.detail = replace(detail, is_fetching_page=True, refused_place=None)
        async with self._showing_progress():
            page = await self._session.find_place(facts, text)
            if isinstance(page, Unknown):
                why = REASONS[page.reason].refusal if not page.detail else display_text(page.detail)
                self.detail = replace(self.detail, is_fetching_page=False, refused_place=why)
                return
            if page.find is not None and detail.preview is not None and detail.preview.page.find is None:
                self._before_find = detail.preview.page
            await self._read(facts, page)

    async def _read(self, facts: KeyFacts, page: Page) -> None:
        """Read a page of the value; of what is looked for in it, go on until there is a page of it."""
        preview = await self._session.preview(facts, page)
        if page.find is not None:
            async for found in self._matches(facts, preview):
                preview = found
                self.detail = replace(self.detail, preview=preview, document=None)
        document = await self._document(facts, preview)
        self.detail = replace(self.detail, preview=preview, document=document, is_fetching_page=False)

    async def _matches(self, facts: KeyFacts, preview: Preview) -> AsyncIterator[Preview]:
        """Yield what was found so far, each time with more, and show it as it grows."""
        loop = asyncio.get_running_loop()
        shown_at_s = loop.time()
        while preview.next_page is not None and preview.window is None and not is_enough(preview):
            more = await self._session.preview(facts, preview.next_page)
            preview = with_more(preview, more)
            yield preview
            if loop.time() - shown_at_s > GRACE_S:
                shown_at_s = loop.time()
                self._on_change(replace(self.detail, preview=preview))
            if more.refusal is not None:
                return

    async def _document(self, facts: KeyFacts, preview: Preview) -> Document | None:
        """Return what the bytes of a string mean, all of them read where they are few; None for other types."""
        window = preview.window
        if window is None or window.offset_bytes or not window.data or preview.kind in UNDECODED:
            return None
        data = window.data
        if preview.next_page is not None and preview.page.find is None and may_be_encoded(data):
            async for part in self._session.string_windows(facts):
                data = part if isinstance(part, bytes) else data
                break
        is_whole = not isinstance(facts.length, int) or len(data) >= facts.length
        return await asyncio.to_thread(open_document, data, is_whole=is_whole)

    @contextlib.asynccontextmanager
    async def _showing_progress(self) -> AsyncIterator[None]:
        """Show what there is after `GRACE_S`, and everything at the end; a failure is shown, not raised."""
        loop = asyncio.get_running_loop()
        fetching = self._fetching = object()
        late = loop.call_later(GRACE_S, lambda: self._on_change(self.detail))
        try:
            yield
        except RtuiError as error:
            self.detail = replace(self.detail, failure=error.happened, is_fetching_page=False)
        finally:
            late.cancel()
            if self._fetching is fetching:
                self._fetching = None
        self._on_change(self.detail)
