"""The first rows of a keyspace: a first page after one round trip, then estimated sizes of namespaces by a sample.

The page is requested on the interactive lane, which is open already, in one write with the commands for the size of the
database. A server that requires SCAN on its own is asked again, by single commands on the bulk lane.

The sample's estimated counts are written into the store. Random cursors sample a hash table; where cursors go slot by
slot, as on nodes of a cluster, every slot gives keys by its size. Every node of a cluster contributes by its size, so
that all keys are equally likely.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from functools import partial
from random import Random
from typing import Final

from rtui.analysis.estimates import Estimate, NamespaceTally
from rtui.keyspace.slices import Slicer, Slices
from rtui.keyspace.store.store import NamespaceStore
from rtui.keyspace.text.display import SafeText
from rtui.server import guard
from rtui.server.deployment.nodes import Deployment
from rtui.server.scan.cursor import Dialect, dialect_of
from rtui.server.scan.node import Primary, ScanNode
from rtui.server.scan.node_scan import MAX_LOSSES, as_proven, prove_cursors
from rtui.server.scan.page import BeginAgainError, ScanFilter, SizeSnapshot, read_snapshot, scan_page, snapshot_commands
from rtui.server.scan.progress import Cost
from rtui.server.scan.run_control import YIELD_S, RunControl
from rtui.server.scan.sampling import CALL_US, SAMPLE_KEYS, KeySample, can_sample, contradiction, sample, sample_slots
from rtui.server.wire.command_log import Purpose, for_purpose
from rtui.server.wire.connection import Connection
from rtui.server.wire.errors import ConnectionLost, ServerBusyError
from rtui.server.wire.lane import Lane
from rtui.server.wire.opening import backoff_s
from rtui.server.wire.supervised_tasks import for_each

FIRST_COUNT: Final = 20
"""COUNT of the first page, on the interactive lane, where names may have any length."""


class FirstPage:
    """Requests the first page until it arrives; call `read` once, the rest may be read at any time."""

    def __init__(self, only: ScanFilter) -> None:
        self.waits_for: SafeText | None = None
        """The reason why it is delayed; None if it isn't."""
        self.keys: Sequence[bytes] = ()
        """All keys that the server has sent, before filtering on the client."""
        self.before: SizeSnapshot | None = None
        """The size of the database when the page arrived; None before that."""
        self.cost = Cost()
        self.revision = 0
        """Incremented by every change of `waits_for`."""
        self._only = only

    @property
    def is_uncounted(self) -> bool:
        """Whether the server counts its keys only now and then: DBSIZE was 0 although there are keys."""
        return bool(self.keys) and self.before is not None and self.before.size == 0

    @property
    def size(self) -> int | None:
        return None if self.before is None or self.is_uncounted else self.before.size

    async def read(self, connection: Connection, primary: Primary | None, store: NamespaceStore) -> ScanNode | None:
        """Put the first rows into the store; return the rest to scan, None if there is no more.

        `primary` is that of a replica. Raises a ScanRefusedError, or ConnectionLost after MAX_LOSSES of them.
        """
        only, is_alone = self._only, False
        attempt = losses = 0
        while True:
            await connection.online()
            server = connection.server
            match, accepts = only.sent_to(server)
            command = guard.scan(0, count=FIRST_COUNT, match=match, key_type=only.key_type)
            asked = (command, *snapshot_commands(connection))
            try:
                if is_alone:  # on the interactive lane others may ask something at the same time
                    lane = await connection.bulk()
                    replies = [*await lane.run(command), *await lane.run(*asked[1:])]
                else:
                    replies = await connection.run(*asked)
                cursor, keys = scan_page(replies[0])
                break
            except BeginAgainError:
                if is_alone:
                    raise
                is_alone = True
            except (ConnectionLost, ServerBusyError) as trouble:
                attempt += 1
                losses += isinstance(trouble, ConnectionLost)
                if losses >= MAX_LOSSES:
                    raise
                self._wait_for(trouble.happened)
                await asyncio.sleep(backoff_s(attempt, Random()))
        self._wait_for(None)
        self.keys, self.before = keys, read_snapshot(connection, replies[1:])
        self.cost = Cost(commands=len(asked), keys=len(keys))
        store.add(keys if accepts is None else [*filter(accepts, keys)])
        if not cursor:
            return None
        return ScanNode(
            connection,
            dialect_of(server),
            first_cursor=cursor,
            first_keys=keys,
            size=self.size,
            run_id=server.run_id,
            primary=primary,
        )

    def _wait_for(self, why: SafeText | None) -> None:
        self.waits_for = why
        self.revision += 1


MAX_EXPECTED: Final = 400
"""The most namespaces listed from a sample; of smaller ones its estimates are hardly useful."""

SAMPLE_FROM: Final = 20_000
"""Smaller databases are scanned before a sample would be taken."""

SLOT_SAMPLE_KEYS: Final = 4_000
"""Keys of a sample by slots, which costs several times as much per key: every share within about 1.5 points."""

SLOT_SAMPLE_FROM: Final = 2_000_000
"""Smaller databases are scanned in at most three times the time of such a sample: on three nodes some 600,000 keys."""


class Overviews:
    """Takes overviews for one pass, each replacing the last: the estimates in the store are of the latest.

    Counts of a server whose cursors prove not to be positions are discarded.
    """

    def __init__(self, deployment: Deployment, store: NamespaceStore, control: RunControl, only: ScanFilter) -> None:
        """With a filter in `only` there is no overview: a sample says nothing about the keys that it selects."""
        self.sampled = 0
        """Size of the sample behind the estimated counts."""
        self.total: Estimate | None = None
        """The estimated number of keys of the database, by the sample."""
        self.cost = Cost()
        """The cost of all overviews and of the checks of cursors."""
        self.is_sampling = False
        self.revision = 0
        """Incremented by every change of `is_sampling`."""
        self._deployment, self._store, self._control, self._only = deployment, store, control, only
        self._tally = NamespaceTally(store.separators)

    def forget(self) -> None:
        self.sampled, self.total, self._tally = 0, None, NamespaceTally(self._store.separators)

    @for_purpose(Purpose.SAMPLE)
    async def take(self, nodes: Sequence[ScanNode], size: int | None) -> list[ScanNode]:
        """Take a sample if it gives a picture sooner than the scan would; return the nodes to scan, by proven cursors.

        Several nodes are sampled only if all have such cursors, or go slot by slot. Each contributes by its share of
        all keys, so that all keys are equally likely. `size` is the number of all keys, if known.
        """
        await for_each(nodes, self._prove)
        nodes = [*map(as_proven, nodes)]
        is_large = size is None or size >= SAMPLE_FROM
        is_by_slot = size is not None and size >= SLOT_SAMPLE_FROM
        is_by_slot = is_by_slot and all(node.dialect is Dialect.SLOTTED and node.slots for node in nodes)
        can_all = is_by_slot or all(can_sample(node.dialect) for node in nodes)
        if not (can_all and is_large and self._only.is_open) or (size is None and len(nodes) > 1):
            return nodes
        self.forget()
        self._set_sampling(True)
        try:
            sampled = await for_each(nodes, partial(self._sample_node, size=size))
            is_left = self._deployment.is_cluster or is_by_slot
            for _ in self._write_estimates(size) if all(sampled) and is_left else ():
                await asyncio.sleep(YIELD_S)
        except ConnectionLost:
            pass
        finally:
            self._set_sampling(False)
        if any(node.connection.cursors_are_positions is False for node in nodes):
            self._store.drop_estimates()
            self.forget()
        return [*map(as_proven, nodes)]

    def _set_sampling(self, is_sampling: bool) -> None:
        self.is_sampling = is_sampling
        self.revision += 1

    async def _prove(self, node: ScanNode) -> None:
        """Find out whether the cursors of a node are positions; if the connection is lost, the scan does it again."""
        with contextlib.suppress(ConnectionLost):
            commands = await prove_cursors(node.connection, node.size)
            self.cost += Cost(commands=commands)  # read after the wait: nodes are asked side by side

    async def _sample_node(self, node: ScanNode, size: int | None) -> bool:
        """Take a node's part of the sample; return whether that succeeded."""
        share = 1.0 if not self._deployment.is_cluster or not size else (node.size or 0) / size
        if not share or not node.connection.is_online:
            return not share
        async with self._control.turn(node.connection):
            lane = await node.connection.bulk()
            if node.dialect is Dialect.SLOTTED:
                return await self._sample_slots(lane, node, share)
            taken = await self._sample_cursors(lane, size, share)
            if await contradiction(taken, lane, node.size) is not None:
                node.connection.cursors_are_positions = False
            return taken.failure is None

    async def _sample_cursors(self, lane: Lane, size: int | None, share: float) -> KeySample:
        """Sample, and write counts early and again at the end; `size` is DBSIZE if known. A failure ends it early.

        If only a `share` of the sample is taken on this lane, the counts are left to `_write_estimates`: counts of
        some nodes are no estimate of the whole.
        """
        traffic, bytes_in, bytes_out = lane.traffic, lane.traffic.bytes_in, lane.traffic.bytes_out

        def show(taken: KeySample) -> Slices[None]:
            self.total = taken.total
            yield from self._write_estimates(size if size is not None else self.total)

        on_more, keys = show if share == 1.0 else None, round(SAMPLE_KEYS * share)
        taken = await sample(lane, self._control, keys=keys, on_keys=self._tally.add, on_more=on_more)
        for _ in show(taken) if share == 1.0 else ():
            await asyncio.sleep(YIELD_S)
        self.cost += Cost(
            commands=taken.calls,
            keys=len(taken.keys),
            bytes_in=traffic.bytes_in - bytes_in,
            bytes_out=traffic.bytes_out - bytes_out,
            server_us=taken.calls * CALL_US,
        )
        return taken

    async def _sample_slots(self, lane: Lane, node: ScanNode, share: float) -> bool:
        """Sample a `share` of all wanted keys from the slots of one node; return whether that succeeded.

        The counts are left to `_write_estimates`.
        """
        traffic = lane.traffic
        before = traffic.commands, traffic.bytes_in, traffic.bytes_out
        drawn = self._tally.drawn
        taken = await sample_slots(
            *(lane, node.slots or (), self._control),
            keys=round(SLOT_SAMPLE_KEYS * share),
            on_keys=self._tally.add,
            on_wait=lambda reason: None,
        )
        self.cost += Cost(
            commands=traffic.commands - before[0],
            keys=self._tally.drawn - drawn,
            bytes_in=traffic.bytes_in - before[1],
            bytes_out=traffic.bytes_out - before[2],
            server_us=taken.server_us,
        )
        return taken.failure is None

    def _write_estimates(self, total: int | Estimate | None) -> Slices[None]:
        if total is None:
            return
        drawn, slicer = self._tally.drawn, Slicer()
        number = total.value if isinstance(total, Estimate) else float(total)
        population = max(drawn, round(number))
        for path, found in self._tally.shares(most=MAX_EXPECTED, population=population).items():
            yield from slicer.pause()
            self._store.expect(path, found.scaled(number))
        self.sampled = drawn
