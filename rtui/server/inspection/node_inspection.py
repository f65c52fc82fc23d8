"""The inspection of one node of a pass: what may be asked there, what is, and what the node counts itself.

Nodes of one cluster may differ in version, rights and NO-TOUCH, so each has a plan and a pipeline of its own. What they
find goes to one `TableAggregates`: a tree of patterns for each node would take its memory as often as there are nodes.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from rtui.analysis.aggregate.top_keys import TopKeys
from rtui.analysis.facts import LfuSettings
from rtui.analysis.report.document import BigReport, KeySizes
from rtui.keyspace.slots import key_slot
from rtui.keyspace.text.display import SafeText, display_text
from rtui.server.deployment.nodes import ServerNode
from rtui.server.facts.keys import lfu_settings
from rtui.server.inspection.largest import complete_largest, largest_keys
from rtui.server.inspection.pipeline import NewPipeline
from rtui.server.inspection.plan import InspectionPlan
from rtui.server.inspection.report_head import key_sizes, memory_bound
from rtui.server.scan.cursor import Dialect
from rtui.server.scan.cursor_proof import known_dialect
from rtui.server.scan.node import ScanNode, with_slots
from rtui.server.scan.page import SizeSnapshot, take_snapshot
from rtui.server.scan.turns import Turns
from rtui.server.wire.capability import Capabilities, CommandRunner, Feature
from rtui.server.wire.command_log import Purpose, for_purpose
from rtui.server.wire.connection import Lost
from rtui.server.wire.errors import ConnectionLost
from rtui.server.wire.identity import ServerIdentity

if TYPE_CHECKING:  # it is imported with Polars
    from rtui.analysis.aggregate.table_aggregates import TableAggregates


class NodeInspection:
    """One node of one pass; `begin` it before the rest."""

    def __init__(self, node: ServerNode, findings: TableAggregates, new_pipeline: NewPipeline) -> None:
        connection = node.connection
        self.node = node
        self.connection = connection
        self.capabilities = Capabilities()
        self.plan = InspectionPlan(self.capabilities, connection.server, connection.no_touch)
        self.pipeline = new_pipeline(
            self.plan,
            findings,
            on_server=self._read_server,
            own_reads=connection.own_reads,
        )
        self.size: int | None = None
        """Keys that it counts, None where DBSIZE is denied."""
        self.before: SizeSnapshot | None = None
        """The size of its database when the pass began, None likewise."""
        self.counted_on: ServerIdentity | None = None
        """The server that `before` is of."""
        self.slots = node.slots
        """The slots that it serves; None outside a cluster, and where that is not known."""
        self.key_sizes: tuple[KeySizes, ...] = ()
        self.lfu_settings = LfuSettings()
        self.failure: SafeText | None = None
        """Why it could not be asked at all."""
        self.extra_commands = 0
        """Commands beside those of the scan and its questions."""

    @property
    def label(self) -> SafeText:
        """Host and port."""
        return display_text(self.connection.target.label)

    @property
    def dialect(self) -> Dialect:
        """How it counts its cursors."""
        return known_dialect(self.connection)

    def owns(self, key: bytes) -> bool:
        """Whether a key is one of this node's."""
        if self.slots is None:
            return True
        slot = key_slot(key)
        return any(first <= slot <= last for first, last in self.slots)

    async def begin(self) -> None:
        """Find out what may be asked, and what the node counts; raises ConnectionLost."""
        state = self.connection.state
        if self.node.id and isinstance(state, Lost):  # the other nodes of the cluster need not wait for it
            raise state.reason or ConnectionLost("There is no connection to it yet.")
        await self.connection.online()
        self.connection.forget_denied()
        await self.capabilities.probe(self.connection)
        await self._read_server(self.connection)

    @for_purpose(Purpose.SERVER)
    async def _read_server(self, server: CommandRunner) -> None:
        """Ask for the size of the database and what the server knows of all keys; raises ConnectionLost."""
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
        """Return what a scan of all of its keys begins with; raises ConnectionLost."""
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
        """Ask what the lists of the largest keys, `listed` by now, lack of its own ones; raises ConnectionLost."""
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
        """Whether it is a replica now."""
        return self.connection.server.role == "replica"
