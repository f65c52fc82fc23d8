"""The nodes of one analysis: those it begins with, nodes that join meanwhile, and the slots that each has in the end.

Slots move while they are scanned, and replicas take over. The keys of a slot count for the node that serves it in the
end; if no node serves it any more, for the node that did when the analysis began.

Nodes of one cluster may differ in version, rights and NO-TOUCH, so each has a plan and a pipeline of its own. Their
findings go to one place: a tree of patterns for each node would take its memory as often as there are nodes, and could
not be joined to the tree of one server with all keys, since which names are folded depends on all of them.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from rtui.analysis.columns import Columns
from rtui.analysis.facts import LfuSettings
from rtui.analysis.report.document import BigReport, KeySizes
from rtui.keyspace.slots import each_slot, joined_ranges, key_slot
from rtui.keyspace.text.display import SafeText, display_text
from rtui.server.deployment.nodes import Deployment, ScannedCluster, ServerNode
from rtui.server.deployment.topology import SlotRanges
from rtui.server.facts.keys import lfu_settings
from rtui.server.inspection.largest import complete_largest, largest_keys
from rtui.server.inspection.plan import InspectionPlan
from rtui.server.inspection.report_head import joined_key_sizes, key_sizes, memory_bound
from rtui.server.scan.cursor import Dialect
from rtui.server.scan.node import ScanNode, with_slots
from rtui.server.scan.node_scan import known_dialect
from rtui.server.scan.page import SizeSnapshot, take_snapshot
from rtui.server.scan.run_control import Turns
from rtui.server.wire.capability import Capabilities, CommandRunner, Feature
from rtui.server.wire.command_log import Purpose, for_purpose
from rtui.server.wire.connection import Connection, Lost
from rtui.server.wire.errors import ConnectionLost
from rtui.server.wire.identity import ServerIdentity
from rtui.server.wire.supervised_tasks import failure_of, for_each

if TYPE_CHECKING:  # they are imported with Polars
    from rtui.server.inspection.pipeline import InspectionPipeline
    from rtui.server.inspection.tables import TableFindings
    from rtui.table.tops import TopKeys


class NodeFacts(NamedTuple):
    """Facts about a node whose keys were inspected by another process; can be pickled."""

    id: str
    is_of_part: bool
    """Whether the process was given this node; else slots of its nodes have moved to it."""
    plan: InspectionPlan
    unread: Counter[str]
    own_read_keys: int
    size: int | None
    before: SizeSnapshot | None
    counted_on: ServerIdentity | None
    key_sizes: tuple[KeySizes, ...]
    lfu_settings: LfuSettings
    failure: SafeText | None
    extra_commands: int


class NodeInspection:
    """One node of one pass; `begin` it before the rest."""

    def __init__(self, node: ServerNode, findings: TableFindings) -> None:
        from rtui.server.inspection.engine_inspection import InspectingEngine  # noqa: PLC0415 - imports Polars
        from rtui.server.inspection.pipeline import InspectionPipeline  # noqa: PLC0415

        connection = node.connection
        self.node = node
        self.connection = connection
        self.capabilities = Capabilities()
        self.plan = InspectionPlan(self.capabilities, connection.server, connection.no_touch)
        self._new_pipeline = partial(
            InspectionPipeline,
            findings=findings,
            by_engine=InspectingEngine,
            on_server=self._read_server,
            own_reads=connection.own_reads,
        )
        self.pipeline = self._new_pipeline(self.plan)
        self.size: int | None = None
        """Keys that it counts, None where DBSIZE is denied."""
        self.before: SizeSnapshot | None = None
        """The size of its database when the pass began; None if unknown."""
        self.counted_on: ServerIdentity | None = None
        """The server that `before` is of."""
        self.slots = node.slots
        """The slots that it serves; None outside a cluster, and where that is not known."""
        self.key_sizes: tuple[KeySizes, ...] = ()
        self.lfu_settings = LfuSettings()
        self.failure: SafeText | None = None
        """Why it could not be queried at all."""
        self.extra_commands = 0
        """Commands other than those of the scan and its queries."""

    def facts(self, *, is_of_part: bool) -> NodeFacts:
        return NodeFacts(
            *(self.node.id, is_of_part, self.plan, self.pipeline.unread, self.pipeline.own_read_keys),
            *(self.size, self.before, self.counted_on, self.key_sizes, self.lfu_settings),
            *(self.failure, self.extra_commands),
        )

    def adopt(self, facts: NodeFacts) -> None:
        self.plan, self.capabilities = facts.plan, facts.plan.capabilities
        self.pipeline = self._new_pipeline(self.plan)
        self.pipeline.unread, self.pipeline.own_read_keys = facts.unread, facts.own_read_keys
        self.size, self.before, self.counted_on = facts.size, facts.before, facts.counted_on
        self.key_sizes, self.lfu_settings, self.failure = facts.key_sizes, facts.lfu_settings, facts.failure
        self.extra_commands += facts.extra_commands

    @property
    def label(self) -> SafeText:
        return display_text(self.connection.target.label)

    @property
    def dialect(self) -> Dialect:
        return known_dialect(self.connection)

    def owns(self, key: bytes) -> bool:
        if self.slots is None:
            return True
        slot = key_slot(key)
        return any(first <= slot <= last for first, last in self.slots)

    async def begin(self) -> None:
        """Find out the node's rights and its own counts; raises ConnectionLost."""
        state = self.connection.state
        if self.node.id and isinstance(state, Lost):  # the other nodes of the cluster need not wait for it
            raise state.reason or ConnectionLost("Not connected yet.")
        await self.connection.online()
        self.connection.forget_denied()
        await self.capabilities.probe(self.connection)
        await self._read_server(self.connection)

    @for_purpose(Purpose.SERVER)
    async def _read_server(self, server: CommandRunner) -> None:
        """Ask for the size of the database, and the server's own figures of all keys; raises ConnectionLost."""
        capabilities = self.capabilities

        async def snapshot() -> SizeSnapshot | None:
            return await take_snapshot(server) if capabilities.allows(Feature.DBSIZE) else None

        self.lfu_settings, self.key_sizes, now = await asyncio.gather(  # in one round trip
            lfu_settings(self.connection, capabilities),
            key_sizes(server, capabilities, self.connection.target.db),
            snapshot(),
        )
        if now is not None and (self.counted_on is None or not self.counted_on.is_like(server.server)):
            self.before, self.counted_on = now, server.server
        self.size = None if now is None else now.size

    async def scan_node(self) -> ScanNode:
        """Return the node for a scan of all of its keys; raises ConnectionLost."""
        node = await with_slots(
            ScanNode(
                *(self.connection, self.dialect, self.node.id or None),
                slots=self.slots,
                size=self.size,
                queries=self.pipeline,
                primary=self.node.primary,
            )
        )
        self.slots = None if node.slots is None else tuple(node.slots)
        return node

    async def read_memory_bound(self) -> int | None:
        """Ask how many bytes its keys have at most; None where INFO is denied. Raises ConnectionLost."""
        self.extra_commands += 2
        return await memory_bound(self.connection, self.capabilities)

    async def complete_largest(self, big: TopKeys, listed: BigReport, top: int, turns: Turns) -> None:
        """Ask for the missing facts of this node's keys in `listed`, the lists of the largest keys; raises
        ConnectionLost."""
        largest = [record for record in largest_keys(listed, self.plan, top) if self.owns(record.key)]
        if not largest:
            return
        async with turns.turn(self.connection):
            lane = await self.connection.bulk()
            if lane.server.is_like(self.plan.server):  # another server knows nothing of these keys
                own_reads = self.connection.own_reads
                self.extra_commands += await complete_largest(lane, self.plan, largest, big.learn, own_reads)

    async def size_after(self) -> SizeSnapshot | None:
        """Ask for its size again, to be held against `before`; None where that is not known. Raises ConnectionLost."""
        if self.before is None or not self.capabilities.allows(Feature.DBSIZE):
            return None
        return await take_snapshot(self.connection)

    @property
    def is_replica(self) -> bool:
        return self.connection.server.role == "replica"


class InspectedNodes(ScannedCluster):
    """The nodes of one pass; `begin` before the rest. To a scan it is the cluster."""

    def __init__(self, deployment: Deployment, findings: TableFindings, only: Collection[str] | None = None) -> None:
        """All nodes add their keys to `findings`.

        Of a cluster begin with `only` the primaries of these ids, or their replicas; None for all.
        """
        self._only = only
        super().__init__(deployment)
        self._findings = findings
        self._columns: Columns | None = None
        self.all = [self._new(ServerNode(deployment.home))]
        """One at least; before `begin` it is the home server."""
        self._replaced: list[NodeInspection] = []
        """Nodes whose connection was replaced; their commands still count."""

    def _new(self, node: ServerNode) -> NodeInspection:
        found = NodeInspection(node, self._findings)
        if self._columns is not None:
            found.plan.columns = self._columns
        return found

    @property
    def is_cluster(self) -> bool:
        return bool(self.all[0].node.id)

    async def begin(self) -> list[NodeInspection]:
        """Find all nodes and their rights; return the reachable ones, at least one, else raise an error.

        With `only` some nodes, none need answer: others may serve their slots by then.
        """
        home, found = self._deployment.home, await self._deployment.scanned(only=self._only)
        if not found:
            raise ConnectionLost("The node is no longer in the cluster.")
        if [node.connection for node in found] != [home]:
            self.all = [self._new(node) for node in found]
        failures = await for_each(self.all, lambda node: failure_of(node.begin(), name="rtui node"))
        for node, failure in zip(self.all, failures, strict=True):
            node.failure = None if failure is None else failure.happened
        asked = [node for node in self.all if node.failure is None]
        if not asked and self._only is None:
            raise next(failure for failure in failures if failure is not None)
        return asked

    async def used_by_clients(self, node: NodeInspection) -> Connection:
        """Return the connection to the server where clients use a node's keys: its primary, if that can be reached."""
        if node.node.primary is not None:
            with contextlib.suppress(ConnectionLost):
                return await self._deployment.connection_of(node.node.id)
        return node.connection

    async def node(self, node_id: str) -> ScanNode:
        """Return a node that has joined, or come back, with its rights known; raises an RtuiError."""
        server = await self._deployment.scanned_node(node_id)
        known = next((one for one in self.all if one.node.id == node_id), None)
        if known is not None and known.failure is None and known.connection is server.connection:
            return await known.scan_node()
        found = self._new(server)
        await found.begin()
        if known is not None:
            self.all.remove(known)
            self._replaced.append(known)
        self.all.append(found)
        return await found.scan_node()

    def facts(self) -> list[NodeFacts]:
        """Return the facts about all nodes, for another process: nodes of `only` are marked as its part."""
        only = self._only or ()
        nodes = [(node, node.node.id in only) for node in self.all]
        nodes += [(node, False) for node in self._replaced]
        return [node.facts(is_of_part=is_of_part) for node, is_of_part in nodes]

    async def adopt(self, found: Iterable[NodeFacts]) -> None:
        """Adopt the facts that another process has found about some nodes; raises an RtuiError if a node can't be
        reached."""
        for facts in found:
            known = next((node for node in self.all if node.node.id == facts.id), None)
            if known is None:
                await self.owners()
                await self.node(facts.id)
                self.all[-1].adopt(facts)
            elif facts.is_of_part:
                known.adopt(facts)
            else:
                self._replaced.append(self._new(known.node))
                self._replaced[-1].adopt(facts)

    def choose(self, columns: Columns) -> None:
        """Choose the columns, also for nodes that join later; before the first key is queried."""
        self._columns = columns
        for node in self.all:
            node.plan.columns = columns

    def use(self, findings: TableFindings) -> None:
        """Add the keys of all nodes to other findings from now on."""
        self._findings = findings
        for pipeline in self.pipelines:
            pipeline.tables.use(findings)

    def assign(self, owners: Sequence[str | None]) -> None:
        """Learn by slot which node serves it now, None for none; an empty `owners` changes nothing."""
        if not owners:
            return
        before = {slot: node.node.id for node in self.all for slot in _slots(node.node.slots)}
        found: dict[str | None, list[int]] = {}
        for slot, owner in enumerate(owners):
            found.setdefault(owner or before.get(slot), []).append(slot)
        for node in self.all:
            node.slots = tuple(joined_ranges((slot, slot) for slot in found.get(node.node.id, ())))

    def label_of(self, node_id: str) -> SafeText:
        """Return host and port of a node of the cluster; its id where nothing else is known of it."""
        return self._deployment.label_of(node_id) or display_text(node_id)

    @property
    def serving(self) -> list[NodeInspection]:
        return [node for node in self.all if node.slots is None or node.slots] or self.all

    @property
    def slots(self) -> SlotRanges | None:
        """The slots of all nodes; None if those of a node are unknown."""
        found = [node.slots for node in self.all]
        return None if None in found else joined_ranges(one for of_node in found for one in of_node or ())

    def listed(self, unlisted: set[int]) -> SlotRanges | None:
        """Return the slots except `unlisted` and those of failed nodes; None if that is all, or they are unknown."""
        if self.slots is None:
            return None
        left_out = unlisted.union(*(_slots(node.slots) for node in self.all if node.failure is not None))
        owned = _slots(self.slots)
        listed = [slot for slot in owned if slot not in left_out]
        return None if len(listed) == len(owned) else joined_ranges((slot, slot) for slot in listed)

    @property
    def size(self) -> int | None:
        """Total number of keys by the nodes' own counts; None if a node does not report it."""
        sizes = [node.size for node in self.serving]
        return None if None in sizes else sum(size for size in sizes if size is not None)

    @property
    def key_sizes(self) -> tuple[KeySizes, ...]:
        return joined_key_sizes([node.key_sizes for node in self.serving])

    @property
    def pipelines(self) -> list[InspectionPipeline]:
        return [node.pipeline for node in (*self._replaced, *self.all)]

    @property
    def extra_commands(self) -> int:
        """Commands other than those of the scan and its queries."""
        return sum(node.extra_commands for node in (*self._replaced, *self.all))


def _slots(ranges: SlotRanges | None) -> list[int]:
    return list(each_slot(ranges or ()))
