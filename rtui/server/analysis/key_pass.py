"""The pass of an analysis over all keys, or a sample: the nodes, the columns read, and the findings.

Before the first key the columns are chosen by the number of keys. While a scan or a sample goes on, all nodes count in
one place; if keys are delivered anew, the count begins anew, too. At the end each node is asked for the missing facts
of the largest keys, and for its number of keys once more.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Coroutine, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from msgspec import structs

from rtui.analysis.columns import Columns, columns_for
from rtui.analysis.report.document import BigReport, Scope, SlotsReport
from rtui.analysis.report.figures import SampledKeyspace
from rtui.keyspace.text.display import SafeText
from rtui.keyspace.text.segments import Separators
from rtui.server import wall_clock
from rtui.server.deployment.nodes import Deployment
from rtui.server.inspection.inspected_nodes import InspectedNodes, NodeInspection
from rtui.server.inspection.largest import READ_BY_RTUI, READ_BY_RTUI_NOTE, prove_longest
from rtui.server.inspection.sample_pass import ClusterSamplePass, SamplePass
from rtui.server.options import AnalysisOptions
from rtui.server.scan.cursor import Dialect
from rtui.server.scan.node_scan import prove_cursors
from rtui.server.scan.page import ScanFilter, disagreement, too_many_gone
from rtui.server.scan.parted_scan import PartedScan
from rtui.server.scan.progress import Cost, ScanState
from rtui.server.scan.run_control import RunControl, Turns
from rtui.server.scan.sampling import can_sample
from rtui.server.scan.scan import Scan
from rtui.server.wire.command_log import Purpose, for_purpose
from rtui.server.wire.errors import ConnectionLost, RtuiError
from rtui.server.wire.supervised_tasks import failure_of, for_each, in_slices
from rtui.server.wire.target import Target

if TYPE_CHECKING:  # they are imported with Polars
    from rtui.table.aggregates import Aggregates
    from rtui.table.keys_file import KeysWriter
    from rtui.table.rows import KeptRows

T = TypeVar("T")

Work: TypeAlias = Scan | SamplePass | ClusterSamplePass

LAST_S: Final = 30.0
"""How long the last questions, about the largest keys, may take; the report is made without them then."""

MANY_HELD: Final = 50_000
"""Keys that are added at once as soon as they are held."""

ADD_EVERY_S: Final = 0.5
"""Seconds after which held rows are added at the latest."""

LOOK_EVERY_S: Final = 0.02

NOT_OF_A_PART: Final = SafeText("DBSIZE of every node is needed to sample each in proportion.")
"""Why there is no estimate of a cluster."""

SLOT_BY_SLOT: Final = SafeText(
    "Keys were sampled from all slots in proportion to their keys (CLUSTER COUNTKEYSINSLOT)."
)
"""How keys are drawn where cursors go slot by slot."""

NO_ESTIMATE: Final = {
    Dialect.SLOTTED: "This server's cursors go slot by slot, so random ones do",
    Dialect.OPAQUE: "It is not known how this server counts its cursors, so random ones may",
}
"""Why there is no estimate for a node of a newer cluster, or for a server whose cursors are not those of Redis."""


@dataclass(frozen=True, slots=True)
class ClusterPart:
    """Some nodes of a cluster, whose keys one of several processes inspects."""

    target: Target
    """How one of them is reached, and the others."""
    nodes: frozenset[str]
    """The ids of their primaries."""
    slots: frozenset[int]
    """The slots that are theirs, and that are scanned wherever they move; each slot is in one part."""


class AnalysisPass:
    """One pass; `begin` before `choose_work`, whose result the caller runs, then `ask_last`."""

    def __init__(
        self,
        options: AnalysisOptions,
        only: ScanFilter,
        deployment: Deployment,
        control: RunControl,
        part: ClusterPart | None = None,
    ) -> None:
        """Count the keys that `only` lets through, in a `part` of a cluster or all of it.

        The counting modules must have been imported (`table_import`).
        """
        self._options, self.control, self.only, self._part = options, control, only, part
        filters = (options.separators, options.match, options.key_type)
        self.scope = Scope(*filters, options.depth, options.top, pace=control.pace.value, preset=options.preset)
        """The keys and facts that are counted, as the report states them."""
        self._is_sample = False
        self.rows: KeptRows | None = None
        """The rows of all keys so far, if they are kept; another object once the pass begins anew."""
        self.writer: KeysWriter | None = None
        """The file of their rows, if there is one; likewise."""
        self.began_at_s = 0.0
        """When the count began, in seconds since the epoch."""
        self.findings = self._new_findings()
        """The count so far; another object once it begins anew."""
        self.nodes = InspectedNodes(deployment, self.findings, None if part is None else part.nodes)
        self.work: Work | PartedScan | None = None
        """The scan or sample that finds the keys; None before it is chosen."""
        self._most_bytes: int | None = None
        """Bound in bytes on the memory of all keys; read for estimates only."""
        self.notes: list[SafeText] = []

    @property
    def cost(self) -> Cost:
        cost = Cost() if self.work is None else self.work.cost
        return replace(cost, commands=cost.commands + self.nodes.extra_commands)

    @property
    def sampled(self) -> SampledKeyspace | None:
        """The keyspace that a sample stands for; None for a scan."""
        if not isinstance(self.work, SamplePass | ClusterSamplePass):
            return None
        return SampledKeyspace(self.work.population, self._most_bytes)

    async def begin(self) -> Sequence[NodeInspection]:
        """Find all nodes and their rights; return the reachable ones, at least one, else raise an error."""
        return await self.nodes.begin()

    async def choose_work(self, nodes: Sequence[NodeInspection]) -> Work:
        """Choose the columns, and a scan or sample of these nodes; raises an RtuiError if none is possible."""
        work = self.work = await self._new_work(nodes)
        return work

    async def _new_work(self, nodes: Sequence[NodeInspection]) -> Work:
        """Return a sample where one is wanted and is smaller than the whole, else a scan of all keys.

        A sample draws keys before their types are known, so keys of one type are always scanned.
        """
        size = self.nodes.size
        wanted = self._options.estimate_keys
        is_smaller = wanted is not None and (size is None or size > 2 * wanted)
        if wanted is not None and is_smaller and self.only.key_type is None:
            self._is_sample = True
            self._choose_columns(columns_for(self._options.columns, None).of_every_key())
            await self._read_memory_bound()
            return await self._new_sample(nodes, wanted)
        self.choose_columns()
        scanned = await for_each(nodes, NodeInspection.scan_node)
        return Scan(
            *(scanned, lambda keys: None, self.control),
            match=self.only.match,
            key_type=self.only.key_type,
            on_restart=lambda note: self._begin_findings(),
            cluster=self.nodes if self.nodes.is_cluster else None,
            only_slots=None if self._part is None else self._part.slots,
        )

    def choose_columns(self) -> None:
        """Choose the columns of all keys, and begin to count: for a scan made by other processes, see `workers`."""
        self._choose_columns(columns_for(self._options.columns, self.nodes.size))

    async def _new_sample(self, nodes: Sequence[NodeInspection], wanted: int) -> Work:
        """Return a sample of `wanted` keys, of each node by its size; raises an RtuiError if none is possible."""
        size, is_one = self.nodes.size, len(self.nodes.all) == 1
        if len(nodes) < len(self.nodes.all) or (size is None and not is_one):
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
                    only=self.only,
                    control=self.control,
                    slots=None if can_sample(node.dialect) else slots,
                )
            )
        if any(not can_sample(node.dialect) for node in nodes):
            self.notes.append(SLOT_BY_SLOT)
        if is_one:
            return parts[0]
        return ClusterSamplePass(parts, size or 0, self.control, is_filtered=not self.only.is_open)

    def _choose_columns(self, columns: Columns) -> None:
        """Choose the columns; before the first key is queried."""
        self.nodes.choose(columns)
        self.scope = structs.replace(self.scope, columns=columns)
        self._begin_findings()

    @for_purpose(Purpose.SERVER)
    async def _read_memory_bound(self) -> None:
        """Read the bound on the memory of all keys; they may grow while they are sampled."""
        found = await for_each(self.nodes.all, NodeInspection.read_memory_bound)
        if None not in found:
            self._most_bytes = max(sum(bound for bound in found if bound is not None), self._most_bytes or 0)

    def _begin_findings(self) -> None:
        self.findings = self._new_findings()
        self.nodes.use(self.findings)

    def _new_findings(self) -> Aggregates:
        separators = Separators(self._options.separators)
        began_at_s = self.began_at_s = self._options.began_at_s or wall_clock.now_s()
        registry = self._options.registry
        from rtui.table.aggregates import Aggregates  # noqa: PLC0415 - imports Polars

        if self.rows is not None:
            self.rows.close()
        self.rows = None
        if self._options.keep_rows and not self._is_sample:
            from rtui.table.rows import KeptRows, free_memory  # noqa: PLC0415 - imports Polars

            folder, most = self._options.rows_folder, self._options.keep_rows
            self.rows = KeptRows(free_memory() // 4, most, folder=folder)
        if self.writer is not None:
            self.writer.close()
        if self._options.write_to is not None:
            why, call = SafeText("the file can't be written"), asyncio.get_running_loop().call_soon_threadsafe
            self.writer = self._options.write_to(began_at_s, partial(call, self.control.stop, why))
        return Aggregates(
            separators,
            scope=self.scope,
            started_at_s=began_at_s,
            registry=registry,
            is_sample=self._is_sample,
            rows=self.rows or self.writer,
        )

    async def add_held(self) -> None:
        """Add the rows held by the findings from time to time, as long as the pass goes on."""
        added_at_s = time.monotonic()
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            least = 1 if time.monotonic() - added_at_s > ADD_EVERY_S else MANY_HELD
            if self.findings.held >= least:
                await in_slices(self.findings.add_held())
                added_at_s = time.monotonic()

    def settle(self) -> None:
        """Count all keys with complete facts now."""
        for pipeline in self.nodes.pipelines:
            pipeline.settle()

    async def ask_last(self) -> list[SafeText]:
        """Complete the facts of the largest keys and compare the counts; return why some of that could not be had."""
        self.settle()
        await in_slices(self.findings.add_held())
        if self.rows is not None:
            scan = self.work if isinstance(self.work, Scan) else None
            is_all, may_repeat = scan is not None and scan.state is ScanState.DONE, bool(scan and scan.repeats_possible)
            await asyncio.to_thread(self.rows.finish, wall_clock.now_s(), is_all=is_all, may_repeat=may_repeat)
        if isinstance(self.work, Scan | PartedScan):
            self.nodes.assign(self.work.owners)
        listed, slots, turns = self.findings.big.report(), self.findings.slots.report(), Turns()

        def ask(node: NodeInspection) -> Awaitable[RtuiError | None]:
            return failure_of(_in_time(self._ask_last_of(node, listed, slots, turns)), name="rtui last questions")

        failures = await for_each(self.nodes.all, ask)
        if isinstance(self.work, SamplePass | ClusterSamplePass):
            failures.append(await failure_of(_in_time(self._read_memory_bound()), name="rtui last questions"))
        prove_longest([pipeline.last_stages.late_lengths for pipeline in self.nodes.pipelines], self.findings.big)
        if any(record.note == READ_BY_RTUI for record in self.findings.big.report().by_memory):
            self.notes.append(SafeText(READ_BY_RTUI_NOTE))
        return [*dict.fromkeys(failure.happened for failure in failures if failure is not None)]

    async def _ask_last_of(self, node: NodeInspection, listed: BigReport, slots: SlotsReport, turns: Turns) -> None:
        """Compare the counts and complete the largest keys of a node; raises an RtuiError if it does not answer."""
        if node.connection.is_online and node.failure is None:
            await self._check_count(node, self._found_at(node, slots))
            await node.complete_largest(self.findings.big, listed, self._options.top, turns)

    def _found_at(self, node: NodeInspection, slots: SlotsReport) -> int:
        if len(self.nodes.all) == 1:
            return self.findings.keys + self.findings.unread_keys
        return sum(sum(slots.keys[first : last + 1]) for first, last in node.slots or ())

    async def _check_count(self, node: NodeInspection, found: int) -> None:
        """Note a contradiction: the node counts another number of keys, or more keys have vanished than can have."""
        work, before, vanished = self.work, node.before, self.findings.vanished_keys
        is_whole = isinstance(work, Scan | PartedScan) and work.state is ScanState.DONE and self.only.is_open
        if before is None or not (vanished > 0 or (is_whole and found != before.size)):
            return
        after = await node.size_after()
        if after is None:
            return
        notes = [disagreement(before, after, found, is_replica=node.is_replica) if is_whole else None]
        if len(self.nodes.all) == 1:
            notes.append(too_many_gone(before, after, vanished))
        where = "" if len(self.nodes.all) == 1 else f"{node.label}: "
        self.notes += [SafeText(f"{where}{note}") for note in notes if note is not None]


async def _in_time(asking: Coroutine[object, object, None]) -> None:
    """Await the last queries; raises ConnectionLost if they take too long."""
    try:
        async with asyncio.timeout(LAST_S):
            await asking
    except TimeoutError:
        raise ConnectionLost(f"No reply within {LAST_S:g} s.") from None
