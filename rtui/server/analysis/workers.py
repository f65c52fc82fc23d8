"""Inspects the nodes of a cluster in several processes: `collect` is the work of each, the report is made here.

    AnalysisRun ──► collect_in_workers: nodes and slots in parts, a process each
                      │ Work, Stop, a turn          ▲ ScanPart (four times a second), entries of the log, at last Found
                      ▼                             │
                    collect(part, options): an AnalysisPass over the slots of the part, wherever they move

Each slot is in one part, so its keys count once as they do in one process. Two processes never list the keys of one
server at the same time, also where slots have moved to it: each waits for its turn, which is given here.
All of the input of a process (`worker_process`) comes through its standard input, the environment too.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import io
import os
import pickle
import threading
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple, NoReturn, Protocol, cast

from rtui.analysis.report.document import Head
from rtui.analysis.report.figures import Counted
from rtui.keyspace.slots import SLOTS, each_slot
from rtui.keyspace.text.display import SafeText
from rtui.server.analysis.key_pass import AnalysisPass, ClusterPart
from rtui.server.analysis.table_import import import_counting
from rtui.server.analysis.worker_process import STARTS_WITH, ended, how_it_ended, started
from rtui.server.deployment.nodes import Deployment
from rtui.server.guard.command import Secret
from rtui.server.inspection.inspected_nodes import InspectedNodes, NodeFacts
from rtui.server.inspection.report_head import coverage_of, head
from rtui.server.options import AnalysisOptions
from rtui.server.scan.page import ScanFilter
from rtui.server.scan.parted_scan import PartedScan, ScanPart
from rtui.server.scan.run_control import RunControl
from rtui.server.scan.scan import Scan
from rtui.server.wire.command_log import CommandLog, LogEntry, Purpose, for_purpose
from rtui.server.wire.errors import RtuiError
from rtui.server.wire.supervised_tasks import as_rtui_error, end_task, failure_of, in_slices, start_supervised

if TYPE_CHECKING:  # it is imported with Polars
    from rtui.server.wire.connection import Connection
    from rtui.table.aggregates import Collected

TELL_EVERY_S: Final = 0.25

STOP_S: Final = 60.0
"""How long a worker may take to end and to hand over its sums once the pass is stopped."""

LENGTH_BYTES: Final = 8
LARGE_BYTES: Final = 1 << 18
"""Larger messages are read in a thread."""


class Work(NamedTuple):
    """The task of a worker; the first message to it."""

    part: ClusterPart
    options: AnalysisOptions
    environment: Mapping[str, str]
    garbage: tuple[int, int, int]
    """After how many new objects garbage is looked for."""
    logs: bool


class Stop(NamedTuple):
    """The pass is to end."""

    reason: SafeText


class Turn(NamedTuple):
    """A worker's turn at a server: that it wants it, or that it has got it."""

    server: str


class TurnOver(NamedTuple):
    """A worker has had its turn at a server, or wants it no more."""

    server: str


class Failed(NamedTuple):
    """Why a worker can't go on."""

    happened: SafeText


class WorkerResult(NamedTuple):
    """All that is found out in a part; can be pickled."""

    sums: Collected | None
    """None where they are elsewhere."""
    scan: ScanPart
    nodes: Sequence[NodeFacts]
    notes: Sequence[SafeText]
    rows: int = 0
    """Rows written to a file."""


class Starter(Protocol):
    """The process that has started a pass, as the pass sees it."""

    def send(self, message: ScanPart) -> None: ...

    def controlled(self, options: AnalysisOptions, log: CommandLog) -> AbstractAsyncContextManager[RunControl]:
        """Give the control of the run for a block, driven from elsewhere."""
        ...

    def turn(self, server: str, control: RunControl) -> AbstractAsyncContextManager[None]:
        """Wait until no other process lists the keys of a server, or until the run is to end."""
        ...


def collect(part: ClusterPart, options: AnalysisOptions, parent: Starter | None = None) -> WorkerResult:
    """Inspect a part of a cluster, and return its sums; raises an RtuiError if it is not possible.

    Needs nothing of the process but rtui: it connects by itself, and its arguments and result can be pickled, passwords
    only by the pickler of this module. The `parent` receives the progress, and may stop it.
    """
    return asyncio.run(_collect(part, options, parent))


@for_purpose(Purpose.INSPECTION)
async def _collect(part: ClusterPart, options: AnalysisOptions, parent: Starter | None) -> WorkerResult:
    await asyncio.to_thread(import_counting)
    log = CommandLog()
    if parent is None:
        return await _collected(part, options, RunControl(options.pace), log, None)
    async with parent.controlled(options, log) as control:
        return await _collected(part, options, control, log, parent)


async def _collected(
    part: ClusterPart, options: AnalysisOptions, control: RunControl, log: CommandLog, parent: Starter | None
) -> WorkerResult:
    deployment = Deployment(part.target, log)
    failures: list[RtuiError] = []
    made: AnalysisPass | None = None

    def failed(failure: RtuiError) -> None:
        failures.append(failure)
        control.stop(SafeText(failure.happened.removesuffix(".")))

    try:
        await deployment.open()
        made = AnalysisPass(options, ScanFilter(options.match, options.key_type), deployment, control, part)
        nodes = await control.unless_stopped(made.begin())
        if nodes is None:
            raise RtuiError("The analysis has ended", f"{control.stop_reason}.")
        scan = cast("Scan", await made.choose_work(nodes))
        besides = [start_supervised(made.add_held(), name="rtui sums", failed=failed)]
        if parent is not None:
            besides.append(start_supervised(_tell(parent, made, scan), name="rtui progress", failed=failed))
        try:
            await scan.run()
        finally:
            for task in besides:
                await end_task(task)
        if failures:
            raise failures[0]
        made.settle()
        await in_slices(made.findings.add_held())
        sums = made.findings.collected()
        notes = (*deployment.notes, *made.notes)
        rows = 0
        if made.writer is not None:
            await asyncio.to_thread(made.writer.end, _head(made, scan, deployment, notes))
            rows = made.writer.height
        return WorkerResult(sums, ScanPart.ended(scan, _keys(made), part.slots), made.nodes.facts(), notes, rows)
    finally:
        if made is not None and made.writer is not None:
            await asyncio.to_thread(made.writer.close)
        await deployment.close()
        log.end()


def _head(made: AnalysisPass, scan: Scan, deployment: Deployment, notes: Sequence[SafeText]) -> Head:
    """Return what a file of the keys of a part says of them."""
    found, why_ended = made.findings, made.control.stop_reason
    size = made.nodes.size if made.only.is_open else None
    counted = Counted(found.keys, found.unread_keys, found.vanished_keys)
    return head(
        *(deployment.home, made.nodes.pipelines),
        scope=made.scope,
        coverage=coverage_of(counted, scan, scan.progress, size=size, why_ended=why_ended),
        cost=made.cost,
        notes=(*scan.notes, *notes),
        is_whole_cluster=True,
    )


def _keys(made: AnalysisPass) -> int:
    return made.findings.keys + made.findings.unread_keys


async def _tell(parent: Starter, made: AnalysisPass, scan: Scan) -> NoReturn:
    while True:
        parent.send(ScanPart.of(scan, _keys(made)))
        await asyncio.sleep(TELL_EVERY_S)


class Parent:
    """The process that has started this worker, as the worker sees it."""

    def __init__(self, source: BinaryIO, sink: BinaryIO) -> None:
        self._source, self._sink = source, sink
        self._turns: dict[str, asyncio.Future[None]] = {}
        work = pickle.load(source)  # noqa: S301 - its own parent has written it
        assert isinstance(work, Work)  # noqa: S101 - it is the first message
        self.work = work

    def send(self, message: object) -> None:
        """Write a message; the parent reads all the time."""
        data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        self._sink.write(len(data).to_bytes(LENGTH_BYTES))
        self._sink.write(data)
        self._sink.flush()

    @contextlib.asynccontextmanager
    async def controlled(self, options: AnalysisOptions, log: CommandLog) -> AsyncIterator[RunControl]:
        """Give the control of this worker's run, driven from now on by messages of the parent."""
        made, loop = WorkerControl(options, self), asyncio.get_running_loop()
        if self.work.logs:
            log.on_over.append(self.send)

        def listen() -> None:
            with contextlib.suppress(Exception):
                while True:
                    message = pickle.load(self._source)  # noqa: S301 - likewise
                    loop.call_soon_threadsafe(self._take, message, made)
            os._exit(1)

        threading.Thread(target=listen, name="rtui parent", daemon=True).start()
        yield made

    def _take(self, message: Stop | Turn, control: RunControl) -> None:
        if isinstance(message, Stop):
            control.stop(message.reason)
        elif (turn := self._turns.get(message.server)) is not None and not turn.done():
            turn.set_result(None)

    @contextlib.asynccontextmanager
    async def turn(self, server: str, control: RunControl) -> AsyncIterator[None]:
        """Wait until no other worker lists the keys of a server, or until the run is to end."""
        got = self._turns[server] = asyncio.get_running_loop().create_future()
        self.send(Turn(server))

        async def wait() -> None:
            await got

        try:
            await control.unless_stopped(wait())
            yield
        finally:
            self.send(TurnOver(server))


class WorkerControl(RunControl):
    """Controls the run of a worker: a node's turn is one among all processes as well."""

    def __init__(self, options: AnalysisOptions, parent: Starter) -> None:
        super().__init__(options.pace)
        self._parent = parent
        self._servers: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    @contextlib.asynccontextmanager
    async def turn(self, connection: Connection) -> AsyncIterator[None]:
        """Wait for a turn here, and at the server of this connection."""
        server = str(connection.target.label)
        async with super().turn(connection), self._servers[server], self._parent.turn(server, self):
            yield


def serve(source: BinaryIO, sink: BinaryIO) -> None:
    """Do the work of a worker, in its process."""
    parent = Parent(source, sink)
    os.environ.update(parent.work.environment)
    gc.set_threshold(*parent.work.garbage)
    try:
        found: object = collect(parent.work.part, parent.work.options, parent)
    except BaseException as error:  # noqa: BLE001 - Polars' PanicException is no Exception
        found = Failed(as_rtui_error(error, "rtui worker").happened)
    with contextlib.suppress(OSError):
        parent.send(found)


def packed(message: object) -> bytes:
    data = io.BytesIO()
    _Pickler(data, pickle.HIGHEST_PROTOCOL).dump(message)
    return data.getvalue()


class _Pickler(pickle.Pickler):
    """Pickles for the pipe to a worker, passwords too."""

    def reducer_override(self, value: object) -> Any:
        return (Secret, (value.reveal(),)) if isinstance(value, Secret) else NotImplemented


class ServerTurns:
    """Which worker lists the keys of which server: one at a time."""

    def __init__(self) -> None:
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def give(self, server: str, worker: Worker) -> None:
        """Let a worker have its turn, until it is cancelled."""
        async with self._locks[server]:
            worker.send(Turn(server))
            await asyncio.get_running_loop().create_future()


@dataclass(eq=False)
class Worker:
    """A process that inspects a part; `run` it once."""

    number: int
    """From 0 on, as the parts of the scan."""
    part: ClusterPart
    scan: PartedScan
    turns: ServerTurns
    log: CommandLog
    found: WorkerResult | None = None
    _process: asyncio.subprocess.Process | None = None
    _limit: asyncio.Timeout | None = None

    def send(self, message: object) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.write(packed(message))

    def stop(self) -> None:
        """Make the worker end within STOP_S with its results so far: its pass is stopped."""
        self.send(Stop(self.scan.control.stop_reason or SafeText("")))
        if self._limit is not None:
            self._limit.reschedule(asyncio.get_running_loop().time() + STOP_S)

    async def start(self) -> None:
        """Start the process; raises an RtuiError where that can't be."""
        self._process = await started(serve)

    async def run(self, options: AnalysisOptions) -> None:
        """Process the worker's messages until all is `found`; raises an RtuiError if it fails or ends."""
        giving: dict[str, asyncio.Task[None]] = {}
        environment = {name: value for name, value in os.environ.items() if not name.startswith(STARTS_WITH)}
        try:
            async with asyncio.timeout(None) as self._limit:
                self.send(Work(self.part, options, environment, gc.get_threshold(), bool(self.log.on_over)))
                if self.scan.control.is_stopped:
                    self.stop()
                while self.found is None:
                    match await self._read():
                        case ScanPart() as told:
                            self.scan.parts[self.number] = told
                        case LogEntry() as entry:
                            self.log.take(replace(entry, connection=f"worker {self.number + 1} {entry.connection}"))
                        case Turn(server):
                            giving[server] = asyncio.create_task(self.turns.give(server, self), name="rtui turn")
                        case TurnOver(server):
                            giving.pop(server).cancel()
                        case Failed(happened):
                            raise RtuiError("A worker process failed", happened)
                        case WorkerResult() as found:
                            self.found = found
        except TimeoutError:
            raise RtuiError("A worker process failed", f"Its worker process did not end within {STOP_S:g} s.") from None
        finally:
            self._limit = None
            for task in giving.values():
                task.cancel()
            await asyncio.gather(*giving.values(), return_exceptions=True)

    async def end(self) -> None:
        """Wait for the end of the process, which is imminent."""
        if self._process is not None:
            await ended(self._process, kills=self.found is None)

    async def _read(self) -> object:
        """Return the next message; raises an RtuiError where the process has ended."""
        process = self._process
        assert process is not None and process.stdout is not None  # noqa: S101 - it was started
        try:
            length = int.from_bytes(await process.stdout.readexactly(LENGTH_BYTES))
            data = await process.stdout.readexactly(length)
        except asyncio.IncompleteReadError:
            how = how_it_ended(await process.wait())
            raise RtuiError("A worker process failed", f"Its worker process {how}.") from None
        if length > LARGE_BYTES:
            return await asyncio.to_thread(pickle.loads, data)
        return pickle.loads(data)  # noqa: S301 - its own process has written it


def divided(sizes: Mapping[str, int | None], most: int) -> list[list[str]]:
    """Divide nodes by their numbers of keys (None: unknown) into at most `most` lists, none empty."""
    mean = max(1, sum(size or 0 for size in sizes.values()) // max(1, len(sizes)))
    weights = {node_id: mean if size is None else size for node_id, size in sizes.items()}
    lists: list[list[str]] = [[] for _ in range(min(most, len(sizes)))]
    for node_id in sorted(weights, key=lambda one: -weights[one]):
        least = min(lists, key=lambda some: (sum(weights[one] for one in some), len(some)))
        least.append(node_id)
    return lists


def parted(
    made: AnalysisPass, options: AnalysisOptions, deployment: Deployment, most: int
) -> tuple[list[ClusterPart], PartedScan, AnalysisOptions]:
    """Return at most `most` parts of a pass that has begun, each with a reachable node, their scan and their options.

    Slots that no node serves are in the first part.
    """
    nodes = made.nodes.all
    made.choose_columns()
    sizes = {node.node.id: node.size for node in nodes if node.failure is None}
    lists = divided(sizes, most)
    lists[-1] += [node.node.id for node in nodes if node.failure is not None]
    slots = {node.node.id: frozenset(each_slot(node.slots or ())) for node in nodes}
    unserved = frozenset(range(SLOTS)).difference(*slots.values())
    found = [frozenset[int]().union(*(slots[one] for one in some)) for some in lists]
    found[0] |= unserved
    parts = [
        ClusterPart(deployment.target_of(some[0]), frozenset(some), of_part)
        for some, of_part in zip(lists, found, strict=True)
    ]
    scan = made.work = PartedScan(made.control, [len(part.nodes) for part in parts])
    options = replace(
        options,
        workers=1,
        dask=None,
        columns=made.scope.columns,
        budget_s=None,
        keep_rows=0,
        write_to=None,
        began_at_s=made.began_at_s,
    )
    return parts, scan, options


async def adopted(made: AnalysisPass, found: WorkerResult) -> None:
    """Learn of the nodes of a part from its result."""
    failure = await failure_of(made.nodes.adopt(found.nodes), name="rtui nodes of a worker")
    made.notes += [note for note in found.notes if note not in made.notes]
    if failure is not None:
        made.notes.append(SafeText(f"A new node could not be read: {failure.happened}"))


def lost(part: ClusterPart, before: ScanPart, nodes: InspectedNodes, why: SafeText) -> ScanPart:
    """Return what is left of a part whose results are lost."""
    known = {node.node.id: frozenset(each_slot(node.slots or ())) for node in nodes.all}
    gone = {one: (nodes.label_of(one), known.get(one, frozenset())) for one in part.nodes}
    unserved = part.slots.difference(*(slots for _, slots in gone.values()))
    return ScanPart.lost(before, {**gone, "": (SafeText(""), unserved)}, why)


async def collect_in_workers(made: AnalysisPass, options: AnalysisOptions, deployment: Deployment, most: int) -> None:
    """Inspect the nodes of a pass that has begun in at most `most` processes, and add up their results.

    The nodes of a process that ends early are lost, and the report names their slots; all others go on.
    """
    log, turns, control, adding = deployment.log, ServerTurns(), made.control, asyncio.Lock()
    parts, scan, options = parted(made, options, deployment, most)
    workers = [Worker(number, part, scan, turns, log) for number, part in enumerate(parts)]

    async def run(worker: Worker) -> None:
        failure = await failure_of(worker.run(options), name="rtui worker")
        found = worker.found
        if failure is not None or found is None or found.sums is None:
            why = failure.happened if failure else SafeText("")
            scan.parts[worker.number] = lost(worker.part, scan.parts[worker.number], made.nodes, why)
            return
        async with adding:
            await in_slices(made.findings.merge(found.sums))
            await adopted(made, found)
        scan.parts[worker.number] = found.scan

    def changed() -> None:
        if control.is_stopped:
            for worker in workers:
                worker.stop()

    control.on_change.append(changed)
    try:
        for worker in workers:
            await worker.start()
        scan.begin()
        async with asyncio.TaskGroup() as group:
            for worker in workers:
                group.create_task(run(worker), name="rtui worker")
    finally:
        control.on_change.remove(changed)
        await asyncio.gather(*(worker.end() for worker in workers))
    scan.end()
