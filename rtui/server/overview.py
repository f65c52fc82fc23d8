"""An overview before the count: the shares of the largest namespaces by a sample, written into the store as estimates.

Random cursors sample a hash table; where cursors go slot by slot, as on nodes of a cluster, every slot gives keys by
its size. Of a cluster every node gives its share, so that every key is as likely as any other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from rtui.analysis.estimates import Estimate, NamespaceTally
from rtui.keyspace.slices import Slicer, Slices
from rtui.keyspace.store.store import NamespaceStore
from rtui.server.scan.cursor import Dialect
from rtui.server.scan.node import ScanNode
from rtui.server.scan.progress import Cost
from rtui.server.scan.run_control import YIELD_S, RunControl
from rtui.server.scan.sampling import CALL_US, SAMPLE_KEYS, Sample, sample
from rtui.server.scan.slot_sampling import sample_slots
from rtui.server.wire.lane import Lane

MAX_EXPECTED: Final = 400
"""Namespaces that are listed from a sample at most; of smaller ones it tells hardly anything."""


SLOT_SAMPLE_KEYS: Final = 4_000
"""Keys of a sample by slots, which costs several times as much a key: every share within a point and a half or so."""

SLOT_SAMPLE_FROM: Final = 2_000_000
"""Smaller databases are scanned in at most three times the time of such a sample: on three nodes some 600,000 keys."""


def samples_slots(nodes: Sequence[ScanNode], size: int | None) -> bool:
    """Whether the nodes are to be sampled by their slots: all can be, and have enough keys together."""
    is_by_slot = all(node.dialect is Dialect.SLOTTED and node.slots for node in nodes)
    return is_by_slot and size is not None and size >= SLOT_SAMPLE_FROM


class Overview:
    """Takes a sample and writes the estimated counts of the first two levels into a store."""

    def __init__(self, store: NamespaceStore) -> None:
        self.sampled = 0
        """Size of the sample that the estimated counts come from."""
        self.total: Estimate | None = None
        """Keys of the database by that sample."""
        self.cost = Cost()
        self._store = store
        self._tally = NamespaceTally(store.separators)

    async def take(self, lane: Lane, control: RunControl, size: int | None, share: float = 1.0) -> Sample:
        """Sample, and write counts early and again at the end; `size` is DBSIZE if known. A failure ends it early.

        If only a `share` of the sample is taken on this lane, the rest on those of other nodes, the counts are left to
        `show`: those of some nodes tell nothing of all.
        """
        traffic, bytes_in, bytes_out = lane.traffic, lane.traffic.bytes_in, lane.traffic.bytes_out

        def show(taken: Sample) -> Slices[None]:
            self.total = taken.total
            yield from self.show(size if size is not None else self.total)

        on_more = show if share == 1.0 else None
        taken = await sample(lane, control, keys=round(SAMPLE_KEYS * share), on_keys=self._tally.add, on_more=on_more)
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

    async def take_slots(self, lane: Lane, control: RunControl, node: ScanNode, share: float) -> bool:
        """Sample a `share` of the keys wanted of all nodes from the slots of one; return whether that could be done.

        The counts are left to `show`.
        """
        traffic = lane.traffic
        before = traffic.commands, traffic.bytes_in, traffic.bytes_out
        drawn = self._tally.drawn
        taken = await sample_slots(
            *(lane, node.slots or (), control),
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

    def show(self, total: int | Estimate | None) -> Slices[None]:
        """Write the estimated counts by what was drawn so far into the store."""
        if total is None:
            return
        drawn, slicer = self._tally.drawn, Slicer()
        number = total.value if isinstance(total, Estimate) else float(total)
        population = max(drawn, round(number))
        for path, found in self._tally.shares(most=MAX_EXPECTED, population=population).items():
            yield from slicer.pause()
            self._store.expect(path, found.scaled(number))
        self.sampled = drawn
