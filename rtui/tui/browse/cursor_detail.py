"""What is known of the row under the cursor: facts and a page of the value as they arrive, or why they did not."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from textual.worker import Worker

from rtui.analysis.facts import KeyFacts
from rtui.keyspace.rows.rows import Row, RowKind
from rtui.keyspace.text.display import SafeText
from rtui.server.facts.preview.page import Page, Preview
from rtui.server.wire.errors import RtuiError
from rtui.tui.browse.inside import ChildCounts, CountedState, count_children
from rtui.tui.browse.session import Session
from rtui.tui.kit.polling import Work, drive

REST_S: Final = 0.06
"""The cursor has to rest so long before the server is asked: keys that are only passed cost it nothing."""

GRACE_S: Final = 0.15
"""After so long a detail that is not complete is shown as it is; before, what was there stays, which is calmer."""


Spawn = Callable[[Work], Worker[None]]
"""Starts a worker."""


@dataclass(frozen=True, slots=True)
class Detail:
    """The thing under the cursor and what has come of it so far."""

    row: Row | None = None
    """None with a key that is not listed, or with nothing at all."""
    key: bytes | None = None
    """None for a namespace and for nothing."""
    facts: KeyFacts | None = None
    preview: Preview | None = None
    inside: ChildCounts | None = None
    """What lies directly below a namespace, when that was counted."""
    is_turning: bool = False
    """Another page has been asked for."""
    failure: SafeText | None = None
    """Why nothing more will come, such as a lost connection."""


class DetailFetcher:
    """Fetches the detail of one thing at a time; a newer request ends an older one."""

    def __init__(self, session: Session, spawn: Spawn, on_change: Callable[[Detail], None]) -> None:
        """`spawn` runs work and reports what it could not foresee; `on_change` is called with what there is to show."""
        self._session = session
        self._spawn = spawn
        self._on_change = on_change
        self._task: Worker[None] | None = None
        self._counted: CountedState | None = None
        self._fetching: object | None = None
        """Stands for the fetching of facts and value that is under way."""
        self._wanted: Detail | None = None
        """What the cursor has gone to, until it has rested there."""
        self.detail = Detail()

    def show(self, row: Row | None, *, at_once: bool = False) -> None:
        """Take up the row under the cursor, once it rests there."""
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
        """Look into the namespace under the cursor again, if it has become another one since the last look."""
        row = self.detail.row
        if row is None or row.kind is RowKind.KEY or self._wanted is not None:
            return
        state = CountedState(row.namespace, row.namespace.count, row.namespace.opened)
        if self._counted is None or state.is_due(self._counted, complete=complete):
            self._counted = state
            self._start(partial(self._load, self.detail, 0.0))

    def show_key(self, key: bytes) -> None:
        """Take up a key that is not among the rows."""
        wanted = Detail(None, key)
        self._start(partial(self._load, wanted, 0.0), wanted)

    def reload(self) -> None:
        """Ask for everything again."""
        self._start(partial(self._load, replace(self.detail, facts=None, preview=None, failure=None), 0.0))

    def refresh(self, *, at_once: bool = False) -> None:
        """Ask again for all that is shown of a key; only errors go before the answers.

        What is under way is waited for, unless `at_once` says that it may have been asked of another server.
        """
        is_under_way = self._fetching is not None and not at_once
        if self.detail.key is None or self._wanted is not None or is_under_way:
            return
        self._start(partial(self._load, replace(self.detail, failure=None, is_turning=False), 0.0))

    def turn(self, page: Page) -> None:
        """Ask for another page of the value."""
        if self.detail.facts is not None:
            self._start(partial(self._turn, self.detail, page))

    def stop(self) -> None:
        """Ask for nothing more."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def _start(self, work: Work, wanted: Detail | None = None) -> None:
        self.stop()
        self._wanted = wanted
        self._task = self._spawn(work)

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
                inside = await drive(count_children(node, self._session.store.separators))
                self.detail = replace(detail, inside=inside)
            self._on_change(self.detail)
            return
        before = detail.facts, detail.preview
        async with self._shown_late():
            facts = await self._session.key_facts(key)
            self.detail = replace(self.detail, facts=facts)
            preview = await self._session.preview(facts, _same_page(*before, facts))
            self.detail = replace(self.detail, preview=preview)

    async def _turn(self, detail: Detail, page: Page) -> None:
        """Fetch another page."""
        self.detail = replace(detail, is_turning=True)
        if detail.facts is None:
            return
        async with self._shown_late():
            preview = await self._session.preview(detail.facts, page)
            self.detail = replace(self.detail, preview=preview, is_turning=False)

    @contextlib.asynccontextmanager
    async def _shown_late(self) -> AsyncIterator[None]:
        """Show what there is after the grace, and everything at the end; a failure is shown, not raised."""
        loop = asyncio.get_running_loop()
        fetching = self._fetching = object()
        late = loop.call_later(GRACE_S, lambda: self._on_change(self.detail))
        try:
            yield
        except RtuiError as error:
            self.detail = replace(self.detail, failure=error.happened, is_turning=False)
        finally:
            late.cancel()
            if self._fetching is fetching:
                self._fetching = None
        self._on_change(self.detail)


def _same_page(before: KeyFacts | None, preview: Preview | None, now: KeyFacts) -> Page | None:
    """Return the page of a value that was shown before; None, the first, for none and for another type."""
    is_same = before is not None and preview is not None and before.type == now.type
    return preview.page if is_same and preview is not None else None
