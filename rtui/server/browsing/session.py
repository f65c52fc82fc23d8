"""The session behind the screens: the server or cluster, and the store of its names with the passes that fill it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rtui.keyspace.rows.listing import Sort
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.store.store import NamespaceStore
from rtui.keyspace.text.display import SafeText
from rtui.keyspace.text.segments import Separators
from rtui.server import wall_clock
from rtui.server.browsing.passes import KeyspacePass, Passes
from rtui.server.browsing.status import BrowsingStatus, NodeStatuses
from rtui.server.deployment.nodes import Deployment
from rtui.server.facts.keys import KeyQuestions, database_count
from rtui.server.files import rows_folder
from rtui.server.health.session import HealthSession
from rtui.server.options import KEPT_ROWS, AnalysisOptions, BrowseOptions, FindOptions
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
    from rtui.analysis.query.query import MatchOrder, Query
    from rtui.analysis.query.terms import Fact
    from rtui.server.analysis.session import Analysed, AnalysisSession
    from rtui.server.search.run import KeyWeights
    from rtui.server.search.search import Search
    from rtui.server.user.log_file import CommandLogFile
    from rtui.table.kept_rows import PassRows


NEARLY_SAME: Final = 0.01
"""The largest relative change of the database at which names in memory are still searched, noting their age."""


class BrowsingSession:
    """A keyspace being browsed: screens read `revision`, `status` and `store`, and await methods with round trips.

    Everything runs on one event loop. Only `start` raises for an unreachable server. The analysis and a search are
    created when first used, and their modules are imported then. The scan is suspended while one of them runs, and an
    analysis while keys are searched.
    """

    def __init__(
        self,
        options: BrowseOptions,
        *,
        state_folder: Path | None = None,
        deployment: Deployment | None = None,
        clock: Callable[[], float] = wall_clock.now_s,
    ) -> None:
        """`state_folder` keeps the position of a scan and reports; `clock` returns seconds since the epoch.

        Raises PatternError or GuardError for a filter beyond the bounds.
        """
        target = options.target
        self.clock = clock
        self.deployment = Deployment(target) if deployment is None else deployment
        self.log = self.deployment.log
        self._log_file: CommandLogFile | None = None
        if options.log_file is not None:
            from rtui.server.user.log_file import CommandLogFile  # noqa: PLC0415 - few want it

            self._log_file = CommandLogFile(self.log, options.log_file)
        self.keys = KeyQuestions(self.deployment, clock)
        store = NamespaceStore(Separators(options.separators), budget_bytes=options.memory_budget_bytes)
        only = ScanFilter(options.match, options.key_type)
        file = SaveFile(target.label, target.db, state_folder)
        is_filling = options.is_filling or (lambda: False)

        def new_pass(store: NamespaceStore, control: RunControl, only: ScanFilter) -> KeyspacePass:
            return KeyspacePass(
                *(self.deployment, store, file), control=control, only=only, is_filling=is_filling, clock=clock
            )

        self._revision = 0
        self.passes = Passes(store, new_pass, only, Pace(options.pace), self._failed)
        self._options, self._state_folder = options, state_folder
        self._analysis: AnalysisSession | None = None
        self._search: Search | None = None
        self.health = HealthSession(
            *(self.deployment, self.capabilities),
            clock=clock,
            report=lambda: None if self.analysed is None else self.analysed.report,
            registry=options.registry,
        )
        self._node_statuses = NodeStatuses(self.deployment)
        self._size: int | None = None
        """The number of keys of the database by the servers' own count; None if any does not report it."""
        self._rescans = 0
        """The number of rescans; each one reads the LFU settings again."""
        self._refreshing: asyncio.Task[None] | None = None
        self._failures: dict[SafeText, None] = {}
        self._namespace_scans = asyncio.Lock()

    @property
    def connection(self) -> Connection:
        """The connection to the server that the user named; for a cluster to any node."""
        return self.deployment.home

    @property
    def capabilities(self) -> Capabilities:
        return self.keys.home.capabilities

    @property
    def revision(self) -> int:
        parts = (self.passes, self.connection, self.capabilities, self.deployment, self.health)
        return self._revision + sum(part.revision for part in parts)

    @property
    def target(self) -> Target:
        """The server and its database; for a service the primary as last reported by its Sentinels."""
        return self.connection.target

    @property
    def store(self) -> NamespaceStore:
        return self.passes.store

    @property
    def control(self) -> RunControl:
        return self.passes.control

    @property
    def status(self) -> BrowsingStatus:
        """The present state of everything but the tree."""
        now, only = self.passes.shown, self.passes.only
        size, now_s = now.size if self._size is None else self._size, self.clock()
        overview = self.passes.over_all_keys.overviews
        return BrowsingStatus(
            label=self.target.label,
            db=self.target.db,
            server=self.health.identity,
            no_touch=self.connection.no_touch,
            link=self.connection.link,
            pace=self.control.pace,
            progress=now.progress,
            dump=self.target.dump,
            mark=self.target.mark,
            cost=self.passes.cost,
            match=only.match,
            key_type=only.key_type,
            total=overview.total if size is None else size,
            sampled=now.overviews.sampled,
            generation=self.connection.generation,
            seen_age_s=None if now.stamp is None else max(0.0, now_s - now.stamp.at_s),
            outdated=now.outdated(now_s),
            complete=self.store.complete,
            analysis=None if self._analysis is None else self._analysis.under_way,
            nodes=self._node_statuses.now(now.scan, self.health.sizes),
            trouble=self.health.trouble,
            notes=(*self._failures, *self.deployment.notes, *self.connection.notes, *now.notes),
        )

    @property
    def keeps_all_keys(self) -> bool:
        return self.passes.keeps_all_keys

    @property
    def analysis(self) -> AnalysisSession:
        """The analysis of the keyspace, created when first used; it suspends the scan while it reads every key."""
        if self._analysis is None:
            from rtui.server.analysis.kept_reports import KeptReports  # noqa: PLC0415 - likewise
            from rtui.server.analysis.session import AnalysisSession  # noqa: PLC0415 - when it is wanted, with all that adds up

            def options() -> AnalysisOptions:
                passes, given = self.passes, self._options
                filters = (passes.store.separators.values, passes.only.match, passes.only.key_type)
                pace = passes.control.pace
                return AnalysisOptions(
                    *filters,
                    pace=pace,
                    columns=given.columns,
                    registry=given.registry,
                    keep_rows=KEPT_ROWS if given.keep_rows is None else given.keep_rows,
                    rows_folder=rows_folder() if given.rows_in_files else None,
                )

            home = self.deployment.home
            self._analysis = AnalysisSession(
                *(home, options, self.passes.suspended, self.clock),
                KeptReports(home.target.label, home.target.db, self._options.reports_folder or self._state_folder)
                if self._options.keep
                else None,
                deployment=self.deployment,
            )
        return self._analysis

    @property
    def analysed(self) -> Analysed | None:
        return None if self._analysis is None else self._analysis.analysed

    def search(
        self, query: Query, columns: Sequence[Fact] = (), order: MatchOrder | None = None, *, asks_server: bool = False
    ) -> Search:
        """Return a search of all keys, which sends no command before it is prepared.

        It searches the rows of the analysis. If they can't answer, or with `asks_server`, the server is searched, which
        suspends everything else; names that are in memory already are not scanned again.
        """
        rows = None if self._analysis is None or asks_server else self._analysis.rows
        why_not = None if rows is None else rows.why_not(query, order)
        if rows is not None and why_not is None:
            from rtui.analysis.query.plan import PlaceError  # noqa: PLC0415 - when it is wanted
            from rtui.server.search.rows import RowsSearch  # noqa: PLC0415 - imports Polars, as the analysis did
            from rtui.server.search.search import shards_of  # noqa: PLC0415

            separators, link = self.passes.store.separators, self.deployment.home
            with contextlib.suppress(PlaceError):  # a search of the server says what is wrong
                self._search = RowsSearch(
                    *(rows, query, separators, lambda: link.link),
                    shards=shards_of(self.deployment),
                    columns=columns,
                    order=order,
                    clock=self.clock,
                )
                return self._search
        from rtui.keyspace.store.name_search import HeldNames  # noqa: PLC0415 - when it is wanted
        from rtui.server.search.run import KeySearch  # noqa: PLC0415
        from rtui.server.search.search import LISTED, TOP_LISTED  # noqa: PLC0415

        all_keys = self.passes.over_all_keys
        store, stamp = all_keys.store, all_keys.stamp
        is_held = all_keys.only.is_open and store.complete and not store.memory.dropped
        is_held = is_held and stamp is not None and all_keys.outdated(self.clock()) is None
        is_held = is_held and not self._has_newer_figures(all_keys)
        options = FindOptions(
            self.passes.store.separators.values,
            columns=tuple(columns),
            limit=LISTED if order is None else TOP_LISTED,
            order=order,
            pace=self.passes.control.pace,
        )
        held, at_s = (HeldNames(store), stamp.at_s) if is_held and stamp is not None else (None, None)
        self._search = KeySearch(
            *(self.deployment, query, options),
            held=held,
            held_at_s=at_s,
            suspended=self._suspended_by_search,
            note=why_not,
            clock=self.clock,
        )
        return self._search

    def rows_with(self, fact: Fact) -> PassRows | None:
        """Return the rows of the analysis if they cover all keys and have this fact of each."""
        from rtui.analysis.query.query import EVERYTHING, MatchOrder  # noqa: PLC0415 - when it is wanted

        rows = None if self._analysis is None else self._analysis.rows
        return None if rows is None or rows.why_not(EVERYTHING, MatchOrder(fact)) is not None else rows

    def _has_newer_figures(self, names: KeyspacePass) -> bool:
        """Whether a later analysis has read keys that are not among these names."""
        analysed, stamp, size = self.analysed, names.stamp, self._size
        if analysed is None or stamp is None or size is None:
            return False
        is_later = analysed.report.head.made_at_s > stamp.at_s
        return is_later and abs(size - names.store.keys) > NEARLY_SAME * names.store.keys

    @contextlib.contextmanager
    def _suspended_by_search(self) -> Iterator[None]:
        control = None if self._analysis is None else self._analysis.control
        with self.passes.suspended():
            if control is not None:
                control.suspend()
            try:
                yield
            finally:
                if control is not None:
                    control.unsuspend()

    @property
    def lost_by_leaving(self) -> SafeText | None:
        """The results lost if rtui ends now; a scan is not one, since it continues from its saved position."""
        return None if self._analysis is None else self._analysis.status.lost_by_leaving

    def on_change(self, call: Callable[[], object]) -> None:
        """Register a callback for the connection being lost or restored, or changes of the cluster."""
        self.connection.on_change.append(call)
        self.deployment.on_change.append(call)

    async def start(self) -> None:
        """Connect and begin; returns once connected. Raises ConnectFailure."""
        await self.deployment.open()
        self.deployment.require_replicas()
        self.keys.forget_if_new()
        self.connection.on_change.append(self.keys.forget_if_new)
        self.passes.shown.begin(resume=self._options.resume)
        self._refreshing = start_supervised(self._refresh(), name="rtui server facts", failed=self._failed)

    async def close(self) -> None:
        """Save the position of the scan and end everything."""
        for work in (self._analysis, self._search):
            if work is not None:
                await work.close()
        await end_task(self._refreshing)
        await self.health.close()
        await self.passes.end()
        await self.deployment.close()
        if self._log_file is not None:
            await asyncio.to_thread(self._log_file.close)

    def yield_to_input(self) -> None:
        """Leave the event loop to the user's input for a moment; may be called from any thread."""
        self.control.yield_to_input()
        for work in (self._analysis, self._search):
            if work is not None:
                work.control.yield_to_input()

    async def filter(self, match: bytes | None, key_type: bytes | None = None) -> None:
        """Show only keys of other names or types; raises PatternError or GuardError for a filter beyond the bounds.

        They are scanned into a separate store, so `store` is another object then. The pass over all keys is suspended
        meanwhile; without a filter it is shown again and goes on.
        """
        await self.passes.replace(ScanFilter(match, key_type), resume=self._options.resume)

    async def rescan(self) -> None:
        """Begin again with the same filter from the start, trying denied commands once more."""
        self.connection.forget_denied()
        self.connection.retry_now()
        self.capabilities.forget()
        self._rescans += 1
        await self.passes.replace(self.passes.only, resume=False, is_rescan=True)

    @for_purpose(Purpose.SERVER)
    async def database_count(self) -> int | None:
        """Return the number of databases of the server; None if it does not report it. Raises ConnectionLost."""
        return await database_count(self.connection, self.capabilities)

    async def open_namespace(self, node: Namespace) -> None:
        """Partition a namespace so that it can be listed; scan its prefix if only its count was kept."""
        if not self.store.needs_scan(node):
            for _ in self.store.open(node):
                await asyncio.sleep(YIELD_S)
            return
        async with self._namespace_scans:
            if self.store.needs_scan(node):
                self.connection.forget_denied()
                with self.passes.suspended():
                    await self.passes.shown.list_counted(node, size=self._size)

    def knows_column(self, sort: Sort) -> bool:
        """Whether the rows of the analysis have the fact to sort keys by."""
        from rtui.server.search.run import FACTS  # noqa: PLC0415 - when it is wanted, with all that finds keys

        return self.rows_with(FACTS[sort]) is not None

    def key_column(self, node: Namespace, sort: Sort, *, asks_server: bool = False) -> KeyWeights:
        """Return the reader of the fact by which the keys directly in a namespace are to be sorted."""
        from rtui.server.search.run import FACTS, KeyColumn  # noqa: PLC0415 - when it is wanted, with all that finds keys

        kept = None if asks_server else self.rows_with(FACTS[sort])
        if kept is not None:
            from rtui.server.search.rows import KeptColumn  # noqa: PLC0415 - imports Polars, as the analysis did

            return KeptColumn(kept.rows, self.store, node, sort)
        pace, suspended = self.control.pace, self.passes.suspended
        return KeyColumn(self.deployment, self.store, node, sort, pace=pace, suspended=suspended, clock=self.clock)

    @for_purpose(Purpose.SERVER)
    async def _refresh(self) -> None:
        """Refresh rights, memory, load, number of keys and cluster nodes every few seconds."""
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
        self._failures[failure.happened] = None
        self._revision += 1
