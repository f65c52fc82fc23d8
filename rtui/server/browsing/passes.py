"""Fills the namespace store of the tree: a first page, an overview from a sample, then the scan of all keys.

The first page shows rows after one round trip. On a large database a sample follows, from which the largest namespaces
are listed with estimated counts. The scan then continues from the first page's cursor, or from the saved position of an
earlier run, and its exact counts replace the estimates.

The first page of a cluster is that of one node, while the others are being connected to; then all are scanned in
parallel. Such a scan is never saved: a later run could not know the keys of slots that have moved since, and cursors
are valid for one run of their node, so little of it could be resumed as a rule.

One pass runs at a time: with a filter, without one, or again. Keys under a filter of names or types are scanned into a
separate store; the pass over all keys is suspended meanwhile, and goes on when the filter is cleared.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.store.store import NamespaceStore, Refill
from rtui.keyspace.text.display import SafeText
from rtui.keyspace.text.glob import namespace_pattern
from rtui.server import guard, wall_clock
from rtui.server.browsing.first_rows import FirstPage, Overviews
from rtui.server.deployment.nodes import Deployment, ScannedCluster, ServerNode
from rtui.server.scan.cursor import dialect_of
from rtui.server.scan.node import Primary, ScanNode, SplitSink, with_slots
from rtui.server.scan.pace import Pace
from rtui.server.scan.page import ScanFilter, SizeSnapshot, disagreement, key_count, take_snapshot
from rtui.server.scan.progress import Cost, Progress, ScanNote, ScanState
from rtui.server.scan.run_control import YIELD_S, RunControl
from rtui.server.scan.savepoint import SavedPosition, SaveFile
from rtui.server.scan.scan import Scan
from rtui.server.wire.command_log import Purpose, for_purpose
from rtui.server.wire.connection import Connection
from rtui.server.wire.errors import ConnectionLost, RtuiError
from rtui.server.wire.identity import Outdated, ServerStamp, outdated_by_size
from rtui.server.wire.supervised_tasks import end_task, failure_of, for_each, start_supervised

FILL_POLL_S: Final = 0.2


def summed(parts: Sequence[SizeSnapshot | None]) -> SizeSnapshot | None:
    """Return the size of a database that lies on several servers; None if that of any is unknown."""
    known = [part for part in parts if part is not None]
    if len(known) == 1 == len(parts):
        return known[0]
    if len(known) < len(parts):
        return None
    sizes, writes, saves = zip(*((part.size, part.writes, part.saved_at) for part in known), strict=True)
    return SizeSnapshot(
        size=None if None in sizes else sum(sizes),
        run_id=" ".join(str(part.run_id) for part in known),
        removed=sum(part.removed for part in known),
        writes=None if None in writes else sum(writes),
        saved_at=None if None in saves else sum(saves),
    )


class KeyspacePass:
    """Fills an empty store; call `run` once, the rest may be called and read at any time."""

    def __init__(
        self,
        deployment: Deployment,
        store: NamespaceStore,
        file: SaveFile,
        *,
        control: RunControl,
        only: ScanFilter,
        is_filling: Callable[[], bool],
        clock: Callable[[], float] = wall_clock.now_s,
    ) -> None:
        """For `is_filling` see BrowseOptions; `clock` returns seconds since the epoch."""
        self.stamp: ServerStamp | None = None
        """When, and in which run of the server, the keys in the store were read: at the beginning or the end of the
        pass."""
        self.size: int | None = None
        """The number of keys of the database at the beginning of the pass, if known."""
        self.first_page = FirstPage(only)
        self.scan: Scan | None = None
        self.store = store
        self.size_when_done: int | None = None
        """The number of keys of the database by the first DBSIZE after the end of the scan."""
        self.size_since: int | None = None
        """The same by the latest DBSIZE."""
        self._deployment = deployment
        self._connection = deployment.home
        """The server; for a cluster the node whose keys are listed first."""
        self._primary: Primary | None = None
        """The primary if that is a replica."""
        self._nodes: tuple[ServerNode, ...] = ()
        self._position = SavedPosition(file, only)
        self.only = only
        self.control = control
        control.on_change.append(self._save_when_paused)
        self._is_filling = is_filling
        self._clock = clock
        self.overviews = Overviews(deployment, store, control, only)
        """The samples behind the estimated counts."""
        self._other_cost = Cost()
        """The cost of everything but the first page, the overviews and the scan."""
        self._failure: SafeText | None = None
        self._before: SizeSnapshot | None = None
        """The size of the database when its first page arrived; None for a resumed scan."""
        self._notes: dict[SafeText, None] = {}
        self._has_repeats = False
        self._changes = 0
        self._task: asyncio.Task[None] | None = None

    @property
    def revision(self) -> int:
        parts = (self.first_page, self.overviews, self.control)
        return self.cost.commands + self._changes + sum(part.revision for part in parts)

    @property
    def cost(self) -> Cost:
        before = self.first_page.cost + self._other_cost + self.overviews.cost
        return before if self.scan is None else before + self.scan.cost

    @property
    def progress(self) -> Progress:
        """The state and progress of the pass, in keys of the store."""
        keys = self.store.keys
        if self._failure is not None:
            return Progress(state=ScanState.FAILED, keys=keys, fraction=None, reason=self._failure)
        if self.scan is not None:
            now = replace(self.scan.progress, keys=keys)
            is_counted = now.state is not ScanState.DONE or self.store.complete
            return now if is_counted else replace(now, state=ScanState.RUNNING)
        if self.store.complete:
            return Progress(state=ScanState.DONE, fraction=1.0, keys=keys)
        if self.first_page.waits_for is not None:
            return Progress(state=ScanState.WAITING, keys=keys, reason=self.first_page.waits_for)
        state = ScanState.SAMPLING if self.overviews.is_sampling else ScanState.READY
        return Progress(state=ScanState.PAUSED if self.control.is_paused else state, keys=keys)

    @property
    def notes(self) -> tuple[SafeText, ...]:
        return (*self._position.notes, *self._notes, *(() if self.scan is None else self.scan.notes))

    def observe_size(self, size: int) -> None:
        """Take note of the size of the database some time after the end of the scan."""
        self._changes += size != self.size_since
        self.size_since = size
        if self.size_when_done is None:
            self.size_when_done = size

    def outdated(self, now_s: float) -> Outdated | None:
        """Return why the keys are outdated, None while they hold; a running scan notices it and begins again."""
        state = self.progress.state
        if self.stamp is None or not (state.is_over or state is ScanState.PAUSED):
            return None
        why = None
        if not self._deployment.is_cluster:  # whose keys outlive its nodes
            why = self.stamp.outdated(self._connection.server, self._connection.generation, now_s)
        if why is not None or state is not ScanState.DONE:
            return why
        return outdated_by_size(self.store.keys, self.size_when_done, self.size_since)

    def begin(self, *, resume: bool) -> None:
        """Run in a task of its own; `resume` continues from a saved scan."""
        self._task = asyncio.create_task(self.run(resume=resume), name="rtui pass")

    async def end(self) -> None:
        if self.scan is not None and not self.scan.state.is_over:
            self.save()
        self.control.stop()
        await end_task(self._task)

    def _save_when_paused(self) -> None:
        if self.control.is_paused and not self.control.is_stopped:
            self.save()

    def save(self) -> None:
        """Save the position of the scan for a later run, if the server can be recognised then."""
        if self.scan is not None and not self._deployment.is_cluster:
            self._position.save(self.scan, self._connection)

    @for_purpose(Purpose.SCAN)
    async def run(self, *, resume: bool) -> None:
        """Run the whole pass; a failure is in `progress`, only cancellation is raised."""
        failure = await failure_of(self._fill(resume=resume), name="rtui pass")
        if failure is not None:
            self._failure = failure.happened
        self._changes += 1

    async def _fill(self, *, resume: bool) -> None:
        """Read the first page, take an overview, then scan the rest; raises an RtuiError that ends it early."""
        is_cluster = self._deployment.is_cluster
        first = await self._deployment.first_scanned()
        self._connection, self._primary = first.connection, first.primary
        node = self._position.node(self._connection, self._primary) if resume and not is_cluster else None
        if node is None:
            page = self.first_page
            node = await page.read(self._connection, self._primary, self.store)
            self._before, self.size = page.before, page.size
        self._stamp()
        if self._is_filling():
            node = await self._wait_filled()
        nodes = [] if node is None else [node]
        cluster = ScannedCluster(self._deployment) if is_cluster else None
        if cluster is not None:
            self._nodes = await self._deployment.scanned()
            snapshots = await for_each([node.connection for node in self._nodes], self._snapshot_of)
            self._before = summed(snapshots)
            self.size = None if self._before is None else self._before.size
            self._other_cost += Cost(commands=sum(snapshot is not None for snapshot in snapshots))
            sizes = {one.id: None if now is None else now.size for one, now in zip(self._nodes, snapshots, strict=True)}
            initial, *others = cluster.scan_nodes(self._nodes, sizes)
            nodes = [replace(initial, first_keys=self.first_page.keys), *others]
        if not nodes:
            await self._complete()
            return
        if not is_cluster:
            nodes = [await with_slots(nodes[0])]
        nodes = await self.overviews.take(nodes, self.size)
        only, store = self.only, self.store
        self._position.begun_on = nodes[0].run_id
        self.scan = scan = Scan(
            nodes,
            store.add,
            self.control,
            match=only.match,
            key_type=only.key_type,
            on_restart=self._empty_store,
            split_sink=SplitSink(store.separators.values, store.add_split),
            cluster=cluster,
        )
        await scan.run()
        if scan.state is ScanState.DONE:
            self._has_repeats = self._has_repeats or scan.repeats_possible
            await self._complete()
            self._position.forget()

    async def _snapshot_of(self, connection: Connection) -> SizeSnapshot | None:
        """Return the size of a node's part of the database; None if it is unreachable."""
        try:
            return await take_snapshot(connection)
        except ConnectionLost:
            return None

    async def _wait_filled(self) -> ScanNode:
        """Wait until the server has been filled, taking overviews of the keys so far; return all of it to scan.

        The keys of the first page are repeated then.
        """
        while self._is_filling():
            await asyncio.sleep(FILL_POLL_S)
            with contextlib.suppress(ConnectionLost):
                (reply,) = await self._connection.run(guard.dbsize())
                self.size = self.size if (size := key_count(reply)) is None else size
            await self.overviews.take([self._whole_server(size=self.size)], self.size)
        self._has_repeats = True
        return self._whole_server(size=self.size)

    def _whole_server(self, *, size: int | None) -> ScanNode:
        server = self._connection.server
        return ScanNode(self._connection, dialect_of(server), size=size, run_id=server.run_id, primary=self._primary)

    @for_purpose(Purpose.SCAN)
    async def list_counted(self, namespace: Namespace, *, size: int | None) -> None:
        """Scan a namespace that has only a count for its keys; a cancelled scan leaves it unchanged.

        `size` is that of the database, if known. Raises an RtuiError with the reason if the scan fails.
        """
        filling, accepts = Refill(self.store, namespace), self.only.names()

        def add(keys: list[bytes]) -> None:
            filling.add(keys if accepts is None else [key for key in keys if accepts(key)])

        cluster = ScannedCluster(self._deployment)
        nodes = [cluster.scan_node(node, size) for node in await self._deployment.scanned()]
        control, pattern = RunControl(self.control.pace), namespace_pattern(namespace.path())
        whole = cluster if self._deployment.is_cluster else None
        scan = Scan(nodes, add, control, match=pattern, key_type=self.only.key_type, cluster=whole)
        try:
            await scan.run()
        finally:
            self._other_cost += scan.cost
            if scan.state is ScanState.DONE:
                filling.done()
            else:
                filling.abandon()
        if scan.state is not ScanState.DONE:
            raise RtuiError("The namespace can't be listed", scan.progress.reason or "The scan failed.")

    async def _complete(self) -> None:
        """Make the counts final, and add a note if the server's own count differs."""
        self.store.repeats_possible = self._has_repeats
        for _ in self.store.settle():
            await asyncio.sleep(YIELD_S)
        self.store.drop_estimates()
        before, connection, keys = self._before, self._connection, self.store.keys
        is_countable = self.only.is_open and not self._has_repeats
        if before is not None and is_countable and keys != before.size:
            with contextlib.suppress(ConnectionLost):
                asked = [node.connection for node in self._nodes] or [connection]
                after = summed([await take_snapshot(link) for link in asked])
                is_replica = any(link.server.role == "replica" for link in asked)
                note = None if after is None else disagreement(before, after, keys, is_replica=is_replica)
                if note is not None:
                    self._notes[note] = None
                    self._changes += 1
        self.store.complete = True
        self._stamp()

    def _stamp(self) -> None:
        self.stamp = self._connection.stamp(self._clock())

    def _empty_store(self, note: ScanNote) -> None:
        """Empty the store: every key is delivered again."""
        self.store.reset()
        self.overviews.forget()
        self._has_repeats = False
        self._stamp()


class Passes:
    """The pass that is shown, and the suspended one over all keys while a filter is active."""

    def __init__(
        self,
        store: NamespaceStore,
        new_pass: Callable[[NamespaceStore, RunControl, ScanFilter], KeyspacePass],
        only: ScanFilter,
        pace: Pace,
        failed: Callable[[RtuiError], None],
    ) -> None:
        """`new_pass` returns a pass that has not begun; `failed` is called with the failure to begin another one."""
        self.store = store
        """The store filled by the pass that is shown; a filter has a separate one."""
        self.only = only
        """The filter that was chosen last."""
        self._new_pass, self._failed = new_pass, failed
        self.shown = new_pass(store, RunControl(pace), only)
        self._unfiltered: KeyspacePass | None = None
        """The pass over all keys, suspended while a filter is active; None without a filter."""
        self._revision = 0
        self._spent = Cost()
        self._suspensions = 0
        """The number of running tasks that suspend the scan."""
        self._replacing: asyncio.Task[None] | None = None
        self._is_rescan = False
        self._next_resumes: bool | None = None
        """Whether the next pass resumes a saved one; None if no other pass is requested."""

    @property
    def revision(self) -> int:
        return self._revision + self._spent.commands + self.store.revision + self.shown.revision

    @property
    def cost(self) -> Cost:
        return self._spent + self.shown.cost + (Cost() if self._unfiltered is None else self._unfiltered.cost)

    @property
    def control(self) -> RunControl:
        return self.shown.control

    @property
    def over_all_keys(self) -> KeyspacePass:
        """The suspended pass over all keys if there is one, else the one shown, filtered or not."""
        return self.shown if self._unfiltered is None else self._unfiltered

    @property
    def keeps_all_keys(self) -> bool:
        """Whether the pass over all keys is only suspended by a filter, and will go on when it is cleared."""
        return self._unfiltered is not None

    @contextlib.contextmanager
    def suspended(self) -> Iterator[None]:
        """Suspend the scan, also one that begins meanwhile, while another task takes the server's time."""
        self._suspensions += 1
        self.control.suspend()
        try:
            yield
        finally:
            self._suspensions -= 1
            if not self._suspensions:
                self.control.unsuspend()

    async def replace(self, only: ScanFilter, *, resume: bool, is_rescan: bool = False) -> None:
        """Replace the pass by another one into the emptied store; of several calls the last one counts.

        It runs in a task of its own, since the caller may be cancelled; one pass runs at a time.
        """
        self.only = only
        self._is_rescan = is_rescan
        self._next_resumes = resume
        if self._replacing is None or self._replacing.done():
            self._replacing = start_supervised(self._replace(), name="rtui new pass", failed=self._failed)
        await asyncio.shield(self._replacing)

    async def _replace(self) -> None:
        """End the running pass, and begin the one requested last.

        The pass over all keys is suspended while a filter fills an empty store, and then goes on.
        """
        while self._next_resumes is not None:
            if self._unfiltered is None and self.shown.only.is_open and not self.only.is_open:
                self.control.suspend()
                self._unfiltered = self.shown
                self._revision += self.shown.revision + self.store.revision
                self.store = NamespaceStore(self.store.separators, budget_bytes=self.store.budget_bytes)
            else:
                await self.shown.end()
                self._spent += self.shown.cost
                self._revision += self.shown.revision
            resume, self._next_resumes = self._next_resumes, None
            pace = self.control.pace
            if self._unfiltered is not None and self.only.is_open and not self._is_rescan:
                self._revision += self.store.revision + 1
                self.shown, self._unfiltered = self._unfiltered, None
                self.store = self.shown.store
                self.control.pace = pace
                if not self._suspensions:
                    self.control.unsuspend()
                continue
            self.store.reset()
            self.shown = self._new_pass(self.store, RunControl(pace), self.only)
            if self._suspensions:
                self.control.suspend()
            self.shown.begin(resume=resume)
            self._revision += 1

    async def end(self) -> None:
        self._next_resumes = None
        await end_task(self._replacing)
        await self.shown.end()
        if self._unfiltered is not None:
            await self._unfiltered.end()
