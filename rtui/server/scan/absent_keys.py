"""Listed keys of a cluster that a node did not have when it was asked about them: gone, or on another node.

A node says MOVED or ASK, or that there is no such key, which need not mean that the key is gone: a node that was
promoted in the middle of a move does not know of it, and a replica never tells. So:

1. Its primary is asked about what a replica did not have (`_ask_primary`).
2. What a primary did not have waits for the next views of the nodes (`settle`). A key is gone where that primary still
   serves its slot, which no other node takes in.
3. All others are asked about on the node that serves their slot, once it is not being moved any more (`place`).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from rtui.keyspace.slots import key_slot
from rtui.server.scan.node_scan import NodeScan
from rtui.server.scan.slot_ledger import SlotLedger
from rtui.server.wire.errors import RtuiError

ASKED_AT_ONCE: Final = 100
"""A primary is asked about so many keys in one write that its replica did not have."""


@dataclass(frozen=True, slots=True)
class _Unsettled:
    """Keys that a node, asked about them, did not have, or said to be on another one."""

    views: int
    """How many views were told before."""
    keys: Sequence[bytes]


class AbsentKeys:
    """Such keys of one run over all nodes."""

    def __init__(self, ledger: SlotLedger, nodes: Sequence[NodeScan]) -> None:
        """More nodes may come."""
        self._ledger, self._nodes = ledger, nodes
        self._elsewhere: list[bytes] = []
        """They are to be asked about on another node."""
        self._unsettled: dict[NodeScan, list[_Unsettled]] = {}
        """By node, in the order in which they were found; no list is empty."""
        self._of_replicas: dict[NodeScan, list[bytes]] = {}
        self._asking: dict[NodeScan, asyncio.Task[None]] = {}

    def __bool__(self) -> bool:
        return bool(self._elsewhere or self._unsettled or self._of_replicas)

    @property
    def slots(self) -> set[int]:
        """The slots of those that are on other nodes."""
        return set(map(key_slot, self._elsewhere))

    def listen(self, node: NodeScan) -> None:
        """Learn from now on what a node does not have."""
        if node.node.queries is not None:
            is_primary = node.node.primary is None
            node.node.queries.on_absent = partial(self._add if is_primary else self._add_of_replica, node)

    def leave(self, keys: Iterable[bytes]) -> None:
        """Have keys asked about on other nodes, since theirs does not answer."""
        self._elsewhere += keys

    def _add(self, node: NodeScan, keys: Sequence[bytes]) -> None:
        self._unsettled.setdefault(node, []).append(_Unsettled(self._ledger.views, keys))

    def _add_of_replica(self, node: NodeScan, keys: Sequence[bytes]) -> None:
        self._of_replicas.setdefault(node, []).extend(keys)
        if node not in self._asking or self._asking[node].done():
            self._asking[node] = asyncio.create_task(self._ask_primary(node), name="rtui keys of a replica")

    async def _ask_primary(self, node: NodeScan) -> None:
        """Find out which of the keys that a replica did not have its primary does not have, either."""
        primary, keys = node.node.primary, self._of_replicas[node]
        while keys and primary is not None:
            some, gone = keys[:ASKED_AT_ONCE], set[bytes]()
            with contextlib.suppress(RtuiError):
                gone = set(await primary.gone(some))
            del keys[: len(some)]
            if gone:
                self._add(node, [key for key in some if key in gone])
            self._elsewhere += [key for key in some if key not in gone]
        self._of_replicas.pop(node, None)

    def settle(self, *, is_over: bool = False) -> None:
        """Count keys that are gone, once the views tell of them, or by the last views where the run `is_over`."""
        ledger, told_by_all, unsettled = self._ledger, self._ledger.told_by_all, self._unsettled
        self._unsettled = {}
        for node, found in unsettled.items():
            node_id = node.node.id or ""
            moving = ledger.moving(node_id)
            for one in found:
                if not is_over and not (one.views < told_by_all and ledger.has_told(node_id, one.views)):
                    self._unsettled.setdefault(node, []).append(one)
                    continue
                served = [ledger.owners[slot] == node_id and slot not in moving for slot in map(key_slot, one.keys)]
                self._elsewhere += [key for key, is_here in zip(one.keys, served, strict=True) if not is_here]
                if node.node.queries is not None:
                    node.node.queries.count_gone(sum(served))

    def wait_for(self, node: NodeScan, *, is_all_at_once: bool) -> bool:
        """Whether keys wait for another view of this node, of which all are scanned at once or not."""
        found = [*self._unsettled.values()] if is_all_at_once else [self._unsettled.get(node)]
        last = [each[-1].views for each in found if each]
        return bool(last) and not self._ledger.has_told(node.node.id or "", max(last))

    def place(self) -> None:
        """Have keys asked about on the nodes that serve them now."""
        if not self._elsewhere:
            return
        by_id = {node.node.id: node for node in self._nodes}
        keys, pages = self._elsewhere.copy(), dict[NodeScan, list[bytes]]()
        self._elsewhere.clear()
        for key in keys:
            slot = key_slot(key)
            node = by_id.get(self._ledger.owners[slot] or "")
            if node is None or node.is_away or self._ledger.is_moving(slot):
                self._elsewhere.append(key)
            else:
                pages.setdefault(node, []).append(key)
        for node, page in pages.items():
            if node.node.queries is not None:
                node.node.queries.add_page(page)

    async def end(self) -> None:
        """Ask nothing more."""
        for task in self._asking.values():
            task.cancel()
        await asyncio.gather(*self._asking.values(), return_exceptions=True)

    def conclude(self, *, is_stopped: bool) -> None:
        """Say of as many as can be said what has become of them; what a stopped run has not asked is left out."""
        for node in self._nodes:
            if not is_stopped:
                self._elsewhere += node.pipeline.take_waiting() + self._of_replicas.pop(node, [])
        self.settle(is_over=True)
