"""The session behind the browse screen, without a screen: one connection, one store, the scan that fills it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from rtui.analysis.estimate import Estimate, NamespaceTally
from rtui.analysis.facts import KeyFacts, RowFacts
from rtui.keyspace.display import SafeText
from rtui.keyspace.glob import check_pattern, prefix_pattern
from rtui.keyspace.namespace import Namespace
from rtui.keyspace.refill import Refill
from rtui.keyspace.segments import Separators
from rtui.keyspace.slices import Slices
from rtui.keyspace.store import NamespaceStore
from rtui.server import guard
from rtui.server.browsing_status import BrowsingStatus
from rtui.server.capability import Capabilities, Feature
from rtui.server.connection import Connection
from rtui.server.cursor import Dialect, dialect_of
from rtui.server.errors import ConnectionLost, RtuiError, ServerError
from rtui.server.inspect import key_facts, row_facts
from rtui.server.node_scan import BREATH_S, ScanNode, ScanRefusedError, page
from rtui.server.pace import Pace
from rtui.server.progress import Cost, Progress, ScanNote, ScanState
from rtui.server.sampling import CALL_US, SAMPLE_KEYS, Sample, can_sample, sample
from rtui.server.savepoint import SaveFile, Savepoint, filter_digest, savepoint_of
from rtui.server.scan import Scan
from rtui.server.target import Target

FIRST_COUNT: Final = 100
"""COUNT of the page that brings the first rows, on the interactive lane: under 0.1 ms of the server's time."""

SAMPLE_FROM: Final = 20_000
"""Smaller databases are scanned before a sample would be taken."""

MAX_EXPECTED: Final = 400
"""Namespaces that a sample makes known at most; smaller ones are hardly known by it."""

FILL_LOOK_S: Final = 0.2
"""How often a server that is being filled is looked at."""

REFRESH_EVERY_S: Final = 3.0
"""How often the server is asked for memory and load."""


class Browsing:
    """What a screen pulls from: `revision` says whether anything changed, `status` and `store` what there is.

    Everything runs on one event loop. Only `start` raises for a server that can't be reached.
    """

    def __init__(
        self,
        target: Target,
        *,
        separators: Separators | None = None,
        budget_bytes: int | None = None,
        pace: Pace = Pace.GENTLE,
        match: bytes | None = None,
        kind: bytes | None = None,
        resume: bool = True,
        is_filling: Callable[[], bool] | None = None,
        state_folder: Path | None = None,
        connection: Connection | None = None,
    ) -> None:
        """`resume` goes on where a saved scan was broken off; `state_folder` is where it is saved.

        `is_filling` says whether somebody is still loading the keys: the scan waits for that, the picture does not.
        """
        self.target = target
        self.connection = Connection(target) if connection is None else connection
        self.capabilities = Capabilities()
        self.store = NamespaceStore(separators, budget_bytes=budget_bytes)
        self.scan: Scan | None = None
        """The current pass over the keyspace, once it is under way."""
        self._pace = pace
        self._match = match if match is None else check_pattern(match)
        self._kind = kind
        self._resume = resume
        self._is_filling = is_filling or (lambda: False)
        self._repeats_anyway = False
        self._file = SaveFile(target.label, target.db, state_folder)
        self._revision = 0
        self._sample = Sample()
        self._size: int | None = None
        self._spent = Cost()
        self._failure: SafeText | None = None
        self._said: dict[SafeText, None] = {}
        self._is_paused = False
        self._is_sampling = False
        self._pass: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._targeted = asyncio.Lock()
        self._generation = 0

    @property
    def revision(self) -> int:
        """Grows whenever something that can be seen has changed."""
        commands = 0 if self.scan is None else self.scan.cost.commands
        return self._revision + self.store.revision + self.connection.revision + self.capabilities.revision + commands

    @property
    def pace(self) -> Pace:
        """How hard the server is asked; may be set at any time."""
        return self._pace

    @pace.setter
    def pace(self, pace: Pace) -> None:
        self._pace = pace
        if self.scan is not None:
            self.scan.pace = pace
        self._revision += 1

    @property
    def status(self) -> BrowsingStatus:
        """Everything but the tree, now."""
        return BrowsingStatus(
            label=self.target.label,
            db=self.target.db,
            server=self.connection.server,
            no_touch=self.connection.no_touch,
            link=self.connection.state,
            pace=self._pace,
            progress=self._progress(),
            cost=self._spent if self.scan is None else self._spent + self.scan.cost,
            match=self._match,
            kind=self._kind,
            total=self._total(),
            sampled=len(self._sample.keys),
            complete=self.store.complete,
            notes=self._notes(),
        )

    async def start(self) -> None:
        """Connect and begin; returns once connected. Raises ConnectFailure."""
        await self.connection.open()
        self._generation = self.connection.generation
        self._begin()
        self._spawn(self._look_after())

    async def close(self) -> None:
        """Save where the scan stands and end everything."""
        await self._end_pass()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.connection.close()

    def pause(self) -> None:
        """Send nothing for the scan until `resume`."""
        self._is_paused = True
        if self.scan is not None:
            self.scan.pause()
            self._save(self.scan)
        self._revision += 1

    def resume(self) -> None:
        """Go on with the scan."""
        self._is_paused = False
        if self.scan is not None:
            self.scan.resume()
        self._revision += 1

    def faster(self) -> None:
        """Take the next faster pace."""
        self.pace = self._pace.faster()

    def slower(self) -> None:
        """Take the next slower pace."""
        self.pace = self._pace.slower()

    async def filter(self, match: bytes | None, kind: bytes | None = None) -> None:
        """Begin again with other names or types; raises PatternError for a pattern beyond the bounds."""
        match = match if match is None else check_pattern(match)
        await self._end_pass()
        self._match, self._kind = match, kind
        self._begin()

    async def rescan(self) -> None:
        """Begin again with the same filter, from the beginning."""
        await self._end_pass()
        self._file.remove()
        self._begin()

    async def lookup(self, name: bytes) -> bool | None:
        """Whether a key of exactly this name exists, by one TYPE; None when that was refused.

        Raises GuardError for a name that is too long to be sent and ConnectionLost.
        """
        reply = await self.connection.run(guard.key_type(name))
        if isinstance(reply[0], ServerError):
            self.capabilities.note(Feature.TYPE, reply[0])
            return None
        return reply[0] != b"none"

    async def open_namespace(self, node: Namespace) -> None:
        """Divide a namespace so that it can be listed, in slices; scan its prefix where only its count was kept."""
        if self.store.needs_scan(node):
            await self._refill(node)
        else:
            await self._drive(self.store.open(node))

    async def row_facts(self, keys: Sequence[bytes]) -> list[RowFacts]:
        """What the listed keys show, see `inspect.row_facts`."""
        return await row_facts(self.connection, keys, self.capabilities)

    async def key_facts(self, key: bytes) -> KeyFacts:
        """What the key under the cursor shows, see `inspect.key_facts`."""
        return await key_facts(self.connection, key, self.capabilities)

    def _begin(self) -> None:
        """Start a pass over the keyspace into an empty store."""
        self._reset()
        self._said.clear()
        self._failure = None
        self._pass = asyncio.create_task(self._run_pass(), name="rtui browsing")

    def _reset(self) -> None:
        self.store.reset()
        self._sample = Sample()
        self._revision += 1

    async def _end_pass(self) -> None:
        running, self._pass = self._pass, None
        scan, self.scan = self.scan, None
        if scan is not None:
            if not scan.state.is_over:
                self._save(scan)
            scan.stop()
            self._spent += scan.cost
        if running is not None:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    async def _run_pass(self) -> None:
        """First rows, then a picture of the whole, then the whole."""
        self._repeats_anyway = False
        dialect = self._dialect()
        node = self._saved_node(dialect)
        try:
            if node is None:
                node = await self._first_page(dialect)
            if self._is_filling():
                node = await self._filled(dialect)
            if node is not None:
                self._revision += 1
                if self._is_worth_a_sample(dialect):
                    await self._take_sample()
                await self._scan(node)
            else:
                await self._complete()
        except ScanRefusedError as refused:
            self._failure = refused.reason
        except RtuiError as failed:
            self._failure = failed.happened
        self._revision += 1

    def _dialect(self) -> Dialect:
        server = self.connection.server
        return dialect_of(server.product or "other", server.version, cluster_enabled=server.cluster_enabled)

    def _saved_node(self, dialect: Dialect) -> ScanNode | None:
        """The node with the ranges of a saved scan that can go on."""
        saved = self._file.load() if self._resume and dialect.is_ordered else None
        if saved is None:
            return None
        run_id = self.connection.run_id
        why_not = saved.why_not(run_id, self.target.db, filter_digest(self._match, self._kind))
        if why_not is not None:
            self._said[why_not] = None
            return None
        self._said[SafeText("The scan goes on where it was broken off, then round to there.")] = None
        return ScanNode(self.connection, dialect, spans=saved.spans(), run_id=run_id)

    async def _first_page(self, dialect: Dialect) -> ScanNode | None:
        """Put the first rows into the store; return what is left to scan, None if that was all."""
        command = guard.scan(0, count=FIRST_COUNT, match=self._match, kind=self._kind)
        while True:
            await self.connection.online()
            run_id = self.connection.run_id
            with contextlib.suppress(ConnectionLost):
                replies = await self.connection.run(command, guard.dbsize())
                break
        cursor, keys = page(replies[0])
        self.capabilities.note(Feature.DBSIZE, replies[1])
        self._size = replies[1] if isinstance(replies[1], int) else None
        self._spent += Cost(commands=2, keys=len(keys))
        self.store.add(keys)
        if not cursor:
            return None
        return ScanNode(self.connection, dialect, first_cursor=cursor, size=self._size, run_id=run_id)

    async def _filled(self, dialect: Dialect) -> ScanNode:
        """Wait until the server has been filled, with a picture of what there is; return all of it to scan.

        The first page comes a second time then.
        """
        while self._is_filling():
            self._revision += 1
            await asyncio.sleep(FILL_LOOK_S)
            with contextlib.suppress(ConnectionLost):
                await self._refresh_size()
            if self._is_worth_a_sample(dialect):
                await self._take_sample()
        self._repeats_anyway = True
        return ScanNode(self.connection, dialect, size=self._size, run_id=self.connection.run_id)

    def _is_worth_a_sample(self, dialect: Dialect) -> bool:
        is_large = self._size is None or self._size >= SAMPLE_FROM
        return can_sample(dialect) and is_large and self._match is None and self._kind is None

    async def _take_sample(self) -> None:
        self._is_sampling = True
        tally = NamespaceTally(self.store.separators)
        try:
            taken = await sample(
                await self.connection.bulk(),
                keys=SAMPLE_KEYS,
                pace=self._pace,
                on_keys=tally.add,
                on_more=lambda taken: self._overlay(taken, tally),
            )
            self._overlay(taken, tally)
            self._spent += Cost(
                taken.commands, len(taken.keys), taken.bytes_in, taken.bytes_out, server_us=taken.commands * CALL_US
            )
        except ConnectionLost:
            pass
        finally:
            self._is_sampling = False

    def _overlay(self, taken: Sample, tally: NamespaceTally) -> None:
        """Show what a sample says of the first two levels, until the scan knows it."""
        total = self._size if self._size is not None else taken.total
        if total is None:
            return
        self._sample = taken
        number = total.value if isinstance(total, Estimate) else float(total)
        population = max(tally.drawn, round(number))
        for path, share in tally.shares(most=MAX_EXPECTED, population=population).items():
            self.store.expect(path, share.scaled(number))

    async def _scan(self, node: ScanNode) -> None:
        scan = Scan(
            [node], self.store.add, pace=self._pace, match=self._match, kind=self._kind, on_restart=self._restarted
        )
        self.scan = scan
        if self._is_paused:
            scan.pause()
        await scan.run()
        if scan.state is ScanState.DONE:
            self.store.repeats_possible = scan.repeats_possible or self._repeats_anyway
            await self._complete()
            self._file.remove()

    async def _complete(self) -> None:
        """Make the counts totals."""
        await self._drive(self.store.settle())
        self.store.drop_estimates()
        self.store.complete = True
        self._revision += 1

    def _restarted(self, note: ScanNote) -> None:
        """The scan delivers everything again: what is in the store is void."""
        self._reset()

    async def _refill(self, node: Namespace) -> None:
        """Scan for the keys below a namespace of which only the count was kept; the other scan rests meanwhile."""
        async with self._targeted:
            if not self.store.needs_scan(node):
                return
            refill = Refill(self.store, node)
            main = self.scan
            if main is not None:
                main.pause()
            targeted = Scan(
                [ScanNode(self.connection, self._dialect())],
                refill.add,
                pace=self._pace,
                match=prefix_pattern(node.path()),
                kind=self._kind,
            )
            try:
                await targeted.run()
            finally:
                self._spent += targeted.cost
                if targeted.state is ScanState.DONE:
                    refill.done()
                else:
                    refill.abandon()
                if main is not None and not self._is_paused:
                    main.resume()

    async def _drive(self, work: Slices[Any]) -> None:
        """Do sliced work with everything else on the event loop in between."""
        for _ in work:
            await asyncio.sleep(BREATH_S)

    async def _look_after(self) -> None:
        """Find out what the server allows, and keep what it says of itself fresh."""
        while True:
            with contextlib.suppress(ConnectionLost):
                await self.connection.online()
                if self.connection.generation != self._generation:
                    self._generation = self.connection.generation
                    self.capabilities.forget()
                await self.capabilities.probe(self.connection)
                if self.capabilities.may(Feature.INFO):
                    await self.connection.refresh()
                await self._refresh_size()
            await asyncio.sleep(REFRESH_EVERY_S)

    async def _refresh_size(self) -> None:
        if self.capabilities.may(Feature.DBSIZE):
            (size,) = await self.connection.run(guard.dbsize())
            self.capabilities.note(Feature.DBSIZE, size)
            if isinstance(size, int) and size != self._size:
                self._size = size
                self._revision += 1

    def _save(self, scan: Scan) -> None:
        """Keep where the scan stands for a later run, if it means anything there."""
        run_id = self.connection.run_id
        remaining = [span for spans in scan.remaining() for span in spans]
        if run_id is None or not remaining or scan.state is ScanState.FAILED:
            return
        savepoint: Savepoint = savepoint_of(run_id, self.target.db, self._match, self._kind, remaining)
        try:
            self._file.save(savepoint)
        except OSError:
            self._said[SafeText("Where the scan stands could not be saved.")] = None

    def _progress(self) -> Progress:
        if self._failure is not None:
            return Progress(state=ScanState.FAILED, keys=self.store.keys, fraction=None, reason=self._failure)
        if self.scan is not None:
            return replace(self.scan.progress, keys=self.store.keys)
        if self.store.complete:
            return Progress(state=ScanState.DONE, fraction=1.0, keys=self.store.keys)
        state = ScanState.SAMPLING if self._is_sampling else ScanState.READY
        return Progress(state=state, keys=self.store.keys)

    def _total(self) -> int | Estimate | None:
        return self._size if self._size is not None else self._sample.total

    def _notes(self) -> tuple[SafeText, ...]:
        scanned = () if self.scan is None else self.scan.progress.notes
        return (*self._said, *(SafeText(note.value) for note in scanned))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
