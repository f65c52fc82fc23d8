"""The session behind the browse screen: the server or cluster, the namespace store, and the pass that fills it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from rtui.analysis.facts import KeyFacts, RowFacts, Unknown
from rtui.keyspace.rows.ordering import Sort
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.store.store import NamespaceStore
from rtui.keyspace.text.display import SafeText
from rtui.keyspace.text.segments import Separators
from rtui.server.browsing_status import BrowsingStatus, NodeStatuses
from rtui.server.deployment.nodes import Deployment
from rtui.server.facts.preview.page import Page, Preview
from rtui.server.health.session import HealthSession
from rtui.server.hot.lfu_settings import database_count
from rtui.server.key_questions import KeyQuestions
from rtui.server.keyspace_pass import KeyspacePass
from rtui.server.keyspace_questions import KeyspaceQuestions
from rtui.server.options import BrowseOptions
from rtui.server.passes import Passes
from rtui.server.scan.pace import Pace
from rtui.server.scan.page import ScanFilter
from rtui.server.scan.progress import ScanState
from rtui.server.scan.run_control import YIELD_S, RunControl
from rtui.server.scan.savepoint import SaveFile
from rtui.server.wire.capability import Capabilities
from rtui.server.wire.command_log import Purpose, for_purpose
from rtui.server.wire.connection import Connection
from rtui.server.wire.errors import ConnectionLost, RtuiError
from rtui.server.wire.supervised_tasks import end_task, start_supervised
from rtui.server.wire.target import Target

if TYPE_CHECKING:
    from rtui.analysis.query.matches import Order
    from rtui.analysis.query.query import Query
    from rtui.analysis.query.terms import Fact
    from rtui.registry.registry import Registry
    from rtui.server.analysis_session import Analysed, AnalysisSession
    from rtui.server.command_log_file import CommandLogFile
    from rtui.server.facts.references import KeyReferences
    from rtui.server.kept_column import KeptColumn
    from rtui.server.key_column import KeyColumn
    from rtui.server.search.search import Search


class BrowsingSession:
    """What the screen reads: `revision` grows with every change, `status` and `store` hold the data.

    Everything runs on one event loop. Only `start` raises for a server that can't be reached.
    """

    def __init__(
        self,
        options: BrowseOptions,
        *,
        state_folder: Path | None = None,
        deployment: Deployment | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`state_folder` is where the position of a scan and reports are kept; `clock` gives seconds since the epoch.

        Raises PatternError or GuardError for a filter beyond the bounds.
        """
        target = options.target
        self.clock = clock
        self.deployment = Deployment(target) if deployment is None else deployment
        self.log = self.deployment.log
        self._log_file: CommandLogFile | None = None
        if options.log_file is not None:
            from rtui.server.command_log_file import CommandLogFile  # noqa: PLC0415 - few want it

            self._log_file = CommandLogFile(self.log, options.log_file)
        self.keys = KeyQuestions(self.deployment, clock)
        """Asks about single keys."""
        store = NamespaceStore(Separators(options.separators), budget_bytes=options.memory_budget_bytes)
        only = ScanFilter(options.match, options.key_type)
        self._resume = options.resume
        file = SaveFile(target.label, target.db, state_folder)
        is_filling = options.is_filling or (lambda: False)
        new_pass = partial(KeyspacePass, self.deployment, file=file, is_filling=is_filling, clock=clock)
        self._revision = 0
        self.passes = Passes(store, new_pass, only, Pace(options.pace), self._failed)
        self.questions = KeyspaceQuestions(self.deployment, self.passes, options, state_folder, clock)
        """Asks about all keys."""
        report = self.questions.latest_report
        self.health = HealthSession(
            *(self.deployment, self.capabilities), clock=clock, report=report, registry=options.registry
        )
        """How the server is."""
        self._nodes = NodeStatuses(self.deployment)
        self._size: int | None = None
        """Keys of the database by the servers' own count; None where one does not tell."""
        self._rescans = 0
        """What hardly ever changes is asked again when this has grown."""
        self._refreshing: asyncio.Task[None] | None = None
        self._failures: dict[SafeText, None] = {}
        """Why tasks beside the pass have ended."""
        self._targeted = asyncio.Lock()

    @property
    def connection(self) -> Connection:
        """The connection to the server that the user named, of a cluster to any node."""
        return self.deployment.home

    @property
    def capabilities(self) -> Capabilities:
        """What that server lets this user do."""
        return self.keys.home.capabilities

    @property
    def revision(self) -> int:
        """Grows whenever something that is shown has changed."""
        parts = (self.passes, self.connection, self.capabilities, self.deployment, self.health)
        return self._revision + sum(part.revision for part in parts)

    @property
    def target(self) -> Target:
        """The server and its database; of a service where its Sentinels said last that its primary is."""
        return self.connection.target

    @property
    def store(self) -> NamespaceStore:
        """The names that are shown; those of a filter are in another store than all."""
        return self.passes.store

    @property
    def control(self) -> RunControl:
        """Pauses, resumes and paces the scan; another scan, such as of a filter, has another one."""
        return self.passes.control

    @property
    def status(self) -> BrowsingStatus:
        """Everything but the tree, now."""
        now, only = self.passes.shown, self.passes.only
        size, now_s = now.size if self._size is None else self._size, self.clock()
        overview = self.passes.over_all_keys.overviews.latest
        return BrowsingStatus(
            label=self.target.label,
            db=self.target.db,
            server=self.health.identity,
            no_touch=self.connection.no_touch,
            link=self.connection.link,
            pace=self.control.pace,
            progress=now.progress,
            mark=self.target.mark,
            cost=self.passes.cost,
            match=only.match,
            key_type=only.key_type,
            total=overview.total if size is None else size,
            sampled=now.overviews.latest.sampled,
            generation=self.connection.generation,
            seen_age_s=None if now.stamp is None else max(0.0, now_s - now.stamp.at_s),
            outdated=now.outdated(now_s),
            complete=self.store.complete,
            analysis=self.questions.analysis_under_way,
            nodes=self._nodes.now(now.scan, self.health.sizes),
            trouble=self.health.trouble,
            notes=(*self._failures, *self.deployment.notes, *self.connection.notes, *now.notes),
        )

    @property
    def keeps_all_keys(self) -> bool:
        """Whether the pass over all keys waits while a filter shows some: without the filter it goes on, not anew."""
        return self.passes.keeps_all_keys

    @property
    def analysis(self) -> AnalysisSession:
        """What the keyspace holds, once it is asked for; the scan is suspended while every key is asked."""
        return self.questions.analysis

    @property
    def analysed(self) -> Analysed | None:
        """The latest figures of the analysis; None before there are any."""
        return self.questions.analysed

    def search(
        self, query: Query, columns: Sequence[Fact] = (), order: Order | None = None, *, asks_server: bool = False
    ) -> Search:
        """Return a search of all keys, which sends nothing before it is prepared; see `KeyspaceQuestions.search`."""
        return self.questions.search(query, columns, order, size=self._size, asks_server=asks_server)

    @property
    def lost_by_leaving(self) -> SafeText | None:
        """What is lost when rtui ends now; a scan is not, since it goes on from where it is saved."""
        return self.questions.lost_by_leaving

    def on_change(self, call: Callable[[], object]) -> None:
        """Have `call` called when the connection is lost or comes back, or the cluster has changed."""
        self.connection.on_change.append(call)
        self.deployment.on_change.append(call)

    async def start(self) -> None:
        """Connect and begin; returns once connected. Raises ConnectFailure."""
        await self.deployment.open()
        self.deployment.require_replicas()
        self.keys.home.forget_if_new()
        self.connection.on_change.append(self._connection_changed)
        self.passes.shown.begin(resume=self._resume)
        self._refreshing = start_supervised(self._refresh(), name="rtui server facts", failed=self._failed)

    async def close(self) -> None:
        """Save where the scan stands and end everything."""
        await self.questions.close()
        await end_task(self._refreshing)
        await self.health.close()
        await self.passes.end()
        await self.deployment.close()
        if self._log_file is not None:
            await asyncio.to_thread(self._log_file.close)

    def yield_to_input(self) -> None:
        """Leave the event loop to what the user does just now; may be called from any thread."""
        self.control.yield_to_input()
        self.questions.yield_to_input()

    async def filter(self, match: bytes | None, key_type: bytes | None = None) -> None:
        """Show keys of other names or types only; raises PatternError or GuardError for a filter beyond the bounds.

        They are scanned into a store of their own, so `store` is another object then. The pass over all keys is
        suspended meanwhile; without a filter it is shown again and goes on.
        """
        await self.passes.replace(ScanFilter(match, key_type), resume=self._resume)

    async def rescan(self) -> None:
        """Begin again with the same filter, from the beginning; what was denied is tried once more."""
        self.connection.forget_denied()
        self.connection.retry_now()
        self.capabilities.forget()
        self._rescans += 1
        await self.passes.replace(self.passes.only, resume=False, is_rescan=True)

    @for_purpose(Purpose.SERVER)
    async def database_count(self) -> int | None:
        """Return how many databases the server has; None where it does not say. Raises ConnectionLost."""
        return await database_count(self.connection, self.capabilities)

    async def open_namespace(self, node: Namespace) -> None:
        """Partition a namespace so that it can be listed; scan its prefix where only its count was kept."""
        if not self.store.needs_scan(node):
            for _ in self.store.open(node):
                await asyncio.sleep(YIELD_S)
            return
        async with self._targeted:
            if self.store.needs_scan(node):
                self.connection.forget_denied()
                with self.passes.suspended():
                    await self.passes.shown.list_counted(node, size=self._size)

    def knows_column(self, sort: Sort) -> bool:
        """Whether the rows of the analysis tell by what keys are to be sorted."""
        from rtui.server.key_column import FACTS  # noqa: PLC0415 - when it is wanted, with all that finds keys

        return self.questions.rows_with(FACTS[sort]) is not None

    def key_column(self, node: Namespace, sort: Sort, *, asks_server: bool = False) -> KeyColumn | KeptColumn:
        """Return what finds the fact by which the keys directly in a namespace are to be sorted."""
        from rtui.server.key_column import FACTS, KeyColumn  # noqa: PLC0415 - when it is wanted, with all that finds keys

        kept = None if asks_server else self.questions.rows_with(FACTS[sort])
        if kept is not None:
            from rtui.server.kept_column import KeptColumn  # noqa: PLC0415 - imports Polars, as the analysis did

            return KeptColumn(kept.rows, self.store, node, sort)
        pace, suspended = self.control.pace, self.passes.suspended
        return KeyColumn(self.deployment, self.store, node, sort, pace=pace, suspended=suspended, clock=self.clock)

    async def lookup(self, name: bytes) -> bool | None:
        """Whether a key of exactly this name exists; None when that is refused. Raises GuardError, ConnectionLost."""
        return await self.keys.lookup(name)

    async def row_facts(self, keys: Sequence[bytes], *, with_more: bool = False) -> list[RowFacts]:
        """What the listed keys show, see `facts.key_facts.row_facts`."""
        return await self.keys.row_facts(keys, with_more=with_more)

    async def key_facts(self, key: bytes, row: RowFacts | None = None) -> KeyFacts:
        """What the key under the cursor shows, see `facts.key_facts.key_facts`; a `row` of it spares round trips."""
        return await self.keys.key_facts(key, row)

    async def preview(self, facts: KeyFacts, page: Page | None = None) -> Preview:
        """Read one page of a key's value."""
        return await self.keys.preview(facts, page)

    async def find_place(self, facts: KeyFacts, text: str) -> Page | Unknown:
        """Return the page that begins at a typed place in a value, or why there is none."""
        return await self.keys.find_place(facts, text)

    async def read_field(self, facts: KeyFacts, field: bytes, most_bytes: int) -> bytes | Unknown:
        """Return the whole value of one field of a hash, or why it is not read."""
        return await self.keys.read_field(facts, field, most_bytes)

    async def references(self, registry: Registry, facts: KeyFacts, preview: Preview) -> KeyReferences:
        """Return what a key points to and who should point to it."""
        return await self.keys.references(registry, facts, preview)

    def string_windows(self, facts: KeyFacts) -> AsyncIterator[bytes | Unknown]:
        """Yield a whole string piece by piece."""
        return self.keys.string_windows(facts)

    @for_purpose(Purpose.SERVER)
    async def _refresh(self) -> None:
        """Ask every few seconds for what is shown of the servers: rights, memory, load, keys, nodes of a cluster."""
        for number in count():
            with contextlib.suppress(ConnectionLost):
                await self.connection.online()
                await self.capabilities.probe(self.connection)
                await self.keys.home.read_lfu(self._rescans)
                await self.health.refresh()
                shown = self.passes.shown
                is_scanned = shown.progress.state is ScanState.DONE
                size = await self.health.count_keys()
                if size is not None and (size or not shown.first_page.is_uncounted):
                    if is_scanned:
                        shown.observe_size(size)
                    self._revision += size != self._size
                    self._size = size
            if number:  # what it takes is imported then, and not while the first screen comes
                await self.health.observe()
            await asyncio.sleep(self.health.pause_s)

    def _failed(self, failure: RtuiError) -> None:
        """Show that a task beside the pass has ended."""
        self._failures[failure.happened] = None
        self._revision += 1

    def _connection_changed(self) -> None:
        """Forget what is known of the server once another connection has been made: it may be another server."""
        if self.keys.home.forget_if_new():
            self.keys.forget_looked_up()
