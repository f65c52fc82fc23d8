"""One analysis of a keyspace: its pass over the keys, and the reports made from it, from time to time and at the end.

`key_pass` decides which commands are sent about which keys, and counts the results.

Keys and bytes of a cluster's node are those of its slots, which are counted as one for all nodes: so keys of a slot
that moved count for the node that serves it in the end.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import structs

from rtui.analysis import humanize
from rtui.analysis.columns import columns_for
from rtui.analysis.report.document import (
    ClusterNode,
    ClusterReport,
    ColumnState,
    Coverage,
    CoverageKind,
    MovingSlot,
    Report,
    SlotRanges,
    SlotsReport,
    UncoveredSlots,
)
from rtui.keyspace.slots import SLOTS, joined_ranges
from rtui.keyspace.text.display import SafeText
from rtui.server.analysis.key_pass import AnalysisPass
from rtui.server.analysis.table_import import import_counting
from rtui.server.deployment.nodes import Deployment
from rtui.server.hot.report import HotKeyReporter
from rtui.server.inspection.inspected_nodes import NodeInspection
from rtui.server.inspection.report_head import cost_report, coverage_of, head, keys_refused, server_report
from rtui.server.options import AnalysisOptions
from rtui.server.scan.pace import MIN_COUNT
from rtui.server.scan.page import ScanFilter
from rtui.server.scan.parted_scan import PartedScan
from rtui.server.scan.progress import Cost, NodeProgress, Progress, ScanState
from rtui.server.scan.run_control import RunControl
from rtui.server.scan.scan import Scan
from rtui.server.wire.capability import Capabilities
from rtui.server.wire.command_log import Purpose, for_purpose
from rtui.server.wire.connection import Connection
from rtui.server.wire.errors import RtuiError
from rtui.server.wire.supervised_tasks import end_task, failure_of, in_slices, start_supervised

if TYPE_CHECKING:
    from rtui.table.aggregates import Collected
    from rtui.table.kept_rows import PassRows

ESTIMATE_KEYS: Final = 20_000
"""Keys of an estimate by default: shares within 0.7 percentage points."""

FIRST_REPORT_S: Final = 0.3
"""When the first figures of a pass are added up."""

REPORT_EVERY_S: Final = 1.0
"""How often they are, at most."""

REPORT_SHARE: Final = 0.05
"""Adding up takes at most this share of the time."""

AROUND: Final = 1_000
"""Commands that an analysis sends at most besides those about keys and its SCANs, in some minutes."""


def analysis_bill(connection: Connection, options: AnalysisOptions) -> SafeText | None:
    """Return the price of an analysis, without a full stop, if the server bills commands; else None."""
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
        *,
        deployment: Deployment | None = None,
        control: RunControl | None = None,
    ) -> None:
        """Raise PatternError or GuardError for a filter beyond the bounds.

        The connection is that to the home server of the `deployment`, of which all nodes are inspected; without one it
        leads to the only server.
        """
        self.report: Report | None = None
        """The latest report; the final one once `progress` is over."""
        self.control = control or RunControl(options.pace)
        self._revision = 0
        self._connection = connection
        self._options = options
        self._deployment = deployment or Deployment.over(connection)
        self._only = ScanFilter(options.match, options.key_type)
        self._made: AnalysisPass | None = None
        self.hot = HotKeyReporter(connection, Capabilities())
        """The hot keys of the report, and when they were read."""
        self.written: int | None = None
        """Rows that tasks have written; None without such tasks."""
        self._failure: SafeText | None = None
        self._notes: list[SafeText] = []
        self._is_ended = False

    @property
    def revision(self) -> int:
        return self._revision + self.control.revision

    @property
    def progress(self) -> Progress:
        """How far it is, in keys that were counted; over only when the last report is there."""
        made = self._made
        work = None if made is None else made.work
        keys = 0 if made is None else made.findings.keys + made.findings.unread_keys
        if self._failure is not None:
            now = Progress(ScanState.FAILED, None, keys, reason=self._failure)
        elif work is None:
            return Progress(ScanState.PAUSED if self.control.is_paused else ScanState.READY)
        else:
            now = work.progress if isinstance(work, PartedScan) else replace(work.progress, keys=keys)
        if now.state.is_over and not self._is_ended:
            return replace(now, state=ScanState.RUNNING)
        return now

    @property
    def cost(self) -> Cost:
        return Cost() if self._made is None else self._made.cost

    @property
    def collected(self) -> Collected:
        """The sums of all keys, once the run is over."""
        return self._pass.findings.collected()

    @property
    def _pass(self) -> AnalysisPass:
        """The pass, which is made when the run begins."""
        assert self._made is not None  # noqa: S101 - nothing of it is asked before
        return self._made

    @property
    def rows(self) -> PassRows | None:
        """The rows of all keys so far, or the reason why they are not kept; None before the first."""
        rows = None if self._made is None else self._made.rows
        if rows is None or not (rows.height or rows.why_none):
            return None
        from rtui.table.kept_rows import PassRows  # noqa: PLC0415 - imports Polars, as the pass did

        return PassRows(rows, self._pass.scope)

    def forget_rows(self) -> None:
        if self._made is not None and self._made.rows is not None:
            self._made.rows.close()

    @for_purpose(Purpose.INSPECTION)
    async def run(self, *, reports_meanwhile: bool = True) -> None:
        """Run it to its end; failures are in `progress` and the report, only cancellation is raised.

        Without `reports_meanwhile` there is one report, at the end.
        """
        failure = await failure_of(self._make_pass(), name="rtui import")
        if failure is not None:
            self._fail(failure)
            self._is_ended = True
            self._revision += 1
            return
        meanwhile = [start_supervised(self._pass.add_held(), name="rtui sums", failed=self._fail)]
        if reports_meanwhile:
            meanwhile += [start_supervised(self._report_now_and_then(), name="rtui report", failed=self._fail)]
        budget = self._options.budget_s
        alarm = None
        if budget is not None:
            why = SafeText(f"the {budget:g} s budget was used up")
            alarm = asyncio.get_running_loop().call_later(budget, self.control.stop, why)
        try:
            failure = await failure_of(self._inspect(), name="rtui inspection")
            if failure is not None:
                self._fail(failure)
        finally:
            if alarm is not None:
                alarm.cancel()
            for task in meanwhile:
                await end_task(task)
        failure = await failure_of(self._finish(), name="rtui last report")
        if failure is not None:
            self._fail(failure)
        self._is_ended = True
        self._revision += 1

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

    async def _make_pass(self) -> None:
        """Import the counting modules, and make the pass; raises an RtuiError if it is not possible."""
        await asyncio.to_thread(import_counting)
        self._made = AnalysisPass(self._options, self._only, self._deployment, self.control)
        self.hot = HotKeyReporter(self._connection, self._made.nodes.all[0].capabilities)

    async def _begin(self) -> Sequence[NodeInspection]:
        """Return the reachable nodes; raises an RtuiError if there is none."""
        await self._connection.online()
        return await self._pass.begin()

    async def _inspect(self) -> None:
        asked, nodes = await self.control.unless_stopped(self._begin()), self._pass.nodes
        if asked is None:
            raise RtuiError("The analysis has ended", "It was stopped before it began.")
        if nodes.all[0].connection is not self._connection or len(asked) > 1:
            (first, *others) = [(await nodes.used_by_clients(node), node.capabilities) for node in asked]
            self.hot = HotKeyReporter(*first, others, of_replicas=any(node.is_replica for node in asked))
        if self._options.dask is not None and nodes.is_cluster:
            from rtui.server.analysis.scale import collect_on_dask  # noqa: PLC0415 - few use it

            self._revision += 1
            self.written = await collect_on_dask(self._pass, self._options, self._deployment, self._options.dask)
            return
        workers = min(self._options.workers, len(asked))
        if workers > 1 and nodes.is_cluster:
            from rtui.server.analysis.workers import collect_in_workers  # noqa: PLC0415 - few use it

            self._revision += 1
            await collect_in_workers(self._pass, self._options, self._deployment, workers)
            return
        work = await self._pass.choose_work(asked)
        self._revision += 1
        await work.run()

    async def _finish(self) -> None:
        """Complete the facts of the largest keys, and make the last report even if that fails."""
        failed = await self._pass.ask_last()
        if self._failure is None:
            self._notes += [SafeText(f"The final queries failed: {happened}") for happened in failed]
        await self._publish(is_final=True)

    async def _report_now_and_then(self) -> None:
        loop = asyncio.get_running_loop()
        pause_s, seen = FIRST_REPORT_S, -1
        while True:
            await asyncio.sleep(pause_s)
            pause_s = REPORT_EVERY_S
            self._pass.settle()
            if self._pass.work is None or self._pass.findings.revision == seen:
                continue
            if not self._pass.findings.keys:  # nothing to add up, but a while until the next time
                pause_s = FIRST_REPORT_S
                continue
            seen = self._pass.findings.revision
            await in_slices(self._pass.findings.add_held())  # a part of counting, not of adding up
            began = loop.time()
            waited_s = await self._publish(is_final=False)
            pause_s = max(REPORT_EVERY_S, (loop.time() - began - waited_s) / REPORT_SHARE)

    async def _publish(self, *, is_final: bool) -> float:
        """Sum up in slices, ask for the hot keys, and make the report of it; return how long servers took for that."""
        work, nodes, findings, progress = self._pass.work, self._pass.nodes, self._pass.findings, self.progress
        summary = await in_slices(findings.summary(self._pass.sampled))
        counted = findings.counted
        self.hot.lfu = nodes.all[0].lfu_settings
        asked_at_s = asyncio.get_running_loop().time()
        with contextlib.suppress(RtuiError):
            await self.hot.refresh(summary, at_last=is_final)
        waited_s = asyncio.get_running_loop().time() - asked_at_s
        if is_final:
            self._is_ended = True
            progress = self.progress
        scan = work if isinstance(work, Scan | PartedScan) else None
        if scan is not None:
            nodes.assign(scan.owners)
        size = nodes.size if self._pass.only.is_open else None
        listed = None if scan is None else nodes.listed(scan.unlisted)
        slots = structs.replace(summary.slots, owned=nodes.slots, listed=listed)
        cluster = None
        if nodes.is_cluster:
            ttl_counts = findings.slots.ttl_counts()
            cluster = cluster_report(nodes.serving, scan, slots, ttl_counts, nodes.label_of)
        coverage = coverage_of(counted, work, progress, size=size, why_ended=self.control.stop_reason)
        coverage = covered(coverage, cluster, self.control.stop_reason)
        scanned = () if scan is None else scan.notes
        scope = structs.replace(self._pass.scope, pace=self.control.pace.value)
        notes = (*(*self._connection.notes, *self._deployment.notes), *(*scanned, *self._pass.notes, *self._notes))
        heading = head(
            *(self._connection, nodes.pipelines),
            scope=scope,
            coverage=coverage,
            cost=self.cost,
            notes=notes,
            is_whole_cluster=cluster is not None,
        )
        if is_final and not self._pass.sampled and heading.columns["type"].state is ColumnState.COMPLETE:
            refused = keys_refused(summary.root.stats, coverage.unread)
            heading = structs.replace(heading, notes=(*heading.notes, *refused))
        summary = structs.replace(summary, slots=slots)
        self.report = Report(heading, summary, self.hot.report, nodes.key_sizes, cluster)
        self._revision += 1
        return waited_s


NAMED: Final = 3
"""So many of the nodes whose slots were not covered are named in the head of a report; the rest is counted."""

TtlCounts: TypeAlias = tuple[Sequence[int], Sequence[int]]
"""By slot: the keys whose time to live is known, and how many of these never expire."""

UNSERVED: Final = "no node serves them"


def cluster_report(
    nodes: Sequence[NodeInspection],
    scan: Scan | PartedScan | None,
    slots: SlotsReport,
    ttl_counts: TtlCounts,
    label_of: Callable[[str], str],
) -> ClusterReport:
    """Return the cluster section of a report.

    `scan` is None for an estimate; `label_of` returns `host:port` of a node by its id: of the primary, even if a
    replica was asked.
    """
    progress = {one.id: one for one in (() if scan is None else scan.nodes)}
    labels = [label_of(node.node.id or "") for node in nodes]
    found = [
        _node(node, label, progress.get(node.node.id), slots, ttl_counts, is_estimate=scan is None)
        for node, label in zip(nodes, labels, strict=True)
    ]
    if scan is not None and scan.state.is_over and not scan.control.is_stopped:
        uncovered = _uncovered(found, scan)
    else:  # not covered are all other slots
        uncovered = [UncoveredSlots(one.slots, one.label, one.failure) for one in found if one.failure]
        joined = [(-1, -1), *joined_ranges([one for node in found for one in node.slots]), (SLOTS, SLOTS)]
        gaps = ((before[1] + 1, after[0] - 1) for before, after in pairwise(joined))
        unserved = tuple((first, last) for first, last in gaps if first <= last)
        if unserved:
            uncovered.append(UncoveredSlots(unserved, "", UNSERVED))
    moving = () if scan is None else _moving(found, scan, label_of)
    return ClusterReport(tuple(sorted(found, key=lambda node: node.slots)), tuple(uncovered), moving)


def _moving(
    nodes: Sequence[ClusterNode], scan: Scan | PartedScan, label_of: Callable[[str], str]
) -> tuple[MovingSlot, ...]:
    """Return the slots that nodes are handing over, as they said last."""
    labels, owners = {one.id: one.label for one in nodes}, scan.owners
    found = ((slot, labels.get(owners[slot] or ""), target) for slot, target in sorted(scan.moves.items()))
    return tuple(MovingSlot(slot, label, label_of(target)) for slot, label, target in found if label is not None)


def _uncovered(nodes: Sequence[ClusterNode], scan: Scan | PartedScan) -> list[UncoveredSlots]:
    """Return the uncovered slots, each with the node that serves it, or served it when the analysis began."""
    reasons = {slot: one.why for one in scan.uncovered for first, last in one.slots for slot in range(first, last + 1)}
    uncovered: list[UncoveredSlots] = []
    for node in nodes:
        by_reason: dict[str, list[int]] = {}
        for slot in node.served:
            if slot in reasons:
                why = reasons.pop(slot).removesuffix(".")
                by_reason.setdefault(node.failure or why, []).append(slot)
        uncovered += [UncoveredSlots(_ranges(found), node.label, why) for why, found in by_reason.items()]
    return uncovered + ([UncoveredSlots(_ranges(reasons), "", UNSERVED)] if reasons else [])


def _ranges(slots: Iterable[int]) -> SlotRanges:
    return joined_ranges((slot, slot) for slot in slots)


def _node(
    inspection: NodeInspection,
    label: str,
    progress: NodeProgress | None,
    slots: SlotsReport,
    ttl_counts: TtlCounts,
    *,
    is_estimate: bool,
) -> ClusterNode:
    server = server_report(inspection.connection, inspection.plan)
    failure = inspection.failure or (None if progress is None else progress.failure)
    ranges = inspection.slots or ()
    found = ClusterNode(
        id=inspection.node.id,
        label=label,
        role=server.role,
        product=server.product,
        version=server.version,
        slots=ranges,
        keys=inspection.size,
        failure="" if failure is None else failure.removesuffix("."),
    )
    if is_estimate:
        return found
    parts = [slots.bytes_in(first, last) for first, last in ranges]
    known = [size for size, _ in parts if size is not None]
    keys, unmeasured = _sum(slots.keys, ranges), slots.unmeasured
    lacking = 0 if unmeasured is None else _sum(unmeasured, ranges)
    ttl_known, no_ttl = (_sum(counts, ranges) for counts in ttl_counts)
    fraction = None if progress is None else progress.fraction
    if not keys and (not fraction if failure else fraction == 0):  # nothing of it was read
        return structs.replace(found, keys=None, fraction=fraction)
    is_known = slots.memory_bytes is not None and (known or not keys)
    return structs.replace(
        found,
        keys=keys,
        memory_bytes=sum(known) if is_known else None,
        memory_known_keys=keys - lacking if is_known else 0,
        no_ttl_share=no_ttl / ttl_known if ttl_known else None,
        fraction=fraction,
        cost=found.cost if progress is None else cost_report(progress.cost),
    )


def _sum(counts: Sequence[int], ranges: Sequence[tuple[int, int]]) -> int:
    return sum(sum(counts[first : last + 1]) for first, last in ranges)


def covered(coverage: Coverage, cluster: ClusterReport | None, why_ended: str | None) -> Coverage:
    """Return the coverage of a report: partial, with a reason that names them, if slots were not covered.

    `why_ended`: why the whole run was ended early, if it was. The fraction of the whole scan accounts for nodes that
    were begun but not finished; slots that no scan began or left over are subtracted here.
    """
    if cluster is None or not cluster.uncovered or coverage.kind is CoverageKind.ESTIMATE:
        return coverage
    reasons = [why_ended] if why_ended else []
    reasons += [_uncovered_text(one) for one in cluster.uncovered[:NAMED]]
    more = len(cluster.uncovered) - NAMED
    if more > 0:
        reasons.append(f"and those of {humanize.counted(more, 'more node')}")
    unfinished = {node.label for node in cluster.nodes if node.fraction is not None and node.fraction < 1}
    lost = joined_ranges([one for part in cluster.uncovered if part.node not in unfinished for one in part.slots])
    of_all = 1 - sum(last - first + 1 for first, last in lost) / SLOTS
    fraction = None if coverage.fraction is None else coverage.fraction * of_all
    return structs.replace(
        coverage, kind=CoverageKind.PARTIAL, fraction=fraction, total_keys=None, reason="; ".join(reasons)
    )


def _uncovered_text(uncovered: UncoveredSlots) -> str:
    where = f" of {uncovered.node}" if uncovered.node else ""
    return f"{humanize.slots(uncovered.slots)}{where} were not covered ({uncovered.reason})"
