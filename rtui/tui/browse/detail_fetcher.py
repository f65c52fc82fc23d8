"""Fetches the details of the row under the cursor: facts and a page of the value, or the children of a namespace."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from functools import partial
from heapq import nsmallest
from typing import TYPE_CHECKING, Final

from rtui.analysis.facts import KeyFacts, Reason, RowFacts, Unknown
from rtui.keyspace.rows.rows import Row, RowKind
from rtui.keyspace.store.name_search import HeldNames
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.text.display import SafeText
from rtui.keyspace.types import STRING
from rtui.server.browsing.session import BrowsingSession
from rtui.server.facts.preview.page import FIRST, Find, Page, Preview, PreviewKind
from rtui.server.facts.preview.strings import is_text
from rtui.server.wire.errors import RtuiError
from rtui.tui.browse.document import NO_MEANINGS, ChosenDecoders, DecodedDocument, Meanings, meanings_of, open_document
from rtui.tui.browse.namespace_lines import FEW_ASKED, ChildCounts, CountedState, count_children
from rtui.tui.browse.tree_lines import REASONS
from rtui.tui.kit.command_screen import Work, drive
from rtui.tui.kit.layout import display_text
from rtui.values.plain import HEX

if TYPE_CHECKING:
    from rtui.registry.registry import Registry
    from rtui.server.facts.references import KeyReferences
    from rtui.tui.browse.level_lines import LevelDetail

MOST_BIGGEST: Final = 8
REST_S: Final = 0.06
"""Seconds that the cursor rests on a row before the server is asked, so that moving past keys costs nothing."""

GRACE_S: Final = 0.15
"""Seconds before an incomplete detail is shown; until then the last one stays, so that the screen does not flicker."""


UNDECODED: Final = frozenset({PreviewKind.HYPERLOGLOG, PreviewKind.BITMAP})
"""Kinds of strings that hold no encoded value."""

MOST_LEFT: Final = 50
"""Places in a value that can be gone back to."""


def automatic_decoder(preview: Preview) -> str | None:
    """Return the decoder that a string gets unless another one is chosen; None for the best fit."""
    return HEX.name if preview.kind in UNDECODED else None


def may_be_encoded(beginning: bytes) -> bool:
    """Return whether more than the beginning is needed to decode it: it is JSON, binary, or one long word."""
    is_word = not any(byte in beginning for byte in b" \t\n")
    return is_word or beginning[:1] in (b"{", b"[") or not is_text(beginning, cut_after=True)


Spawn = Callable[[Work], object]
"""Starts a worker and cancels the previous one."""


@dataclass(frozen=True, slots=True)
class Detail:
    """The row or key under the cursor with the facts and the value fetched so far."""

    row: Row | None = None
    """None for a key that is not listed, and for nothing."""
    key: bytes | None = None
    """None for a namespace and for nothing."""
    facts: KeyFacts | None = None
    preview: Preview | None = None
    value_at_s: float | None = None
    """When the page was read, in seconds since the epoch: it may be long after the facts."""
    children: ChildCounts | None = None
    """The children of a namespace, if they were counted."""
    biggest: tuple[RowFacts, ...] | None = None
    """The biggest keys of a small namespace, largest first; None if not asked."""
    document: DecodedDocument | None = None
    """The decoded string; None for other types, and if only a part of the string was read."""
    meanings: Meanings = NO_MEANINGS
    references: KeyReferences | None = None
    """The references of the shown page and those expected to point to the key; None if not asked."""
    is_fetching_page: bool = False
    refused_place: SafeText | None = None
    """Why there is no place such as the user has typed."""
    failure: SafeText | None = None
    """Why nothing more was fetched, such as a lost connection."""
    level: LevelDetail | None = None
    """The level under the cursor while the schema is shown; all other fields are None then."""


class DetailFetcher:
    """Fetches the detail of one thing at a time; a newer request ends an older one."""

    def __init__(
        self,
        session: BrowsingSession,
        spawn: Spawn,
        on_change: Callable[[Detail], None],
        row_facts: Callable[[bytes], RowFacts | None],
        decoders: ChosenDecoders,
    ) -> None:
        """`spawn` starts workers; `on_change` is called with each detail that is to be shown.

        `row_facts` returns the facts in the row of a key, None if nothing is known; `decoders` are the decoders chosen
        by hand.
        """
        self._decoders = decoders
        self._session = session
        self._row_facts = row_facts
        self._spawn = spawn
        self._on_change = on_change
        self._counted: CountedState | None = None
        self._fetching: object | None = None
        """Identifies the fetch of facts and value that is under way."""
        self._wanted: Detail | None = None
        """Where the cursor has gone, until it has rested there."""
        self._last_read = Detail()
        """The latest detail with a page of its value."""
        self._shows_parts = False
        """Whether the fetch takes long, so that each part is shown as soon as it has come."""
        self._left: deque[Page] = deque(maxlen=MOST_LEFT)
        """Where the user was in the value before looking for something in it or going to a place."""
        self.detail = Detail()

    @property
    def readable(self) -> Detail:
        """The detail whose page is on the screen: the previous one while its key is fetched again."""
        now, last = self.detail, self._last_read
        is_fetched_again = now.preview is None and now.key is not None and now.key == last.key
        return replace(last, row=now.row) if is_fetched_again else now

    def show(self, row: Row | None) -> None:
        """Fetch the detail of the row under the cursor, once the cursor rests there."""
        key = row.key() if row is not None and row.kind is RowKind.KEY else None
        now = self.detail
        if key is not None and key == now.key and now.row is None and now.failure is None and self._wanted is None:
            self.detail = replace(now, row=row)  # it was looked up by its name, and has its row now
            if self._fetching is None:
                self._on_change(self.detail)
            return
        wanted = Detail(row, key)
        self._start(partial(self._load, wanted, REST_S), wanted)

    def show_level(self, level: LevelDetail | None) -> None:
        wanted = Detail(level=level)
        self._start(partial(self._load, wanted, 0.0), wanted)

    def recount(self, *, complete: bool) -> None:
        """Count the children of the namespace under the cursor again if its own count has changed enough."""
        row = self.detail.row
        if row is None or row.kind is RowKind.KEY or self._wanted is not None:
            return
        state = CountedState(row.namespace, row.namespace.count, row.namespace.opened, complete)
        if self._counted is None or state.is_due(self._counted):
            self._counted = state
            self._start(partial(self._load, self.detail, 0.0))

    def show_key(self, key: bytes) -> None:
        wanted = Detail(None, key)
        self._start(partial(self._load, wanted, 0.0), wanted)

    def unlist(self) -> None:
        """Go on showing a key whose row is listed anew, and fetch its facts and page again."""
        if self.detail.key is not None and self._wanted is None:
            self.detail = replace(self.detail, row=None)
            self.refresh()

    def reload(self) -> None:
        blank = replace(
            self.detail,
            facts=None,
            preview=None,
            document=None,
            meanings=NO_MEANINGS,
            references=None,
            failure=None,
            refused_place=None,
        )
        self._start(partial(self._load, blank, 0.0))

    def ask_references(self, registry: Registry) -> None:
        """Ask for the references of the key once a page of its value is shown; not while something else is fetched."""
        now = self.detail
        if now.references is None and now.preview is not None and self._wanted is None and self._fetching is None:
            self._start(partial(self._references, now, registry))

    def refresh(self, *, at_once: bool = False) -> None:
        """Fetch all that is shown of a key again, showing the old facts until the new ones are there.

        A fetch that is under way is not repeated, unless `at_once` is set: it may have gone to another server.
        """
        is_under_way = self._fetching is not None and not at_once
        if self.detail.key is None or self._wanted is not None or is_under_way:
            return
        self._start(partial(self._load, replace(self.detail, failure=None, is_fetching_page=False), 0.0))

    def turn(self, page: Page) -> None:
        """Fetch another page of the value; nothing happens once the cursor has gone to another key."""
        detail = self.readable
        is_left = self._wanted is not None and self._wanted.key != detail.key
        if detail.facts is not None and not is_left:
            self._start(partial(self._turn, detail, page))

    def find(self, find: Find) -> None:
        """Show the matches in the value, page by page; `go_back` returns to the current page."""
        preview = self.readable.preview
        if preview is None:
            return
        if preview.page.find is None:
            self._left.append(preview.page)
        self.turn(Page(find=find))

    def go_back(self) -> bool:
        if not self._left or self.readable.facts is None:
            return False
        self.turn(self._left.pop())
        return True

    def go_to(self, text: str) -> None:
        """Fetch the page at a typed place; the detail says why if the place does not exist."""
        detail = self.readable
        if detail.facts is not None:
            self._start(partial(self._go_to, detail, detail.facts, text))

    def _start(self, work: Work, wanted: Detail | None = None) -> None:
        self._wanted = wanted
        self._spawn(work)

    def _learn(self, detail: Detail) -> None:
        self.detail = detail
        if self._shows_parts:
            self._on_change(detail)

    async def _load(self, detail: Detail, rest_s: float) -> None:
        if rest_s:
            await asyncio.sleep(rest_s)
        self.detail, self._wanted = detail, None
        key = detail.key
        if key is None:
            if detail.row is not None:
                node = detail.row.namespace
                self._counted = CountedState(node, node.count, node.opened, self._session.status.complete)
                children = await drive(count_children(node, self._session.store.separators))
                self.detail = replace(detail, children=children)
                self._on_change(self.detail)
                self.detail = replace(self.detail, biggest=await self._biggest(node))
            self._on_change(self.detail)
            return
        before, shown = detail.facts, detail.preview
        async with self._showing_progress():
            facts = await self._session.keys.key_facts(key, self._row_facts(key))
            self._learn(replace(self.detail, facts=facts))
            is_same_type = before is not None and before.type == facts.type
            page = shown.page if is_same_type and shown is not None else FIRST
            if page == FIRST:
                self._left.clear()
            await self._read(facts, page)

    async def _biggest(self, node: Namespace) -> tuple[RowFacts, ...] | None:
        """Ask for the sizes of all keys of a small namespace and return the biggest; None if any size is unknown."""
        store, status = self._session.store, self._session.status
        if node.root is not store.root or not status.complete or not 0 < node.count <= FEW_ASKED:
            return None
        held = HeldNames(store, node)
        names = [name for page in held.pages() for name in page]
        try:
            found = await self._session.keys.row_facts(names)
        except RtuiError:
            return None
        sized = [(-one.memory_bytes, one.key, one) for one in found if isinstance(one.memory_bytes, int)]
        is_known = not held.missing and len(sized) == sum(not one.is_gone for one in found)
        return tuple(one for *_, one in nsmallest(MOST_BIGGEST, sized)) if is_known else None

    async def _references(self, detail: Detail, registry: Registry) -> None:
        if detail.facts is None or detail.preview is None:
            return
        async with self._showing_progress():
            found = await self._session.keys.references(registry, detail.facts, detail.preview)
            self.detail = replace(self.detail, references=found)

    async def _turn(self, detail: Detail, page: Page) -> None:
        self.detail = replace(detail, is_fetching_page=True, refused_place=None)
        if detail.facts is None:
            return
        async with self._showing_progress():
            await self._read(detail.facts, page)

    async def _go_to(self, detail: Detail, facts: KeyFacts, text: str) -> None:
        self.detail = replace(detail, is_fetching_page=True, refused_place=None)
        async with self._showing_progress():
            page = await self._session.keys.find_place(facts, text)
            if isinstance(page, Unknown):
                why = REASONS[page.reason].refusal if not page.detail else display_text(page.detail)
                self.detail = replace(self.detail, is_fetching_page=False, refused_place=why)
                return
            if detail.preview is not None:
                self._left.append(detail.preview.page)
            await self._read(facts, page)

    async def _read(self, facts: KeyFacts, page: Page) -> None:
        """Read a page of the value; of a search in it, read on until a page of matches is full.

        If the key has gone, or another key has taken its name, the facts and first page of the new key are shown.
        """
        preview = await self._session.keys.preview(facts, page)
        if preview.refusal is not None and preview.refusal.reason is Reason.GONE and not facts.is_gone:
            facts, page = await self._session.keys.key_facts(facts.key), FIRST
            self._left.clear()
            self.detail = replace(self.detail, facts=facts)
            preview = await self._session.keys.preview(facts, page)
        if page.find is not None:
            loop = asyncio.get_running_loop()
            shown_at_s = loop.time()
            async for found in matches(self._session, facts, preview):
                preview = found
                self.detail = replace(self.detail, preview=preview, document=None, meanings=NO_MEANINGS)
                if loop.time() - shown_at_s > GRACE_S:
                    shown_at_s = loop.time()
                    self._on_change(self.detail)
        document, at_s = await self._document(facts, preview), self._session.clock()
        meanings = NO_MEANINGS
        if preview.rows and preview.columns:
            decoders = self._decoders
            meanings = await asyncio.to_thread(
                meanings_of, preview, lambda item: decoders.of(decoders.place(facts.key, facts.type, item))
            )
        before = self.detail.preview
        is_same = before is not None and (before.page, before.rows, before.window) == (
            preview.page,
            preview.rows,
            preview.window,
        )
        references = self.detail.references if is_same else None
        page_read = replace(self.detail, preview=preview, value_at_s=at_s, document=document, meanings=meanings)
        self.detail = self._last_read = replace(page_read, references=references, is_fetching_page=False)

    async def _document(self, facts: KeyFacts, preview: Preview) -> DecodedDocument | None:
        """Return the decoded string, after reading the rest of a short one; None for other types."""
        window = preview.window
        if window is None or window.offset_bytes or not window.data:
            return None
        data = window.data
        if preview.next_page is not None and preview.page.find is None and may_be_encoded(data):
            async for part in self._session.keys.string_windows(facts):
                data = part if isinstance(part, bytes) else data
                break
        total_bytes = facts.length if isinstance(facts.length, int) else None
        is_whole = total_bytes is None or len(data) >= total_bytes
        place = self._decoders.place(facts.key, facts.type)
        return await asyncio.to_thread(
            open_document,
            data,
            is_whole=is_whole,
            total_bytes=total_bytes,
            automatic=automatic_decoder(preview),
            remembered=(self._decoders.of(place), place),
        )

    @contextlib.asynccontextmanager
    async def _showing_progress(self) -> AsyncIterator[None]:
        """Show the parts fetched so far after `GRACE_S`, and all at the end; a failure is shown, not raised."""
        loop = asyncio.get_running_loop()
        fetching = self._fetching = object()

        def show_parts() -> None:
            self._shows_parts = True
            self._on_change(self.detail)

        late = loop.call_later(GRACE_S, show_parts)
        try:
            yield
        except RtuiError as error:
            self.detail = replace(self.detail, failure=error.happened, is_fetching_page=False)
        finally:
            late.cancel()
            if self._fetching is fetching:
                self._fetching, self._shows_parts = None, False
        self._on_change(self.detail)


MOST_FOUND: Final = 100
"""Matches on a page at most;"""

MOST_LOOKED_AT: Final = 100_000
"""elements that are looked at for a page at most;"""

MOST_BYTES_LOOKED_AT: Final = 16 << 20
"""in a string, bytes."""


def is_page_full(found: Preview) -> bool:
    """Return whether the matches so far fill a page, so that the next one is fetched only on demand."""
    count = len(found.rows) if found.elements is None else found.elements
    most = MOST_LOOKED_AT if found.type != STRING.name else MOST_BYTES_LOOKED_AT
    return count >= MOST_FOUND or found.looked_at >= most or found.refusal is not None


def with_more(found: Preview, more: Preview) -> Preview:
    """Return the matches so far with further ones; the page stays the first one."""
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
    """Yield the matches behind a first page, each time with more, until the page is full or the value ends."""
    while preview.next_page is not None and preview.window is None and not is_page_full(preview):
        more = await session.keys.preview(facts, preview.next_page)
        preview = with_more(preview, more)
        yield preview
        if more.refusal is not None:
            return
