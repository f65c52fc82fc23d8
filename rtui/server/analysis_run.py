"""One analysis of a keyspace: a scan or a sample that inspects keys, and the report of what they add up to."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Coroutine, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from msgspec import MsgspecError, structs

from rtui.analysis.aggregate.aggregates import Aggregates
from rtui.analysis.aggregate.figures import SampledKeyspace
from rtui.analysis.aggregate.saved import NotSavedError
from rtui.analysis.columns import Columns, columns_for
from rtui.analysis.report.document import BigReport, Report, Scope, SlotsReport
from rtui.keyspace.slices import Steps
from rtui.keyspace.text.display import SafeText
from rtui.keyspace.text.segments import Separators
from rtui.server.continuation import Continuation
from rtui.server.deployment.nodes import Deployment
from rtui.server.engine.counters import new_counters
from rtui.server.hot.report import HotKeyReporter
from rtui.server.inspection.cluster_report import cluster_report, covered
from rtui.server.inspection.inspected_nodes import InspectedNodes
from rtui.server.inspection.largest import READ_BY_RTUI, READ_BY_RTUI_NOTE, prove_longest
from rtui.server.inspection.node_inspection import NodeInspection
from rtui.server.inspection.report_head import coverage_of, head
from rtui.server.inspection.sample_pass import ClusterSamplePass, SamplePass
from rtui.server.options import AnalysisOptions
from rtui.server.saved_analysis import AnalysisFile, SavedAnalysis
from rtui.server.scan.cursor import Dialect
from rtui.server.scan.cursor_proof import prove_cursors
from rtui.server.scan.node import ScanNode
from rtui.server.scan.pace import MIN_COUNT
from rtui.server.scan.page import ScanFilter, disagreement, too_many_gone
from rtui.server.scan.progress import Cost, Progress, ScanNote, ScanState
from rtui.server.scan.run_control import RunControl
from rtui.server.scan.sampling import can_sample
from rtui.server.scan.scan import Scan
from rtui.server.scan.turns import Turns
from rtui.server.wire.command_log import Purpose, for_purpose
from rtui.server.wire.connection import Connection
from rtui.server.wire.errors import ConnectionLost, RtuiError
from rtui.server.wire.supervised_tasks import end_task, failure_of, for_each, start_supervised

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

NOT_IN_A_CLUSTER: Final = SafeText("Slots of a cluster may be at other nodes by then, where positions mean nothing.")
"""Why the analysis of a cluster can't be left."""

NOT_OF_A_PART: Final = SafeText(
    "The size of every node has to be known (DBSIZE), so that each gives its part of the keys."
)
"""Why there is no estimate of a cluster."""

SLOT_BY_SLOT: Final = SafeText(
    "The keys were drawn from all slots, of each in proportion to its number of keys (CLUSTER COUNTKEYSINSLOT)."
)
"""How keys are drawn where cursors go slot by slot."""

AROUND: Final = 1_000
"""Commands that an analysis sends at most besides those about keys and its SCANs, in some minutes."""

NO_ESTIMATE: Final = {
    Dialect.SLOTTED: "This server's cursors go slot by slot, so random ones do",
    Dialect.OPAQUE: "It is not known how this server counts its cursors, so random ones may",
}
"""Why there is no estimate of a node of a newer cluster, or of a server whose cursors are not those of Redis."""


def analysis_bill(connection: Connection, options: AnalysisOptions) -> SafeText | None:
    """Say what an analysis would cost, without a full stop, where the server bills commands; None where it does not."""
    server, keys = connection.server, None
    if server.compatible is None:
        return None
    if server.databases is not None:
        keys = server.databases.get(connection.target.db, 0)
    commands = None
    if keys is not None:
        commands = AROUND + keys // MIN_COUNT + columns_for(options.columns, keys).questions(keys)
    said = server.compatible.bill(commands)
    return None if said is None else SafeText(said)


class AnalysisRun:
    """One analysis over a connection that is open; `run` it once. Everything else may be called at any time."""

    def __init__(
        self,
        connection: Connection,
        options: AnalysisOptions,
        saved: SavedAnalysis | None = None,
        *,
        deployment: Deployment | None = None,
    ) -> None:
        """Go on with one that was saved, if any; raises PatternError or GuardError for a filter beyond the bounds.

        The connection is that to the home server of the `deployment`, of which all nodes are inspected; without one it
        leads to the only server.
        """
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
        self._is_sample = False
        """Whether the keys are a random sample."""
        self.continuation = Continuation(connection, options, saved)
        """What of it is of earlier runs, and what is saved for a later one."""
        self._findings = self._new_findings()
        self._nodes = InspectedNodes(deployment or Deployment.over(connection), self._findings, options.separators)
        self._work: Scan | SamplePass | ClusterSamplePass | None = None
        self._most_bytes: int | None = None
        """What all keys can have at most; asked for estimates only."""
        self.hot = HotKeyReporter(connection, self._nodes.all[0].capabilities)
        """The hot keys of the report, and when they were asked for."""
        self._failure: SafeText | None = None
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
        return replace(cost, commands=cost.commands + self._nodes.extra_commands)

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
        if self._nodes.is_cluster:
            return NOT_IN_A_CLUSTER
        return self.continuation.why_not(self._work if self._findings.keys else None)

    def go_on_later(self, file: AnalysisFile) -> None:
        """List no more keys, and save the pass once all is known of those that are, in place of a last report."""
        self.continuation.file = file
        self.control.finish(LATER)

    async def _save(self) -> None:
        """Write down all that is known; raises an RtuiError with the reason if that can't be."""
        (node,) = self._nodes.all  # `why_not_later` has ruled out several
        if node.node.primary is not None and node.is_replica:
            await node.node.primary.followed(await node.connection.bulk())
        node.pipeline.settle()
        aggregates = await _in_slices(self._findings.saved())
        notes = [str(note.value) for note in self.progress.notes if note is not ScanNote.REPEATS]
        content = self.continuation.content(
            self._work, node.pipeline, aggregates, cost=self.cost, before=node.before, notes=notes
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
        asked = await self._nodes.begin()
        self.continuation.connection = asked[0].connection
        if self._nodes.all[0].connection is not self._connection or len(asked) > 1:
            (first, *others) = [(await self._nodes.used_by_clients(node), node.capabilities) for node in asked]
            self.hot = HotKeyReporter(*first, others, of_replicas=any(node.is_replica for node in asked))
        work = self._work = await self._new_work(asked)
        self._revision += 1
        await work.run()

    async def _new_work(self, nodes: Sequence[NodeInspection]) -> Scan | SamplePass | ClusterSamplePass:
        """Return a sample where one is wanted and is smaller than the whole, else a scan of all keys.

        A sample draws keys before their types are known, so keys of one type are always scanned.
        """
        size = self._nodes.size
        wanted = self._options.estimate_keys
        is_smaller = wanted is not None and (size is None or size > 2 * wanted)
        if wanted is not None and is_smaller and self._only.key_type is None:
            self._is_sample = True
            self._choose_columns(columns_for(self._options.columns, None).of_every_key())
            await self._read_memory_bound()
            return await self._new_sample(nodes, wanted)
        self._choose_columns(columns_for(self._options.columns, size))
        scanned = await for_each(nodes, NodeInspection.scan_node)
        if self.continuation.saved is not None:
            scanned = [await self._go_on(self.continuation.saved, nodes[0], scanned[0])]
        return Scan(
            *(scanned, lambda keys: None, self.control),
            match=self._only.match,
            key_type=self._only.key_type,
            on_restart=self._drop_findings,
            cluster=self._nodes if self._nodes.is_cluster else None,
        )

    async def _new_sample(self, nodes: Sequence[NodeInspection], wanted: int) -> SamplePass | ClusterSamplePass:
        """Return what draws so many keys, of each node by its size; raises an RtuiError where that can't be done."""
        size, is_one = self._nodes.size, len(self._nodes.all) == 1
        if len(nodes) < len(self._nodes.all) or (size is None and not is_one):
            raise RtuiError("No estimate", NOT_OF_A_PART)
        parts = []
        for node in nodes:
            node.extra_commands += await prove_cursors(node.connection, node.size)
            slots = (await node.scan_node()).slots
            if not can_sample(node.dialect) and slots is None:
                why = f"{NO_ESTIMATE[node.dialect]} not reach every key with the same chance"
                raise RtuiError("No estimate", SafeText(f"{why}: no estimate, but every key can be inspected."))
            keys = wanted if is_one or not size else round(wanted * (node.size or 0) / size)
            parts.append(
                SamplePass(
                    *(node.connection, node.pipeline),
                    keys=keys,
                    size=node.size,
                    only=self._only,
                    control=self.control,
                    slots=None if can_sample(node.dialect) else slots,
                )
            )
        if any(not can_sample(node.dialect) for node in nodes):
            self._notes.append(SLOT_BY_SLOT)
        if is_one:
            return parts[0]
        return ClusterSamplePass(parts, size or 0, self.control, is_filtered=not self._only.is_open)

    async def _go_on(self, saved: SavedAnalysis, inspection: NodeInspection, node: ScanNode) -> ScanNode:
        """Take back what was saved, and return the node from where the scan of it stopped."""
        found = self.continuation.node(node)
        self._choose_columns(saved.columns)
        try:
            await _in_slices(self._findings.restore(saved.aggregates))
        except (NotSavedError, OverflowError, MsgspecError):
            raise RtuiError("It can't go on", SafeText("What was saved of the analysis is damaged.")) from None
        inspection.pipeline.restore(saved.inspection)
        inspection.before, inspection.counted_on = saved.before, self._connection.server
        return found

    def _choose_columns(self, columns: Columns) -> None:
        """Ask these facts of these keys; before the first key is asked."""
        self._nodes.choose(columns)
        self._scope = structs.replace(self._scope, columns=columns)
        self._begin_findings()

    @for_purpose(Purpose.SERVER)
    async def _read_memory_bound(self) -> None:
        """Ask what all keys can have at most; they may grow while they are sampled."""
        found = await for_each(self._nodes.all, NodeInspection.read_memory_bound)
        if None not in found:
            self._most_bytes = max(sum(bound for bound in found if bound is not None), self._most_bytes or 0)

    def _drop_findings(self, note: ScanNote) -> None:
        """Drop the findings: every key is delivered again."""
        self.continuation.forget()
        self._begin_findings()

    def _begin_findings(self) -> None:
        """Have all nodes count in one place, from nothing."""
        self._findings = self._new_findings()
        self._nodes.use(self._findings)

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
        self._settle()
        for _ in self._findings.add_held():
            await asyncio.sleep(0)
        if isinstance(self._work, Scan):
            self._nodes.assign(self._work.owners)
        listed, slots, turns = self._findings.big.report(), self._findings.slots.report(), Turns()

        def ask_last(node: NodeInspection) -> Awaitable[RtuiError | None]:
            return failure_of(_in_time(self._ask_last(node, listed, slots, turns)), name="rtui last questions")

        failures = await for_each(self._nodes.all, ask_last)
        if isinstance(self._work, SamplePass | ClusterSamplePass):
            failures.append(await failure_of(_in_time(self._read_memory_bound()), name="rtui last questions"))
        prove_longest([pipeline.late_lengths for pipeline in self._nodes.pipelines], self._findings.big)
        if any(record.note == READ_BY_RTUI for record in self._findings.big.report().by_memory):
            self._notes.append(SafeText(READ_BY_RTUI_NOTE))
        failed = dict.fromkeys(failure.happened for failure in failures if failure is not None)
        if self._failure is None:
            self._notes += [SafeText(f"What is asked at the end could not be had: {happened}") for happened in failed]
        await self._publish(is_final=True)

    async def _ask_last(self, node: NodeInspection, listed: BigReport, slots: SlotsReport, turns: Turns) -> None:
        """Compare the counts and complete the largest keys of a node; raises an RtuiError if it does not answer."""
        if node.connection.is_online and node.failure is None:
            await self._check_count(node, self._found_at(node, slots))
            await node.complete_largest(self._findings.big, listed, self._options.top, turns)

    def _found_at(self, node: NodeInspection, slots: SlotsReport) -> int:
        """Return how many keys were found at a node: those of the slots that it serves."""
        if len(self._nodes.all) == 1:
            return self._findings.keys + self._findings.unread_keys
        return sum(sum(slots.keys[first : last + 1]) for first, last in node.slots or ())

    async def _check_count(self, node: NodeInspection, found: int) -> None:
        """Note what can't be right: another number of keys than the node counts, or more keys gone than can be."""
        work, before, vanished = self._work, node.before, self._findings.vanished_keys
        is_whole = isinstance(work, Scan) and work.state is ScanState.DONE and self._only.is_open
        if before is None or not (vanished > 0 or (is_whole and found != before.size)):
            return
        after = await node.size_after()
        if after is None:
            return
        notes = [disagreement(before, after, found, is_replica=node.is_replica) if is_whole else None]
        if len(self._nodes.all) == 1:
            notes.append(too_many_gone(before, after, vanished))
        where = "" if len(self._nodes.all) == 1 else f"{node.label}: "
        self._notes += [SafeText(f"{where}{note}") for note in notes if note is not None]

    def _settle(self) -> None:
        """Have everything counted that is known."""
        for pipeline in self._nodes.pipelines:
            pipeline.settle()

    async def _report_now_and_then(self) -> None:
        """Publish a report again and again while the run goes on."""
        loop = asyncio.get_running_loop()
        pause_s, seen = FIRST_REPORT_S, -1
        while True:
            await asyncio.sleep(pause_s)
            pause_s = REPORT_EVERY_S
            self._settle()
            if self._work is None or self._findings.revision == seen:
                continue
            if not self._findings.keys:  # nothing to add up, but a while until the next time
                pause_s = FIRST_REPORT_S
                continue
            seen = self._findings.revision
            began = loop.time()
            waited_s = await self._publish(is_final=False)
            pause_s = max(REPORT_EVERY_S, (loop.time() - began - waited_s) / REPORT_SHARE)

    async def _publish(self, *, is_final: bool) -> float:
        """Sum up in slices, ask for the hot keys, and make the report of it; return how long servers took for that."""
        work, findings, progress = self._work, self._findings, self.progress
        sampled = (
            SampledKeyspace(work.population, self._most_bytes)
            if isinstance(work, SamplePass | ClusterSamplePass)
            else None
        )
        summary = await _in_slices(findings.summary(sampled))
        counted = findings.counted
        self.hot.lfu = self._nodes.all[0].lfu_settings
        asked_at_s = asyncio.get_running_loop().time()
        with contextlib.suppress(RtuiError):
            await self.hot.refresh(summary, at_last=is_final)
        waited_s = asyncio.get_running_loop().time() - asked_at_s
        if is_final:
            self._is_ended = True
            progress = self.progress
        scan = work if isinstance(work, Scan) else None
        if scan is not None:
            self._nodes.assign(scan.owners)
        size = self._nodes.size if self._only.is_open else None
        listed = None if scan is None else self._nodes.listed(scan.unlisted)
        slots = structs.replace(summary.slots, owned=self._nodes.slots, listed=listed)
        cluster = None
        if self._nodes.is_cluster:
            ttl_counts = findings.slots.ttl_counts()
            cluster = cluster_report(self._nodes.serving, scan, slots, ttl_counts, self._nodes.label_of)
        coverage = coverage_of(counted, work, progress, size=size, why_ended=self.control.stop_reason)
        coverage = covered(coverage, cluster, self.control.stop_reason)
        scanned = () if scan is None else scan.notes
        scope = structs.replace(self._scope, pace=self.control.pace.value)
        notes = (*self._connection.notes, *self.continuation.notes, *scanned, *self._notes)
        heading = head(
            *(self._connection, self._nodes.pipelines),
            scope=scope,
            coverage=coverage,
            cost=self.cost,
            notes=notes,
            is_whole_cluster=cluster is not None,
        )
        summary = structs.replace(summary, slots=slots)
        self.report = Report(heading, summary, self.hot.report, self._nodes.key_sizes, cluster)
        self._revision += 1
        return waited_s


async def _in_time(asking: Coroutine[object, object, None]) -> None:
    """Ask what is asked at the end; raises ConnectionLost where that takes too long."""
    try:
        async with asyncio.timeout(LAST_S):
            await asking
    except TimeoutError:
        raise ConnectionLost(f"There was no answer within {LAST_S:g} s.") from None


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
