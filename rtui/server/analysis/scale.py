"""Does the work of an analysis in tasks of Dask: one a node or file, whose results are merged in a tree.

    gathered: calls, each sealed ──► `performed`, a task each ──► Sealed Gathered ──► `merged`, FAN_IN at once ──► one
                                       │ progress: an event             ▲ once more where a worker is lost
                                       ▼
                                     the client

A task changes nothing but its own result, and a result is whole or not there, so whatever Dask does again counts once.
Calls and results go about as `Sealed`: what a scheduler keeps, logs and shows of them is a mask. They hold names of
keys and credentials, so connections without TLS are refused.

A task has a server for itself as long as it lists its keys: a lock of Dask, by the address, which is hashed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import pickle
import signal
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import astuple, replace
from hashlib import blake2b
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn
from uuid import uuid4

from rtui import __version__
from rtui.keyspace.text.display import SafeText, display_text
from rtui.server.analysis.key_pass import AnalysisPass, ClusterPart
from rtui.server.analysis.worker_process import signals_blocked
from rtui.server.analysis.workers import STOP_S, Failed, WorkerControl, adopted, collect, lost, packed, parted
from rtui.server.deployment.nodes import Deployment
from rtui.server.guard.command import MASK
from rtui.server.options import AnalysisOptions, DaskOptions, RowsWriter
from rtui.server.scan.parted_scan import ScanPart
from rtui.server.scan.progress import Cost, Progress, ScanState
from rtui.server.scan.run_control import RunControl
from rtui.server.user.ending_signals import ENDING
from rtui.server.wire.command_log import CommandLog
from rtui.server.wire.errors import RtuiError
from rtui.server.wire.supervised_tasks import as_rtui_error, end_task, in_slices

if TYPE_CHECKING:  # of an extra
    from distributed import Client, Future

    from rtui.table.aggregates import Collected

FAN_IN: Final = 8
"""Results that a task merges."""

ANSWER_S: Final = 30.0
"""How long a scheduler may take to answer."""

TELL_EVERY_S: Final = 1.0

LOCK_S: Final = 1.0
"""How long a task waits for a server before it looks whether it is to end."""

_LOCAL: Final = {
    "distributed.worker.multiprocessing-method": "spawn",  # a fork hangs once Polars has threads
    "distributed.scheduler.http.routes": [],  # its servers of HTTP listen in any case, and so answer nothing
    "distributed.worker.http.routes": [],
}
"""The configuration of Dask on this machine."""

Told = Callable[[int, ScanPart], object]
"""Hears how far the call of a number is."""


class Sealed:
    """A pickled message, passwords too, of which nothing is shown."""

    __slots__ = ("_data",)

    def __init__(self, message: object, data: bytes | None = None) -> None:
        self._data = packed(message) if data is None else data

    def opened(self) -> Any:
        return pickle.loads(self._data)  # noqa: S301 - rtui has written it, and came here by TLS

    def __repr__(self) -> str:
        return MASK

    def __sizeof__(self) -> int:
        return len(self._data)

    def __reduce__(self) -> tuple[object, ...]:
        return Sealed, (None, self._data)


class Call(NamedTuple):
    """The work of a task: a function of a module, which also gets a `TaskParent`, and its arguments.

    It returns sums and what else it has found out, which can be pickled.
    """

    run: str
    number: int
    function: Callable[..., tuple[Collected | None, Any]]
    arguments: tuple[Any, ...]


class Gathered(NamedTuple):
    """The results of some calls."""

    sums: Collected | None
    found: dict[int, Any]
    """By the number of the call: what else it has found out, or Failed."""


_controls: defaultdict[str, list[tuple[asyncio.AbstractEventLoop, RunControl]]] = defaultdict(list)
"""By run, the controls of its tasks in this process."""
_stopped: dict[str, str] = {}
"""Runs that are to end, and why."""


def performed(sealed: Sealed) -> Sealed:
    """Do the work of a task; why that fails is its result, since Dask would log and keep an exception."""
    run, number, function, arguments = sealed.opened()
    try:
        if run in _stopped:
            raise RtuiError("The analysis has ended", f"{_stopped[run]}.")
        sums, found = function(*arguments, TaskParent(run, number))
    except BaseException as error:  # noqa: BLE001 - Polars' PanicException is no Exception
        sums, found = None, Failed(as_rtui_error(error, "rtui task").happened)
    return Sealed(Gathered(sums, {number: found}))


def merged(parts: Sequence[Sealed]) -> Sealed:
    """Merge results; each is read anew, so that a task that is done again finds it as it was."""
    sums, found = None, dict[int, Any]()
    for sealed in parts:
        of_part: Gathered = sealed.opened()
        found |= of_part.found
        if of_part.sums is not None:
            sums = of_part.sums if sums is None else sums.merge(of_part.sums)
    return Sealed(Gathered(sums, found))


def stop_tasks(run: str, reason: str) -> None:
    """End the tasks of a run in this process, with what they have so far."""
    _stopped[run] = reason
    for loop, control in _controls[run]:
        loop.call_soon_threadsafe(control.stop, SafeText(reason))


def version() -> str:
    return __version__


def dask_setup(_worker: object) -> None:
    """Ignore what a terminal sends to all processes: rtui says what is to end. Dask calls this in a new worker."""
    for one in ENDING:
        signal.signal(one, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)


class TaskParent:
    """The client of a run, as a task sees it."""

    def __init__(self, run: str, number: int) -> None:
        from distributed import get_worker  # noqa: PLC0415 - of an extra

        self._worker, self._run, self._number = get_worker(), run, number
        self._key = self._worker.get_current_task()
        self._told_at_s = 0.0

    def send(self, part: ScanPart) -> None:
        """Say how far it is, in numbers only."""
        if time.monotonic() - self._told_at_s >= TELL_EVERY_S:
            self._told_at_s = time.monotonic()
            at = part.progress
            told = [self._number, at.state.value, at.fraction, at.keys, at.keys_per_s, at.eta_s]
            self._worker.log_event(self._run, [*told, *astuple(part.cost)])

    @contextlib.asynccontextmanager
    async def controlled(self, options: AnalysisOptions, _log: CommandLog) -> AsyncIterator[RunControl]:
        """Give the control of a run for a block: it ends with the run, and where nobody waits for the task any more."""
        made = WorkerControl(options, self)
        entry = asyncio.get_running_loop(), made
        _controls[self._run].append(entry)
        if self._run in _stopped:
            made.stop(SafeText(_stopped[self._run]))
        watch = asyncio.create_task(self._watch(made), name="rtui dask task")
        try:
            yield made
        finally:
            _controls[self._run].remove(entry)
            await end_task(watch)

    async def _watch(self, control: RunControl) -> NoReturn:
        while True:
            await asyncio.sleep(TELL_EVERY_S)
            task = self._worker.state.tasks.get(self._key)
            if task is None or task.state not in ("executing", "long-running"):
                control.stop(SafeText("nobody waits for it any more"))

    @contextlib.asynccontextmanager
    async def turn(self, server: str, control: RunControl) -> AsyncIterator[None]:
        """Wait until no other task lists the keys of a server, or until the run is to end."""
        from distributed import Lock  # noqa: PLC0415 - of an extra

        lock = Lock(blake2b(f"{self._run} {server}".encode(), digest_size=16).hexdigest())
        is_held = False
        try:
            while not (is_held or control.is_stopped):
                is_held = await asyncio.to_thread(lock.acquire, timeout=LOCK_S)
            yield
        finally:
            if is_held:
                await asyncio.to_thread(lock.release)
            self._worker.loop.add_callback(lock.refresh_callback.stop)


@contextlib.contextmanager
def file_of(folder: str, number: int) -> Iterator[RowsWriter]:
    """Give what begins the file of a task, in a folder or below a URL of fsspec; it has its name after the block.

    Raises OSError, and ImportError where fsspec lacks a module for such URLs.
    """
    from fsspec.core import url_to_fs  # noqa: PLC0415 - of an extra

    from rtui.table.keys_file import KeysWriter  # noqa: PLC0415 - imports Polars, as the pass did

    files, root = url_to_fs(folder)
    files.makedirs(root, exist_ok=True)
    part = f"{root}/.node-{number:04}-{uuid4().hex[:8]}.part"
    opened: list[Any] = []

    def begin(began_at_s: float, failed: Callable[[], object]) -> KeysWriter:
        for one in opened:
            one.close()
        opened.append(files.open(part, "wb"))
        return KeysWriter(opened[-1], "parquet", began_at_s, failed)

    try:
        yield begin
        for one in opened:
            one.close()
        files.mv(part, f"{root}/node-{number:04}.parquet")
    except BaseException:
        with contextlib.suppress(OSError):
            files.rm(part)
        raise


def collect_node(
    part: ClusterPart, options: AnalysisOptions, folder: str | None, number: int, parent: TaskParent
) -> tuple[Collected | None, Any]:
    """Do what `collect` does, and write the rows into a folder, if there is one."""
    with contextlib.ExitStack() as stack:
        if folder is not None:
            options = replace(options, write_to=stack.enter_context(file_of(folder, number)))
        found = collect(part, options, parent)
    return found.sums, found._replace(sums=None)


@contextlib.asynccontextmanager
async def connected(asked: DaskOptions) -> AsyncIterator[Client]:
    """Connect to a scheduler, or start workers on this machine, for a block; raises an RtuiError."""
    import dask  # noqa: PLC0415 - of an extra
    from distributed import Client, LocalCluster, Security  # noqa: PLC0415

    logging.getLogger("distributed").setLevel(logging.CRITICAL + 1)
    address, title = asked.address, "Dask can't be used"
    async with contextlib.AsyncExitStack() as stack:
        try:
            if address is None:
                security = Security.temporary()
                folder = stack.enter_context(
                    tempfile.TemporaryDirectory(prefix="rtui-dask-", ignore_cleanup_errors=True)
                )
                stack.enter_context(dask.config.set(_LOCAL))
                cluster = LocalCluster(
                    n_workers=asked.workers,
                    threads_per_worker=1,
                    memory_limit=None,  # else it would write partials to disk
                    host="127.0.0.1",
                    protocol="tls://",
                    security=security,
                    dashboard_address="127.0.0.1:0",
                    scheduler_kwargs={"dashboard": False},
                    silence_logs=logging.CRITICAL + 1,
                    local_directory=folder,
                    preload=[__name__],
                    asynchronous=True,
                )
                resource_tracker.ensure_running()  # which, when it begins to run, lets these signals through
                with signals_blocked():
                    address = (await stack.enter_async_context(cluster)).scheduler_address
            else:
                security = Security(
                    require_encryption=True,
                    **{name: str(path) for name, path in asked.files.items()},
                )
                if not security.get_tls_config_for_role("client")["ca_file"]:
                    raise ValueError("no certificate tells which one it is: --dask-ca FILE names it")
            client = Client(
                address, security=security, timeout=ANSWER_S, asynchronous=True, set_as_default=False, name="rtui"
            )
            client = await stack.enter_async_context(client)
            await _check(client, title)
        except (OSError, ImportError, ValueError, RuntimeError, TypeError) as error:
            said = _message(error) or type(error).__name__
            where = "Its workers can't be started" if asked.address is None else "The scheduler can't be reached"
            raise RtuiError(title, f"{where}: {said}.") from None
        yield client


async def _check(client: Client, title: str) -> None:
    """Raise an RtuiError unless all workers have this version of rtui, and speak TLS."""
    scheduler: Any = client.scheduler
    workers = (await scheduler.identity(n_workers=-1))["workers"]
    if not workers:
        raise RtuiError(title, "The scheduler has no workers: start some, where rtui is installed.")
    bare = [one for one in workers if not one.startswith("tls://")]
    if bare:
        happened = f"The worker {display_text(bare[0])} has no TLS: others could read names of keys and credentials."
        raise RtuiError(title, happened)
    found = await client.run(version, on_error="return")
    for worker, told in found.items():
        if told != __version__:
            has = f"has rtui {told}" if isinstance(told, str) else "can't import rtui"
            happened = f"The worker {display_text(worker)} {has}, and this is rtui {__version__}."
            raise RtuiError(title, f"{happened} The scheduler and all workers need the same version.")


async def gathered(
    client: Client, calls: Sequence[tuple[Callable[..., Any], tuple[Any, ...]]], control: RunControl, told: Told
) -> Gathered:
    """Make the calls in tasks, and return their results; of a call whose task is lost that is Failed.

    A stop of the run ends the tasks, with what they have by then; those that take longer than STOP_S are lost.
    """
    tasks, parts = _Tasks(client), [ScanPart() for _ in calls]

    def heard(event: tuple[float, Any]) -> None:
        number, state, fraction, keys, speed, eta_s, *cost = event[1]
        parts[number] = ScanPart(Progress(ScanState(state), fraction, keys, speed, eta_s), Cost(*cost))
        told(number, parts[number])

    def ended(number: int) -> None:
        at = replace(parts[number].progress, state=ScanState.DONE, fraction=1.0, keys_per_s=0.0, eta_s=None)
        told(number, replace(parts[number], progress=at))

    def sealed() -> list[Sealed]:
        return [Sealed(Call(tasks.run, number, *call)) for number, call in enumerate(calls)]

    for number, call in enumerate(await asyncio.to_thread(sealed)):
        tasks.submit(performed, call, [number])
    client.subscribe_topic(tasks.run, heard)
    stopping = asyncio.create_task(tasks.stop_with(control), name="rtui dask stop")
    try:
        return await tasks.merge(ended)
    finally:
        client.unsubscribe_topic(tasks.run)
        await end_task(stopping)


class _Tasks:
    """The tasks of a run: its calls, and the merges of their results."""

    def __init__(self, client: Client) -> None:
        self.run = f"rtui-{uuid4().hex}"
        self._client = client
        self._numbers: dict[object, list[int]] = {}
        """By key, the calls whose results it has."""
        self._waiting = set["Future[Sealed]"]()

    def submit(self, function: Callable[..., Sealed], argument: object, numbers: list[int]) -> Future[Sealed]:
        future = self._client.submit(function, argument, key=f"{self.run}-{len(self._numbers)}", pure=False)
        self._numbers[future.key] = numbers
        self._waiting.add(future)
        return future

    async def merge(self, ended: Callable[[int], object]) -> Gathered:
        """Wait for all results, and merge them as they come, FAN_IN at once; `ended` gets the number of a call."""
        from distributed import as_completed  # noqa: PLC0415 - of an extra

        failed, ready = dict[int, Any](), list["Future[Sealed]"]()
        coming = as_completed(list(self._waiting), loop=self._client.loop, raise_errors=False)
        async for future in coming:
            self._waiting.discard(future)
            numbers = self._numbers[future.key]
            for number in numbers if len(numbers) == 1 else ():
                ended(number)
            if future.status == "finished":
                ready.append(future)
            else:
                failed |= dict.fromkeys(numbers, Failed(await _why(future)))
            while len(ready) >= FAN_IN or (not self._waiting and len(ready) > 1):
                some, ready = ready[:FAN_IN], ready[FAN_IN:]
                coming.add(self.submit(merged, some, [at for one in some for at in self._numbers[one.key]]))
        if not ready:
            return Gathered(None, failed)
        found = await ready[0]
        whole: Gathered = await asyncio.to_thread(found.opened)
        return Gathered(whole.sums, whole.found | failed)

    async def stop_with(self, control: RunControl) -> None:
        """Once the run is to end, have its tasks end, at last by force."""
        await control.stopped.wait()
        await self._client.run(stop_tasks, self.run, str(control.stop_reason), on_error="ignore")
        await asyncio.sleep(STOP_S)
        await self._client.cancel(list(self._waiting), force=True)


async def _why(future: Future[Sealed]) -> SafeText:
    """Return why a task has no result, as a sentence."""
    if future.status == "cancelled":
        return SafeText("Its task was cancelled.")
    error = await future.exception()
    if type(error).__name__ == "KilledWorker":
        return SafeText("The workers that did its task have ended, one after the other.")
    return SafeText(f"Its task has failed: {type(error).__name__}: {_message(error)}.")


def _message(error: BaseException) -> SafeText:
    """Return the text of an error on one line, without a full stop."""
    return SafeText(display_text(" ".join(str(error).split()), limit=200).rstrip("."))


async def collect_on_dask(
    made: AnalysisPass, options: AnalysisOptions, deployment: Deployment, asked: DaskOptions
) -> int:
    """Inspect the nodes of a pass that has begun in a task each; return how many rows were written.

    The nodes of a task that fails are lost, and the report names their slots.
    """
    nodes, control = made.nodes, made.control
    parts, scan, options = parted(made, options, deployment, len(nodes.all))

    scan.begin()
    async with connected(asked) as client:
        calls = [(collect_node, (part, options, asked.folder, number)) for number, part in enumerate(parts)]
        found = await gathered(client, calls, control, scan.parts.__setitem__)
    if found.sums is not None:
        await in_slices(made.findings.merge(found.sums))
    rows = 0
    for number, part in enumerate(parts):
        of_part = found.found.get(number)
        if of_part is None or isinstance(of_part, Failed):
            why = SafeText("Its task is lost.") if of_part is None else of_part.happened
            scan.parts[number] = lost(part, scan.parts[number], nodes, why)
        else:
            rows += of_part.rows
            await adopted(made, of_part)
            scan.parts[number] = of_part.scan
    scan.end()
    return rows
