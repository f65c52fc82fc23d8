"""Scans the nodes of a cluster until every slot is covered, while slots move and nodes join or fail.

Each node has a task, in which `NodeScan` makes one pass after another. Between two passes the task waits for work:
slots of its own that have stopped moving, slots that no reachable node serves and that may be its own by now, or
questions about keys that another node no longer had. `_watch` looks after all tasks: which nodes answer, which have
joined, where such keys are, whether there is still progress.

A node that is asked about a key may reply MOVED or ASK, or that there is no such key, which need not mean that the key
is gone: a node that was promoted in the middle of a move does not know of it, and a replica never tells. So:

1. The primary is asked about keys that its replica did not have (`_ask_primary`).
2. Keys that a primary did not have wait for its next view (`settle`). A key is gone if it still serves the slot by
   then, and is not handing it over.
3. All other keys are asked about on the node that serves their slot, once it is no longer being moved (`place`).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from rtui.keyspace.slots import SLOTS, joined_ranges, key_slot
from rtui.keyspace.text.display import SafeText
from rtui.server.scan.listing import VIEW_EVERY_S
from rtui.server.scan.node import Cluster, ScanNode
from rtui.server.scan.node_scan import NodeScan
from rtui.server.scan.ranges import Slots
from rtui.server.scan.run_control import NODES_AT_ONCE, RunControl
from rtui.server.scan.slot_ledger import ClusterSlots, SlotLedger
from rtui.server.wire.errors import RtuiError
from rtui.server.wire.supervised_tasks import failure_of

ASKED_AT_ONCE: Final = 100
"""Keys that a replica did not have, asked about in one write to its primary."""


@dataclass(frozen=True, slots=True)
class _Unsettled:
    """Keys that a node did not have, or redirected with MOVED or ASK, when it was asked about them."""

    views: int
    """How many views had been received when the keys were found."""
    keys: Sequence[bytes]


class AbsentKeys:
    """The absent keys of one run over all nodes."""

    def __init__(self, ledger: SlotLedger, nodes: Sequence[NodeScan]) -> None:
        """`nodes` may grow during the run."""
        self._ledger, self._nodes = ledger, nodes
        self._elsewhere: list[bytes] = []
        self._unsettled: dict[NodeScan, list[_Unsettled]] = {}
        """By node, in the order in which they were found; no list is empty."""
        self._of_replicas: dict[NodeScan, list[bytes]] = {}
        self._asking: dict[NodeScan, asyncio.Task[None]] = {}

    def __bool__(self) -> bool:
        return bool(self._elsewhere or self._unsettled or self._of_replicas)

    @property
    def slots(self) -> set[int]:
        """The slots of the keys to ask about on other nodes."""
        return set(map(key_slot, self._elsewhere))

    def listen(self, node: NodeScan) -> None:
        """Collect the keys that this node turns out not to have, from now on."""
        if node.node.queries is not None:
            is_primary = node.node.primary is None
            node.node.queries.on_absent = partial(self._add if is_primary else self._add_of_replica, node)

    def leave(self, keys: Iterable[bytes]) -> None:
        """Ask about these keys on other nodes, since their own does not answer."""
        self._elsewhere += keys

    def _add(self, node: NodeScan, keys: Sequence[bytes]) -> None:
        self._unsettled.setdefault(node, []).append(_Unsettled(self._ledger.views, keys))

    def _add_of_replica(self, node: NodeScan, keys: Sequence[bytes]) -> None:
        self._of_replicas.setdefault(node, []).extend(keys)
        if node not in self._asking or self._asking[node].done():
            self._asking[node] = asyncio.create_task(self._ask_primary(node), name="rtui keys of a replica")

    async def _ask_primary(self, node: NodeScan) -> None:
        """Ask the primary about keys that its replica did not have; keep those that it does not have either."""
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
        """Count keys as gone once the views confirm it, or by the last views if the run `is_over`."""
        ledger, unsettled = self._ledger, self._unsettled
        self._unsettled = {}
        for node, found in unsettled.items():
            node_id = node.node.id or ""
            moving = ledger.moving(node_id)
            for one in found:
                if not is_over and not ledger.has_told(node_id, one.views):
                    self._unsettled.setdefault(node, []).append(one)
                    continue
                served = [ledger.owners[slot] == node_id and slot not in moving for slot in map(key_slot, one.keys)]
                self._elsewhere += [key for key, is_here in zip(one.keys, served, strict=True) if not is_here]
                if node.node.queries is not None:
                    node.node.queries.count_gone(sum(served))

    def wait_for(self, node: NodeScan) -> bool:
        """Whether keys wait for another view of this node."""
        return node in self._unsettled

    def place(self) -> None:
        """Queue the keys to ask about on the nodes that serve their slots now."""
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
        for task in self._asking.values():
            task.cancel()
        await asyncio.gather(*self._asking.values(), return_exceptions=True)

    def conclude(self, *, is_stopped: bool) -> None:
        """Settle as many keys as the last views allow; a stopped run leaves out keys that it has not asked about."""
        for node in self._nodes:
            if not is_stopped:
                self._elsewhere += node.pipeline.take_waiting() + self._of_replicas.pop(node, [])
        self.settle(is_over=True)


WATCH_EVERY_S: Final = 0.1

SETTLE_S: Final = 30.0
"""Seconds without a newly covered slot after which the scan ends with slots uncovered; --timeout, if it is shorter."""

GIVEN_UP_S: Final = 5.0
"""The same if the cluster has given up every node that could serve these slots, or all of them were visited."""

NOBODY: Final = SafeText("no reachable node serves them")
STILL_MOVING: Final = SafeText("they were still being moved")


@dataclass(frozen=True, slots=True)
class UncoveredByNode:
    """Slots of which not every key was delivered for certain."""

    slots: Slots
    """Inclusive pairs."""
    node_id: str | None
    """The node that serves them; None if no node does."""
    label: SafeText
    """`host:port` of it; empty for none."""
    why: SafeText


class ClusterScan:
    """One run over all nodes of a cluster; `run` it once."""

    def __init__(
        self,
        slots: ClusterSlots,
        cluster: Cluster,
        control: RunControl,
        nodes: list[NodeScan],
        new_scan: Callable[[ScanNode], NodeScan],
    ) -> None:
        """Scan these nodes. Nodes that join later are made by `new_scan` and appended to `nodes`."""
        self.slots = slots
        self._cluster, self._control = cluster, control
        self._nodes, self._new_scan = nodes, new_scan
        self._absent = AbsentKeys(slots.ledger, nodes)
        self._loop = asyncio.get_running_loop()
        self._settle_s = min([SETTLE_S, *(one.node.connection.target.way.timeouts.lost_s for one in nodes)])
        self._wanted: dict[NodeScan, asyncio.Event] = {}
        """The nodes that wait for work, each with the event that wakes it."""
        self._all_wait = asyncio.Event()
        """Set as soon as all reachable nodes wait."""
        self._sought: frozenset[int] = frozenset()
        """Slots whose owner is to be looked up."""
        self._owners: Mapping[int, str] = {}
        """Slot to id of the node that serves it, by the last reply of the cluster."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._looking: asyncio.Task[None] | None = None
        self._looked_at = float("-inf")

    @property
    def is_whole(self) -> bool:
        """Whether every slot is covered, and every query about a key is answered."""
        has_keys = self._absent or any(node.pipeline.waiting for node in self._nodes)
        return self.slots.ledger.is_complete and not has_keys

    async def run(self) -> None:
        """Scan until every slot is covered, or the run is stopped, or there is no more progress."""
        for node in self._nodes:
            self._begin(node)
        try:
            await self._watch()
        finally:
            tasks = [*self._tasks, *([] if self._looking is None else [self._looking])]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._absent.end()
        self._absent.conclude(is_stopped=self._control.is_stopped)

    def uncovered(self) -> list[UncoveredByNode]:
        """The slots that are not covered, by node."""
        by_id = {node.node.id: node for node in self._nodes}
        found = []
        for node_id, slots in self.slots.uncovered().items():
            node = by_id.get(node_id)
            why: SafeText | None = NOBODY if node is None else node.waits_for or node.waited_for
            if node is not None and node.failure is not None:
                why = node.failure.happened
            elif self._control.is_stopped:
                why = self._control.stop_reason
            label = SafeText("") if node is None else node.node.connection.target.label
            found.append(UncoveredByNode(slots, node_id, label, why or STILL_MOVING))
        unasked = self._absent.slots & self.slots.ledger.covered
        for owner in {self.slots.ledger.owners[slot] for slot in unasked}:
            node = by_id.get(owner)
            label = SafeText("") if node is None else node.node.connection.target.label
            pairs = joined_ranges((slot, slot) for slot in unasked if self.slots.ledger.owners[slot] == owner)
            found.append(UncoveredByNode(pairs, owner, label, STILL_MOVING if node is not None else NOBODY))
        return found

    def _begin(self, node: NodeScan) -> None:
        self._absent.listen(node)
        task = asyncio.create_task(self._scan(node), name="rtui scan of a node")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _scan(self, node: NodeScan) -> None:
        while True:
            node.failure = await failure_of(node.run(), name="rtui scan of a node")
            if node.failure is not None:
                self._lose(node)
                return
            if self._control.is_stopped:
                return
            waiting = self._wanted[node] = asyncio.Event()
            if self._all_are_waiting():
                self._all_wait.set()
            await waiting.wait()

    def _all_are_waiting(self) -> bool:
        return all(node in self._wanted or node.is_away for node in self._nodes)

    def _lose(self, node: NodeScan) -> None:
        if node.node.id is not None:
            self.slots.ledger.lose(node.node.id)

    async def _watch(self) -> None:
        """Look after all nodes until nothing is left to do."""
        seen, progress_at = (-1, 0, 0), self._loop.time()
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(WATCH_EVERY_S):
                    await self._control.unless_stopped(self._all_wait.wait())
            self._all_wait.clear()
            if self._control.is_stopped:
                for event in self._wanted.values():
                    event.set()
                if self._tasks:
                    await asyncio.wait(self._tasks, timeout=self._settle_s)
                return
            for node in self._nodes:
                if node.is_away:
                    self._lose(node)
                    if node.pipeline.waiting and node.node.id not in self.slots.ledger.owners:
                        self._absent.leave(node.pipeline.take_waiting())
            self._absent.settle()
            self._absent.place()
            sought = self.slots.ledger.sought
            if sought:  # slots of a node that has not had its turn yet are taken to be its own still
                unseen = [
                    node for node in self._nodes if node.listing.passes is not None and node.listing.passes.is_unseen
                ]
                queued = [node for node in unseen if not node.is_away]
                expected = (range(first, last + 1) for node in queued for first, last in node.node.slots or ())
                sought = sought.difference(*expected)
            self._sought = sought | self._absent.slots
            now = self._loop.time()
            self._wake(now)
            if self.is_whole and self._all_are_waiting():
                return
            is_due = now - self._looked_at >= VIEW_EVERY_S and (self._looking is None or self._looking.done())
            if is_due and self._sought and not self._control.is_held:
                self._looked_at = now
                self._looking = asyncio.create_task(self._look(), name="rtui look for nodes")
            listed = sum(node.listing.keys for node in self._nodes)
            waiting = sum(node.pipeline.waiting for node in self._nodes)
            before, seen = seen, (self.slots.revision, listed, waiting)
            if seen != before or self._control.is_held or any(node.is_queued for node in self._nodes):
                progress_at = now
            elif now - progress_at > self._settle_s or (now - progress_at > GIVEN_UP_S and self._is_given_up()):
                return

    def _is_given_up(self) -> bool:
        """Whether every slot and key that is left belongs to primaries that the cluster has given up."""
        ledger = self.slots.ledger
        left = {ledger.owners[slot] for slot in set(range(SLOTS)) - ledger.covered}
        left |= {node.node.id for node in self._nodes if node.pipeline.waiting}
        return not self._absent and left <= self._cluster.given_up

    def _wake(self, now: float) -> None:
        """Wake nodes that have work: the owners of sought slots, or all nodes if there are few.

        A node whose view is all that is waited for reports it at once.
        """
        is_idle = self._all_are_waiting()
        serving = {self._owners.get(slot) for slot in self._sought}
        if self._sought and len(self._nodes) <= NODES_AT_ONCE:
            serving.update(node.node.id for node in self._nodes)
        for node, waiting in [*self._wanted.items()]:
            passes = node.listing.passes
            if passes is None or node.node.id is None:
                continue
            ledger, node_id = self.slots.ledger, node.node.id
            is_awaited = self._absent.wait_for(node)
            is_open = node_id in serving or ledger.open_count(node_id) > 0 or is_awaited
            is_time = now - passes.looked_at >= VIEW_EVERY_S or (is_awaited and is_idle)
            if is_open and is_time:
                passes.looked_at = now
                passes.is_due = True
            elif not node.pipeline.waiting:
                continue
            del self._wanted[node]
            waiting.set()

    async def _look(self) -> None:
        async def found() -> None:
            self._owners = await self._cluster.owners()
            known = {node.node.id for node in self._nodes if node.failure is None}
            for node_id in {*self._owners.values()} - known:
                await failure_of(self._add(node_id), name="rtui node that has come")

        await failure_of(found(), name="rtui look for nodes")

    async def _add(self, node_id: str) -> None:
        """Scan a node that has joined, in place of an earlier scan of it that has failed."""
        node = self._new_scan(await self._cluster.node(node_id))
        failed = [one for one in self._nodes if one.node.id == node_id]
        for one in failed:
            self._absent.leave(one.pipeline.take_waiting())
            self._nodes.remove(one)
        self._nodes.append(node)
        self._begin(node)


def repeats_note(most: int) -> SafeText:
    """Return the note that up to `most` keys were delivered twice."""
    keys = "1 key" if most == 1 else f"{most:,} keys"
    return SafeText(f"Up to {keys} may have been counted twice, because slots moved.")


def reason_of(uncovered: Sequence[UncoveredByNode], named: int) -> SafeText:
    """Return a sentence on each of the first `named` nodes with uncovered slots: which slots, and why."""
    texts = []
    for one in uncovered[:named]:
        ranges = ", ".join(f"{first}" if first == last else f"{first}–{last}" for first, last in one.slots[:named])
        more = " and more" if len(one.slots) > named else ""
        of_node = f" of {one.label}" if one.label else ""
        texts.append(f"slots {ranges}{more}{of_node} were not covered: {one.why.rstrip('.')}.")
    return SafeText(" ".join(text[0].upper() + text[1:] for text in texts))
