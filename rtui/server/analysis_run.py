"""One analysis of a keyspace: a scan or a sample that inspects keys, and the report of what they add up to."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec import MsgspecError, structs

from rtui.analysis.aggregate.aggregates import Aggregates
from rtui.analysis.aggregate.figures import SampledKeyspace
from rtui.analysis.aggregate.saved import NotSavedError
from rtui.analysis.columns import Columns, columns_for
from rtui.analysis.report.document import KeySizes, Report, Scope
from rtui.keyspace.slices import Steps
from rtui.keyspace.text.display import SafeText
from rtui.keyspace.text.segments import Separators
from rtui.server.continuation import Continuation
from rtui.server.engine import is_compiled
from rtui.server.engine.counters import new_counters
from rtui.server.hot.report import HotKeyReporter
from rtui.server.inspection.largest import READ_BY_RTUI, READ_BY_RTUI_NOTE, complete_largest, prove_longest
from rtui.server.inspection.pipeline import InspectionPipeline
from rtui.server.inspection.plan import InspectionPlan
from rtui.server.inspection.report_head import coverage_of, head, key_sizes, memory_bound
from rtui.server.inspection.sample_pass import SamplePass
from rtui.server.options import AnalysisOptions
from rtui.server.saved_analysis import AnalysisFile, SavedAnalysis
from rtui.server.scan.cursor import Dialect, dialect_of
from rtui.server.scan.node import EngineQueries, ScanNode, owned_slots
from rtui.server.scan.page import ScanFilter, SizeSnapshot, disagreement, take_snapshot, too_many_gone
from rtui.server.scan.progress import Cost, Progress, ScanNote, ScanState
from rtui.server.scan.run_control import RunControl
from rtui.server.scan.sampling import can_sample
from rtui.server.scan.scan import Scan
from rtui.server.wire.capability import Capabilities, CommandRunner, Feature
from rtui.server.wire.command_log import Purpose, for_purpose
from rtui.server.wire.connection import Connection
from rtui.server.wire.errors import ConnectionLost, RtuiError
from rtui.server.wire.identity import ServerIdentity
from rtui.server.wire.supervised_tasks import end_task, failure_of, start_supervised

if TYPE_CHECKING:
    from rtui.server.engine._scan import ScanEngine

T = TypeVar("T")

ESTIMATE_KEYS: Final = 20_000
"""Keys of an estimate unless another number is asked for: shares within 0.7 percentage points."""

FIRST_REPORT_S: Final = 0.3
"""When the first figures of a pass are added up."""

REPORT_EVERY_S: Final = 1.0
"""How often they are, at most."""

REPORT_SHARE: Final = 0.05
"""Adding up takes at most this share of the time."""

LAST_S: Final = 30.0
"""How long the last questions, about the largest keys, may take; the report is made without them then."""

LATER: Final = SafeText("it is to go on later")
"""Why a pass has ended that was saved."""

NO_ESTIMATE: Final = {
    Dialect.SLOTTED: "This server's cursors go slot by slot, so random ones do",
    Dialect.OPAQUE: "It is not known how this server counts its cursors, so random ones may",
}
"""Why there is no estimate of a node of a newer cluster, or of a server that is not known to be Redis or Valkey."""


def _compiled(separators: Sequence[bytes]) -> Callable[[InspectionPipeline, ScanEngine], EngineQueries] | None:
    """Return what lets the compiled engine inspect; None where it was not built or turned off, or can't do it."""
    if not is_compiled(separators):
        return None
    from rtui.server.inspection.compiled_inspection import CompiledInspection  # noqa: PLC0415 - there if it was built

    return CompiledInspection


class AnalysisRun:
    """One analysis over a connection that is open; `run` it once. Everything else may be called at any time."""

    def __init__(self, connection: Connection, options: AnalysisOptions, saved: SavedAnalysis | None = None) -> None:
        """Go on with one that was saved, if any; raises PatternError or GuardError for a filter beyond the bounds."""
        self.report: Report | None = None
        """The latest report; the final one once `progress` is over."""
        self.control = RunControl(options.pace)
        """Pauses, resumes, stops and paces it."""
        self._revision = 0
        self._connection = connection
        self._options = options
        filters = (options.separators, options.match, options.key_type)
        self._scope = Scope(*filters, options.depth, options.top, pace=options.pace.value, preset=options.preset)
        self._only = ScanFilter(options.match, options.key_type)
        self._capabilities = Capabilities()
        self._is_sample = False
        """Whether the keys are a random sample."""
        self.continuation = Continuation(connection, options, saved)
        """What of it is of earlier runs, and what is saved for a later one."""
        self._findings = self._new_findings()
        self._plan = InspectionPlan(self._capabilities, connection.server, connection.no_touch)
        self._pipeline = InspectionPipeline(
            self._plan,
            self._findings,
            on_server=self._read_server,
            own_reads=connection.own_reads,
            compile_to=_compiled(options.separators),
        )
        self._work: Scan | SamplePass | None = None
        self._size: int | None = None
        self._most_bytes: int | None = None
        """What all keys can have at most; asked for estimates only."""
        self._slots: tuple[tuple[int, int], ...] | None = None
        self._keysizes: tuple[KeySizes, ...] = ()
        self.hot = HotKeyReporter(connection, self._capabilities)
        """The hot keys of the report, and when they were asked for."""
        self._extra_commands = 0
        self._failure: SafeText | None = None
        self._before: SizeSnapshot | None = None
        """The size of the database when the scan began, None where DBSIZE is denied."""
        self._counted_on: ServerIdentity | None = None
        """The server that `_before` is of."""
        self._notes: list[SafeText] = []
        """What a reader of the figures has to know beside the notes of the scan."""
        self._is_ended = False

    @property
    def revision(self) -> int:
        """Grows with every report and every change of state."""
        return self._revision + self.control.revision

    @property
    def progress(self) -> Progress:
        """How far it is, in keys that were inspected; over only when the last report is there."""
        if self._failure is not None:
            now = Progress(ScanState.FAILED, None, self._findings.keys, reason=self._failure)
        elif self._work is None:
            return Progress(ScanState.PAUSED if self.control.is_paused else ScanState.READY)
        else:
            now = replace(self._work.progress, keys=self._findings.keys)
        if now.state.is_over and not self._is_ended:
            return replace(now, state=ScanState.RUNNING)
        return now

    @property
    def cost(self) -> Cost:
        """What it has cost so far."""
        cost = Cost() if self._work is None else self._work.cost
        cost = self.continuation.cost + cost
        return replace(cost, commands=cost.commands + self._extra_commands)

    @for_purpose(Purpose.INSPECTION)
    async def run(self, *, reports_meanwhile: bool = True) -> None:
        """Do all of it; failures are in `progress` and the report, only cancellation is raised.

        Without `reports_meanwhile` there is one report, at the end.
        """
        reporting = None
        if reports_meanwhile:
            reporting = start_supervised(self._report_now_and_then(), name="rtui report", failed=self._fail)
        budget = self._options.budget_s
        alarm = None
        if budget is not None:
            why = SafeText(f"the {budget:g} s that it was given were over")
            alarm = asyncio.get_running_loop().call_later(budget, self.control.stop, why)
        try:
            failure = await failure_of(self._inspect(), name="rtui inspection")
            if failure is not None:
                self._fail(failure)
        finally:
            if alarm is not None:
                alarm.cancel()
            await end_task(reporting)
        if self.continuation.file is not None and self._failure is None:
            failure = await failure_of(self._save(), name="rtui save analysis")
            if failure is None:
                self._is_ended = True
                self._revision += 1
                return
            self.continuation.why_not_saved = failure.happened
        failure = await failure_of(self._finish(), name="rtui last report")
        if failure is not None:
            self._fail(failure)
        self._is_ended = True
        self._revision += 1

    @property
    def why_not_later(self) -> SafeText | None:
        """Why the pass can't be left and go on in a later run; None where it can."""
        if self._failure is not None or self.control.is_stopped:
            return SafeText("It has ended.")
        return self.continuation.why_not(self._work if self._findings.keys else None)

    def go_on_later(self, file: AnalysisFile) -> None:
        """List no more keys, and save the pass once all is known of those that are, in place of a last report."""
        self.continuation.file = file
        self.control.finish(LATER)

    async def _save(self) -> None:
        """Write down all that is known; raises an RtuiError with the reason if that can't be."""
        self._pipeline.settle()
        aggregates = await _in_slices(self._findings.saved())
        notes = [str(note.value) for note in self.progress.notes if note is not ScanNote.REPEATS]
        content = self.continuation.content(
            self._work, self._pipeline, aggregates, cost=self.cost, before=self._before, notes=notes
        )
        await self.continuation.save(content)

    def _fail(self, failure: RtuiError) -> None:
        """End the pass with a reason; the first one counts."""
        if self._failure is None:
            self._failure = failure.happened
        self.control.stop(SafeText(failure.happened.removesuffix(".")))

    @for_purpose(Purpose.HOT)
    async def ask_hot(self) -> None:
        """Ask the server again for its hot keys, once the last report is there; raises ConnectionLost."""
        report = self.report
        if report is None or not self.progress.state.is_over:
            return
        await self.hot.refresh(report.summary, at_last=True)
        if self.report is report:
            self.report = structs.replace(report, hot=self.hot.report)
            self._revision += 1

    async def _inspect(self) -> None:
        await self._connection.online()
        self._connection.forget_denied()
        await self._capabilities.probe(self._connection)
        await self._read_server(self._connection)
        work = self._work = await self._new_work()
        self._revision += 1
        await work.run()

    @for_purpose(Purpose.SERVER)
    async def _read_server(self, server: CommandRunner) -> None:
        """Ask for the size of the database and what the server knows of all keys; raises ConnectionLost."""
        capabilities = self._capabilities

        async def snapshot() -> SizeSnapshot | None:
            return await take_snapshot(server) if capabilities.allows(Feature.DBSIZE) else None

        _, self._keysizes, now = await asyncio.gather(  # in one round trip
            self.hot.read_lfu_settings(), key_sizes(server, capabilities, self._connection.target.db), snapshot()
        )
        if now is not None and (self._counted_on is None or not self._counted_on.is_like(server.server)):
            self._before, self._counted_on = now, server.server
        self._size = None if now is None else now.size

    async def _new_work(self) -> Scan | SamplePass:
        """Return a sample where one is wanted and is smaller than the whole, else a scan of all keys.

        A sample draws keys before their types are known, so keys of one type are always scanned.
        """
        dialect = dialect_of(self._connection.server)
        wanted = self._options.estimate_keys
        is_smaller = wanted is not None and (self._size is None or self._size > 2 * wanted)
        if wanted is not None and is_smaller and self._only.key_type is None:
            if not can_sample(dialect):
                why = f"{NO_ESTIMATE[dialect]} not reach every key with the same chance"
                raise RtuiError("No estimate", SafeText(f"{why}: no estimate, but every key can be inspected."))
            self._is_sample = True
            self._choose_columns(columns_for(self._options.columns, None).of_every_key())
            await self._read_memory_bound()
            return SamplePass(
                self._connection, self._pipeline, keys=wanted, size=self._size, only=self._only, control=self.control
            )
        self._choose_columns(columns_for(self._options.columns, self._size))
        node = ScanNode(self._connection, dialect, size=self._size, queries=self._pipeline)
        if self.continuation.saved is not None:
            node = await self._go_on(self.continuation.saved, node)
        if dialect is Dialect.SLOTTED:
            slots = await owned_slots(self._connection)
            self._slots = None if slots is None else tuple(slots)
            node = replace(node, slots=slots)
        match, key_type, on_restart = self._only.match, self._only.key_type, self._drop_findings
        return Scan([node], lambda keys: None, self.control, match=match, key_type=key_type, on_restart=on_restart)

    async def _go_on(self, saved: SavedAnalysis, node: ScanNode) -> ScanNode:
        """Take back what was saved, and return the node from where the scan of it stopped."""
        found = self.continuation.node(node)
        self._choose_columns(saved.columns)
        try:
            await _in_slices(self._findings.restore(saved.aggregates))
        except (NotSavedError, OverflowError, MsgspecError):
            raise RtuiError("It can't go on", SafeText("What was saved of the analysis is damaged.")) from None
        self._pipeline.restore(saved.inspection)
        self._before, self._counted_on = saved.before, self._connection.server
        return found

    def _choose_columns(self, columns: Columns) -> None:
        """Ask these facts of these keys; before the first key is asked."""
        self._plan.columns = columns
        self._scope = structs.replace(self._scope, columns=columns)
        self._findings = self._pipeline.findings = self._new_findings()

    @for_purpose(Purpose.SERVER)
    async def _read_memory_bound(self) -> None:
        """Ask what all keys can have at most; they may grow while they are sampled."""
        found = await memory_bound(self._connection, self._capabilities)
        self._extra_commands += 2
        if found is not None:
            self._most_bytes = max(found, self._most_bytes or 0)

    def _drop_findings(self, note: ScanNote) -> None:
        """Drop the findings: every key is delivered again."""
        self.continuation.forget()
        self._findings = self._pipeline.findings = self._new_findings()

    def _new_findings(self) -> Aggregates:
        separators = Separators(self._options.separators)
        return Aggregates(
            separators,
            scope=self._scope,
            started_at_s=self.continuation.began_at_s,
            new_counters=new_counters,
            registry=self._options.registry,
            is_sample=self._is_sample,
        )

    async def _finish(self) -> None:
        """Complete the facts of the largest keys, and make the last report even if that fails."""
        self._pipeline.settle()
        for _ in self._findings.add_held():
            await asyncio.sleep(0)
        failure = await failure_of(self._ask_last(), name="rtui last questions")
        if failure is not None and self._failure is None:
            self._notes.append(SafeText(f"What is asked at the end could not be had: {failure.happened}"))
        await self._publish(is_final=True)

    async def _ask_last(self) -> None:
        """Complete the largest keys and compare the counts; raises an RtuiError where the connection does not hold."""
        if not self._connection.is_online:
            return
        try:
            async with asyncio.timeout(LAST_S):
                await self._check_count()
                if isinstance(self._work, SamplePass):
                    await self._read_memory_bound()
                lane = await self._connection.bulk()
                if lane.server.is_like(self._plan.server):  # another server knows nothing of these keys
                    big, own_reads = self._findings.big, self._connection.own_reads
                    self._extra_commands += await complete_largest(
                        lane, self._plan, big.report(), big.learn, top=self._options.top, own_reads=own_reads
                    )
                    prove_longest(self._pipeline.late_lengths, big)
                    if any(record.note == READ_BY_RTUI for record in big.report().by_memory):
                        self._notes.append(SafeText(READ_BY_RTUI_NOTE))
        except TimeoutError:
            raise ConnectionLost(f"There was no answer within {LAST_S:g} s.") from None

    async def _check_count(self) -> None:
        """Note what can't be right: another number of keys than the server counts, or more keys gone than can be."""
        work, before, findings = self._work, self._before, self._findings
        found = findings.keys + findings.unread_keys
        is_whole = isinstance(work, Scan) and work.state is ScanState.DONE and self._only.is_open
        is_suspect = findings.vanished_keys > 0 or (is_whole and before is not None and found != before.size)
        if before is None or not is_suspect or not self._capabilities.allows(Feature.DBSIZE):
            return
        after, is_replica = await take_snapshot(self._connection), self._connection.server.role == "replica"
        differs = disagreement(before, after, found, is_replica=is_replica) if is_whole else None
        too_many = too_many_gone(before, after, findings.vanished_keys)
        self._notes += [note for note in (differs, too_many) if note is not None]

    async def _report_now_and_then(self) -> None:
        """Publish a report again and again while the run goes on."""
        loop = asyncio.get_running_loop()
        pause_s, seen = FIRST_REPORT_S, -1
        while True:
            await asyncio.sleep(pause_s)
            pause_s = REPORT_EVERY_S
            self._pipeline.settle()
            if self._work is None or self._findings.revision == seen:
                continue
            seen = self._findings.revision
            began = loop.time()
            await self._publish(is_final=False)
            pause_s = max(REPORT_EVERY_S, (loop.time() - began) / REPORT_SHARE)

    async def _publish(self, *, is_final: bool) -> None:
        """Sum up in slices, ask for the hot keys, and make the report of it."""
        work, findings, progress = self._work, self._findings, self.progress
        sampled = SampledKeyspace(work.population, self._most_bytes) if isinstance(work, SamplePass) else None
        summary = await _in_slices(findings.summary(sampled))
        counted = findings.counted
        with contextlib.suppress(RtuiError):
            await self.hot.refresh(summary, at_last=is_final)
        if is_final:
            self._is_ended = True
            progress = self.progress
        size = self._size if self._only.is_open else None
        coverage = coverage_of(counted, work, progress, size=size, why_ended=self.control.stop_reason)
        scanned = () if work is None else tuple(SafeText(note.value) for note in work.progress.notes)
        scope = structs.replace(self._scope, pace=self.control.pace.value)
        notes = (*self._connection.notes, *self.continuation.notes, *scanned, *self._notes)
        heading = head(self._connection, self._pipeline, scope=scope, coverage=coverage, cost=self.cost, notes=notes)
        slots = structs.replace(summary.slots, owned=self._slots)
        self.report = Report(heading, structs.replace(summary, slots=slots), self.hot.report, self._keysizes)
        self._revision += 1


async def _in_slices(work: Steps[T]) -> T:
    """Do work on the event loop, slice by slice, and beside it where that needs no Python."""
    with contextlib.closing(work):
        while True:
            try:
                elsewhere = next(work)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            if elsewhere is None:
                await asyncio.sleep(0)
            else:
                await asyncio.to_thread(elsewhere)
