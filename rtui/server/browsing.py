"""The session behind the browse screen: one connection, the namespace store, and the pass that fills it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rtui.analysis.facts import KeyFacts, LfuSettings, RowFacts, Unknown
from rtui.keyspace.rows.ordering import Sort
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.store.store import NamespaceStore
from rtui.keyspace.text.display import SafeText
from rtui.keyspace.text.segments import Separators
from rtui.server import guard
from rtui.server.browsing_status import BrowsingStatus
from rtui.server.facts.key_facts import key_facts, key_preview, row_facts
from rtui.server.facts.preview.page import Page, Preview
from rtui.server.facts.values import find_place, read_field, string_windows
from rtui.server.hot.lfu_settings import lfu_settings
from rtui.server.keyspace_pass import KeyspacePass
from rtui.server.options import AnalysisOptions, BrowseOptions
from rtui.server.scan.pace import Pace
from rtui.server.scan.page import ScanFilter, key_count
from rtui.server.scan.progress import Cost, ScanState
from rtui.server.scan.run_control import YIELD_S, RunControl
from rtui.server.scan.savepoint import SaveFile
from rtui.server.scan.server_time import CostWatch
from rtui.server.wire.capability import Capabilities, Feature, Querier
from rtui.server.wire.command_log import Purpose, for_purpose
from rtui.server.wire.connection import Connection
from rtui.server.wire.errors import ConnectionLost, RtuiError
from rtui.server.wire.replies import ServerError
from rtui.server.wire.supervised_tasks import end_task, start_supervised

if TYPE_CHECKING:
    from rtui.analysis.query.matches import Order
    from rtui.analysis.query.query import Query
    from rtui.analysis.query.terms import Fact
    from rtui.server.analysis_session import Analysed, AnalysisSession
    from rtui.server.command_log_file import CommandLogFile
    from rtui.server.key_column import KeyColumn
    from rtui.server.key_search import KeySearch

REFRESH_EVERY_S: Final = 3.0
"""How often the server is asked for memory and load."""


class BrowsingSession:
    """What the screen reads: `revision` grows with every change, `status` and `store` hold the data.

    Everything runs on one event loop. Only `start` raises for a server that can't be reached.
    """

    def __init__(
        self,
        options: BrowseOptions,
        *,
        state_folder: Path | None = None,
        connection: Connection | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`state_folder` is where the position of a scan and reports are kept; `clock` gives seconds since the epoch.

        Raises PatternError or GuardError for a filter beyond the bounds.
        """
        self.target = target = options.target
        self.clock = clock
        self.connection = Connection(target) if connection is None else connection
        self.log = self.connection.log
        self._log_file: CommandLogFile | None = None
        if options.log_file is not None:
            from rtui.server.command_log_file import CommandLogFile  # noqa: PLC0415 - few want it

            self._log_file = CommandLogFile(self.log, options.log_file)
        self.capabilities = Capabilities()
        self.store = NamespaceStore(Separators(options.separators), budget_bytes=options.memory_budget_bytes)
        self._only = ScanFilter(options.match, options.key_type)
        self._resume = options.resume
        self._columns = options.columns
        self._keep, self._state_folder = options.keep, state_folder
        file = SaveFile(target.label, target.db, state_folder)
        is_filling = options.is_filling or (lambda: False)
        self._new_pass = partial(KeyspacePass, self.connection, file=file, is_filling=is_filling, clock=clock)
        self._revision = 0
        self._size: int | None = None
        self._lfu = LfuSettings()
        self._memory_watch = CostWatch()
        self._spent = Cost()
        self._suspensions = 0
        """How many tasks run that the scan is suspended for."""
        self._pass = self._new_pass(self.store, control=RunControl(Pace(options.pace)), only=self._only)
        self._unfiltered: KeyspacePass | None = None
        """The pass over all keys, suspended while a filter shows some of them; None while no filter does."""
        self._refreshing: asyncio.Task[None] | None = None
        self._replacing: asyncio.Task[None] | None = None
        self._is_rescan = False
        self._next_resumes: bool | None = None
        """Whether the next pass goes on from a saved one; None when no other pass is wanted."""
        self._failures: dict[SafeText, None] = {}
        """Why tasks beside the pass have ended."""
        self._targeted = asyncio.Lock()
        self._analysis: AnalysisSession | None = None
        self._search: KeySearch | None = None
        """The latest search for keys."""
        self._generation = 0

    @property
    def revision(self) -> int:
        """Grows whenever something that is shown has changed."""
        parts = (self.store, self.connection, self.capabilities, self._pass)
        return self._revision + self._spent.commands + sum(part.revision for part in parts)

    @property
    def control(self) -> RunControl:
        """Pauses, resumes and paces the scan; another scan, such as of a filter, has another one."""
        return self._pass.control

    @property
    def status(self) -> BrowsingStatus:
        """Everything but the tree, now."""
        now = self._pass
        size, now_s = now.size if self._size is None else self._size, self.clock()
        return BrowsingStatus(
            label=self.target.label,
            db=self.target.db,
            server=self.connection.server,
            no_touch=self.connection.no_touch,
            link=self.connection.state,
            pace=self.control.pace,
            progress=now.progress,
            mark=self.target.mark,
            cost=self._spent + now.cost + (Cost() if self._unfiltered is None else self._unfiltered.cost),
            match=self._only.match,
            key_type=self._only.key_type,
            total=now.overview.total if size is None else size,
            sampled=now.overview.sampled,
            generation=self.connection.generation,
            seen_age_s=None if now.stamp is None else max(0.0, now_s - now.stamp.at_s),
            outdated=now.outdated(now_s),
            complete=self.store.complete,
            notes=(*self._failures, *now.notes),
        )

    @property
    def keeps_all_keys(self) -> bool:
        """Whether the pass over all keys waits while a filter shows some: without the filter it goes on, not anew."""
        return self._unfiltered is not None

    @property
    def analysis(self) -> AnalysisSession:
        """What the keyspace holds, once it is asked for; the scan is suspended while every key is asked."""
        if self._analysis is None:
            from rtui.server.analysis_session import AnalysisSession  # noqa: PLC0415 - when it is wanted, with all that adds up
            from rtui.server.kept_reports import KeptReports  # noqa: PLC0415 - likewise

            def options() -> AnalysisOptions:
                filters = (self.store.separators.values, self._only.match, self._only.key_type)
                return AnalysisOptions(*filters, pace=self.control.pace, columns=self._columns)

            kept = KeptReports(self.target.label, self.target.db, self._state_folder) if self._keep else None
            self._analysis = AnalysisSession(self.connection, options, self.suspended, self.clock, kept)
        return self._analysis

    @property
    def analysed(self) -> Analysed | None:
        """The latest figures of the analysis; None before there are any."""
        return None if self._analysis is None else self._analysis.analysed

    def search(self, query: Query, columns: Sequence[Fact] = (), order: Order | None = None) -> KeySearch:
        """Return a search of all keys, which sends nothing before it is prepared.

        Names that are held already are not scanned again. Everything else is suspended while it runs.
        """
        from rtui.keyspace.store.held_names import HeldNames  # noqa: PLC0415 - when it is wanted
        from rtui.server.find import FindOptions, FindRun  # noqa: PLC0415
        from rtui.server.key_search import LISTED, TOP_LISTED, KeySearch  # noqa: PLC0415

        all_keys = self._pass if self._unfiltered is None else self._unfiltered
        store, stamp = all_keys.store, all_keys.stamp
        is_held = all_keys.only.is_open and store.complete and not store.memory.dropped
        is_held = is_held and stamp is not None and all_keys.outdated(self.clock()) is None
        options = FindOptions(
            self.store.separators.values,
            columns=tuple(columns),
            limit=LISTED if order is None else TOP_LISTED,
            order=order,
            pace=self.control.pace,
        )
        held, at_s = (HeldNames(store), stamp.at_s) if is_held and stamp is not None else (None, None)
        run = FindRun(self.connection, query, options, held=held, held_at_s=at_s, clock=self.clock)
        self._search = KeySearch(run, self._suspended_by_search)
        return self._search

    @contextlib.contextmanager
    def _suspended_by_search(self) -> Iterator[None]:
        """Suspend the scan and an analysis while keys are searched."""
        control = None if self._analysis is None else self._analysis.control
        with self.suspended():
            if control is not None:
                control.suspend()
            try:
                yield
            finally:
                if control is not None:
                    control.unsuspend()

    @property
    def lost_by_leaving(self) -> SafeText | None:
        """What is lost when rtui ends now; a scan is not, since it goes on from where it is saved."""
        return None if self._analysis is None else self._analysis.status.lost_by_leaving

    def on_change(self, call: Callable[[], object]) -> None:
        """Have `call` called when the connection is lost or comes back."""
        self.connection.on_change.append(call)

    async def start(self) -> None:
        """Connect and begin; returns once connected. Raises ConnectFailure."""
        await self.connection.open()
        self._generation = self.connection.generation
        self.connection.on_change.append(self._connection_changed)
        self._pass.begin(resume=self._resume)
        self._refreshing = start_supervised(self._refresh_server(), name="rtui server facts", failed=self._failed)

    async def close(self) -> None:
        """Save where the scan stands and end everything."""
        if self._analysis is not None:
            await self._analysis.close()
        if self._search is not None:
            await self._search.close()
        self._next_resumes = None
        await end_task(self._replacing)
        await end_task(self._refreshing)
        await self._pass.end()
        if self._unfiltered is not None:
            await self._unfiltered.end()
        await self.connection.close()
        if self._log_file is not None:
            await asyncio.to_thread(self._log_file.close)

    def yield_to_input(self) -> None:
        """Leave the event loop to what the user does just now; may be called from any thread."""
        self.control.yield_to_input()
        if self._analysis is not None:
            self._analysis.control.yield_to_input()
        if self._search is not None:
            self._search.control.yield_to_input()

    @contextlib.contextmanager
    def suspended(self) -> Iterator[None]:
        """Suspend the scan while something else takes the server's time, also one that begins meanwhile."""
        self._suspensions += 1
        self.control.suspend()
        try:
            yield
        finally:
            self._suspensions -= 1
            if not self._suspensions:
                self.control.unsuspend()

    async def filter(self, match: bytes | None, key_type: bytes | None = None) -> None:
        """Show keys of other names or types only; raises PatternError or GuardError for a filter beyond the bounds.

        They are scanned into a store of their own, so `store` is another object then. The pass over all keys is
        suspended meanwhile; without a filter it is shown again and goes on.
        """
        await self._restart_pass(ScanFilter(match, key_type), resume=self._resume)

    async def rescan(self) -> None:
        """Begin again with the same filter, from the beginning; what was denied is tried once more."""
        self.connection.forget_denied()
        self.connection.retry_now()
        self.capabilities.forget()
        await self._restart_pass(self._only, resume=False, is_rescan=True)

    @for_purpose(Purpose.LOOKUP)
    async def lookup(self, name: bytes) -> bool | None:
        """Whether a key of exactly this name exists, by one TYPE; None when that is refused, now or earlier.

        Raises GuardError for a name that is too long to be sent, and ConnectionLost.
        """
        (reply,) = await Querier(self.connection, self.capabilities).run(guard.key_type(name))
        return None if isinstance(reply, ServerError) else reply != b"none"

    async def open_namespace(self, node: Namespace) -> None:
        """Partition a namespace so that it can be listed; scan its prefix where only its count was kept."""
        if not self.store.needs_scan(node):
            for _ in self.store.open(node):
                await asyncio.sleep(YIELD_S)
            return
        async with self._targeted:
            if self.store.needs_scan(node):
                self.connection.forget_denied()
                with self.suspended():
                    await self._pass.list_counted(node, size=self._size)

    async def row_facts(self, keys: Sequence[bytes]) -> list[RowFacts]:
        """What the listed keys show, see `facts.key_facts.row_facts`."""
        return await row_facts(self.connection, keys, self.capabilities, clock=self.clock)

    async def key_facts(self, key: bytes) -> KeyFacts:
        """What the key under the cursor shows, see `facts.key_facts.key_facts`."""
        return await key_facts(
            self.connection, key, self.capabilities, lfu=self._lfu, watch=self._memory_watch, clock=self.clock
        )

    def key_column(self, node: Namespace, sort: Sort) -> KeyColumn:
        """Return what asks for the fact by which the keys directly in a namespace are to be sorted."""
        from rtui.server.key_column import KeyColumn  # noqa: PLC0415 - when it is wanted, with all that finds keys

        pace, suspended = self.control.pace, self.suspended
        return KeyColumn(self.connection, self.store, node, sort, pace=pace, suspended=suspended, clock=self.clock)

    async def preview(self, facts: KeyFacts, page: Page | None = None) -> Preview:
        """Read one page of a key's value."""
        return await key_preview(self.connection, facts, page, capabilities=self.capabilities)

    @for_purpose(Purpose.PREVIEW)
    async def find_place(self, facts: KeyFacts, text: str) -> Page | Unknown:
        """Return the page that begins at a typed place in a value, or why there is none."""
        return await find_place(self.connection, facts, text, capabilities=self.capabilities, now_s=self.clock())

    @for_purpose(Purpose.PREVIEW)
    async def read_field(self, facts: KeyFacts, field: bytes) -> bytes | Unknown:
        """Return the whole value of one field of a hash, or why it is not read."""
        return await read_field(self.connection, facts, field, capabilities=self.capabilities)

    def string_windows(self, facts: KeyFacts) -> AsyncIterator[bytes | Unknown]:
        """Yield a whole string piece by piece."""
        return string_windows(self.connection, facts, capabilities=self.capabilities)

    async def _restart_pass(self, only: ScanFilter, *, resume: bool, is_rescan: bool = False) -> None:
        """Replace the pass by another one into the emptied store; of several calls the last one counts.

        It is done in a task of its own, since the caller may be cancelled; one pass runs at a time.
        """
        self._only = only
        self._is_rescan = is_rescan
        self._next_resumes = resume
        if self._replacing is None or self._replacing.done():
            self._replacing = start_supervised(self._replace_pass(), name="rtui new pass", failed=self._failed)
        await asyncio.shield(self._replacing)

    async def _replace_pass(self) -> None:
        """End the pass that runs, and begin the one that was wanted last.

        The pass over all keys is suspended while a filter shows some of them from an empty store, then goes on.
        """
        while self._next_resumes is not None:
            if self._unfiltered is None and self._pass.only.is_open and not self._only.is_open:
                self.control.suspend()
                self._unfiltered = self._pass
                self._revision += self._pass.revision + self.store.revision
                self.store = NamespaceStore(self.store.separators, budget_bytes=self.store.budget_bytes)
            else:
                await self._pass.end()
                self._spent += self._pass.cost
                self._revision += self._pass.revision
            resume, self._next_resumes = self._next_resumes, None
            pace = self.control.pace
            if self._unfiltered is not None and self._only.is_open and not self._is_rescan:
                self._revision += self.store.revision + 1
                self._pass, self._unfiltered = self._unfiltered, None
                self.store = self._pass.store
                self.control.pace = pace
                if not self._suspensions:
                    self.control.unsuspend()
                continue
            self.store.reset()
            self._pass = self._new_pass(self.store, control=RunControl(pace), only=self._only)
            if self._suspensions:
                self.control.suspend()
            self._pass.begin(resume=resume)
            self._revision += 1

    def _failed(self, failure: RtuiError) -> None:
        """Show that a task beside the pass has ended."""
        self._failures[failure.happened] = None
        self._revision += 1

    def _connection_changed(self) -> None:
        """Forget what is known of the server once another connection has been made: it may be another server."""
        if self.connection.generation != self._generation:
            self._generation = self.connection.generation
            self.capabilities.forget()
            self._lfu = LfuSettings()
            self._memory_watch = CostWatch()

    @for_purpose(Purpose.SERVER)
    async def _refresh_server(self) -> None:
        """Probe the capabilities, and refresh memory, load and size every few seconds."""
        while True:
            with contextlib.suppress(ConnectionLost):
                await self.connection.online()
                await self.capabilities.probe(self.connection)
                self._lfu = await lfu_settings(self.connection, self.capabilities)
                if self.capabilities.allows(Feature.INFO):
                    await self.connection.refresh()
                if self.capabilities.allows(Feature.DBSIZE):
                    scanned = self._pass if self._pass.progress.state is ScanState.DONE else None
                    (reply,) = await self.connection.run(guard.dbsize())
                    self.capabilities.record(Feature.DBSIZE, reply)
                    size = key_count(reply)
                    if scanned is not None and size is not None:
                        scanned.observe_size(size)
                    if size is not None and size != self._size:
                        self._size = size
                        self._revision += 1
            await asyncio.sleep(REFRESH_EVERY_S)
