"""A scan of all keys of a list of nodes, each delivered once to a sink, at a pace that other clients do not notice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from rtui.keyspace.text.display import SafeText
from rtui.server.scan.cluster_scan import ClusterScan, UncoveredByNode, reason_of, repeats_note
from rtui.server.scan.compiled_scan import CompiledPipeline
from rtui.server.scan.listing import Listing
from rtui.server.scan.node import Cluster, ScanNode, SplitSink
from rtui.server.scan.node_scan import NodeScan
from rtui.server.scan.page import ScanFilter
from rtui.server.scan.pipeline import ScanPipeline
from rtui.server.scan.progress import Cost, NodeProgress, Progress, ScanNote, ScanState, Speedometer
from rtui.server.scan.ranges import CursorSpan
from rtui.server.scan.run_control import NODES_AT_ONCE, RunControl
from rtui.server.scan.slot_ledger import MOST_BYTES, ClusterSlots
from rtui.server.wall_clock import is_recorded
from rtui.server.wire.supervised_tasks import failure_of

NAMED: Final = 3
"""Failed nodes whose reason is told at most; `nodes` holds all of them."""

TOTALS_S: Final = 0.1
"""Of more than NODES_AT_ONCE nodes totals are this old at most: screens ask for them several times in each frame."""


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over all nodes of a scan, at one moment."""

    fraction: float | None
    """The mean of the nodes' progress, None when one does not know its own."""
    keys: int
    waits_for: SafeText | None
    """Why one of them waits, if any does."""
    was_resized: bool
    """Whether a key may have been delivered twice since a table was resized."""
    cost: Cost
    """Cost, without the elapsed time."""

    @classmethod
    def of(cls, nodes: Sequence[NodeScan]) -> Totals:
        """Add up the current figures of the nodes."""
        known = [fraction for node in nodes if (fraction := node.fraction) is not None]
        costs = [node.pipeline.cost(0.0) for node in nodes]
        cost = Cost(
            commands=sum([one.commands for one in costs]),
            keys=sum([one.keys for one in costs]),
            bytes_in=sum([one.bytes_in for one in costs]),
            bytes_out=sum([one.bytes_out for one in costs]),
            server_us=sum([one.server_us for one in costs]),
            is_measured=all(one.is_measured for one in costs),
        )
        return cls(
            fraction=sum(known) / len(known) if known and len(known) == len(nodes) else None,
            keys=sum([node.listing.delivered for node in nodes]),
            waits_for=next((node.waits_for for node in nodes if node.waits_for is not None), None),
            was_resized=any(node.listing.was_resized for node in nodes),
            cost=cost,
        )


def _can_compile(node: ScanNode, split_sink: SplitSink | None) -> bool:
    """Whether the engine can process this node's keys; never in a session whose replies are recorded."""
    if is_recorded():
        return False
    if node.queries is not None:
        return node.queries.compiled is not None
    return split_sink is not None and all(len(one) == 1 for one in split_sink.separators)


class Scan:
    """One pass over a keyspace; `run` it once. Everything else may be called at any time from the same event loop.

    The sink gets pages of keys: every key that is there from start to end at least once, and exactly once unless
    `repeats_possible` says otherwise when it is over.
    """

    def __init__(
        self,
        nodes: Sequence[ScanNode],
        sink: Callable[[list[bytes]], None],
        control: RunControl,
        *,
        match: bytes | None = None,
        key_type: bytes | None = None,
        on_restart: Callable[[ScanNote], None] | None = None,
        split_sink: SplitSink | None = None,
        cluster: Cluster | None = None,
        only_slots: frozenset[int] | None = None,
    ) -> None:
        """With a `cluster` the nodes are its primaries, each with its id, and each is scanned from its beginning; their
        `first_keys`, if any, are not delivered again. With `only_slots` all other slots are neither visited nor
        delivered.

        `on_restart` is called before the scan delivers everything a second time: the keys in the sink are void. A
        `split_sink` gets the keys instead if the compiled engine scans.
        """
        self._loop = asyncio.get_running_loop()
        self._on_restart = on_restart
        self.control = control
        control.on_change.append(self._control_changed)
        self._notes: dict[ScanNote, None] = {}
        self._cluster = cluster
        self._slots: ClusterSlots | None = None
        if cluster is not None:
            most = MOST_BYTES // 8 // max(1, min(len(nodes), NODES_AT_ONCE))
            self._slots = ClusterSlots(most, only_slots)
            for node in nodes:
                self._slots.add_delivered(node.first_keys)
        self._cluster_scan: ClusterScan | None = None

        only = ScanFilter(match, key_type)

        def new_scan(node: ScanNode) -> NodeScan:
            listing = Listing(node, only, self._slots)
            if _can_compile(node, split_sink):
                pipeline: ScanPipeline = CompiledPipeline(listing, control, sink, self._notes, split_sink)
            else:
                pipeline = ScanPipeline(listing, control, sink, self._notes)
            return NodeScan(pipeline, control, restart=self._begin_again, notes=self._notes)

        self._new_scan = new_scan
        self._nodes = [new_scan(node) for node in nodes]
        self._final: ScanState | None = None
        self._reason: SafeText | None = None
        self._is_running = False
        self._elapsed_s = 0.0
        self._going_since: float | None = None
        self._speed = Speedometer()
        self._last_totals: Totals | None = None
        self._totals_due_at = 0.0

    @property
    def state(self) -> ScanState:
        if self._final is not None:
            return self._final
        if not self._is_running:
            return ScanState.READY
        if self.control.is_held:
            return ScanState.PAUSED
        if any(node.waits_for is not None for node in self._nodes):
            return ScanState.WAITING
        return ScanState.RUNNING

    @property
    def repeats_possible(self) -> bool:
        """Whether a key may have been delivered twice; final once the scan is over."""
        return self.most_repeated > 0 or any(node.listing.repeats_possible for node in self._nodes)

    @property
    def progress(self) -> Progress:
        now, elapsed_s, state, totals = self._loop.time(), self._elapsed(), self.state, self._totals
        fraction, keys = 1.0 if self._final is ScanState.DONE else totals.fraction, totals.keys
        if self._speed.is_due(now):
            self._speed.mark(now, keys, fraction or 0.0)
        keys_per_s, eta_s = self._speed.speed(now, keys, fraction or 0.0)
        if state is not ScanState.RUNNING:
            keys_per_s, eta_s = keys / elapsed_s if state.is_over and elapsed_s > 0 else 0.0, None
        return Progress(
            state=state,
            fraction=fraction,
            keys=keys,
            keys_per_s=keys_per_s,
            eta_s=eta_s,
            reason=None if state is ScanState.DONE else self._reason or totals.waits_for,
            notes=(*self._notes, *([ScanNote.REPEATS] if totals.was_resized else [])),
        )

    @property
    def cost(self) -> Cost:
        return replace(self._totals.cost, elapsed_s=self._elapsed())

    @property
    def _totals(self) -> Totals:
        now = self._loop.time()
        if self._last_totals is None or now >= self._totals_due_at:
            self._last_totals = Totals.of(self._nodes)
            self._totals_due_at = now + (TOTALS_S if len(self._nodes) > NODES_AT_ONCE else 0.0)
        return self._last_totals

    @property
    def nodes(self) -> list[NodeProgress]:
        return self.progress_of(None)

    def progress_of(self, ids: Collection[str] | None) -> list[NodeProgress]:
        """How far some nodes are, by their ids in the cluster, or all."""
        state, elapsed_s = self.state, self._elapsed()
        return [node.progress(state, elapsed_s) for node in self._nodes if ids is None or node.node.id in ids]

    def remaining(self) -> list[list[CursorSpan]]:
        """The spans that each node has still to visit; none when it is done or its cursors have no position."""
        ranges = [node.listing.ranges for node in self._nodes]
        return [one.remaining() if one.dialect.is_ordered else [] for one in ranges]

    @property
    def unlisted(self) -> set[int]:
        """Where cursors go slot by slot: the slots of which not all keys are listed yet."""
        return set[int]().union(*(node.unlisted for node in self._nodes))

    @property
    def run_id(self) -> str | None:
        """The run of the first node's server that its cursors come from; None before the scan or if unknown."""
        return self._nodes[0].run_id if self._nodes else None

    async def run(self) -> None:
        """Scan until all keys are delivered or it is stopped; only cancellation is raised, see `progress`.

        Where one of several nodes fails, the others are scanned to their ends. The scan is then stopped, not done.
        """
        self._is_running = True
        self._going_since = None if self.control.is_held else self._loop.time()
        try:
            if self._cluster is not None and self._slots is not None:
                self._cluster_scan = ClusterScan(self._slots, self._cluster, self.control, self._nodes, self._new_scan)
                await self._cluster_scan.run()
            else:
                async with asyncio.TaskGroup() as group:
                    for node in self._nodes:
                        group.create_task(self._scan_node(node), name="rtui scan of a node")
        finally:
            self._clock_off()
            self._end()

    async def _scan_node(self, node: NodeScan) -> None:
        node.failure = await failure_of(node.run(), name="rtui scan of a node")

    @property
    def uncovered(self) -> list[UncoveredByNode]:
        """The slots of a cluster of which not every key was delivered for certain; final once the scan is over."""
        return [] if self._cluster_scan is None else self._cluster_scan.uncovered()

    @property
    def uncovered_reason(self) -> SafeText | None:
        """Sentences on uncovered slots of a cluster and the reasons; None if all are covered, or the user stopped the
        scan."""
        return self._reason if self._final is ScanState.STOPPED and self._cluster_scan is not None else None

    @property
    def most_repeated(self) -> int:
        """Upper bound of keys of a cluster delivered twice, since their slots moved."""
        return 0 if self._slots is None else self._slots.unsure

    @property
    def owners(self) -> Sequence[str | None]:
        """By slot of a cluster the id of the node that serves it, None where none has said so; else empty."""
        return () if self._slots is None else self._slots.ledger.owners

    @property
    def moves(self) -> Mapping[int, str]:
        """Slots of a cluster that are being moved, each with the id of the node that is to have it."""
        return {} if self._slots is None else self._slots.ledger.moves

    @property
    def notes(self) -> tuple[SafeText, ...]:
        notes = [SafeText(note.value) for note in self.progress.notes]
        if self.most_repeated:
            notes.append(repeats_note(self.most_repeated))
        return tuple(notes)

    def _end(self) -> None:
        self._last_totals = None
        if self._slots is not None and self._slots.ledger.is_taking_in:
            self._notes[ScanNote.TAKING_IN] = None
        if self._cluster_scan is not None:
            is_whole = self._cluster_scan.is_whole
            self._final = ScanState.DONE if is_whole else ScanState.STOPPED
            if not is_whole and not self.control.is_stopped:
                self._reason = reason_of(self.uncovered, NAMED)
            if all(node.failure is not None for node in self._nodes) and not is_whole:
                self._final = ScanState.FAILED
            return
        failed = [node for node in self._nodes if node.failure is not None]
        if not failed:
            self._final = ScanState.DONE if all(node.pipeline.is_done for node in self._nodes) else ScanState.STOPPED
            return
        self._final = ScanState.FAILED if len(failed) == len(self._nodes) else ScanState.STOPPED
        reasons = [node.failure.happened for node in failed if node.failure is not None]
        if len(self._nodes) > 1:
            labels = [node.node.connection.target.label for node in failed]
            reasons = [SafeText(f"{label}: {why}") for label, why in zip(labels, reasons, strict=True)]
        self._reason = SafeText(" ".join(reasons[:NAMED]))

    def _control_changed(self) -> None:
        """Leave pauses out of the elapsed time and out of the speed."""
        if self.control.is_held:
            self._clock_off()
        elif self._is_running and self._final is None and self._going_since is None:
            self._speed.restart()
            self._going_since = self._loop.time()

    def _begin_again(self, note: ScanNote) -> None:
        for node in self._nodes:
            node.reset()
        self._last_totals = None
        self._speed.restart()
        self._notes.clear()
        self._notes[note] = None
        if self._on_restart is not None:
            self._on_restart(note)

    def _elapsed(self) -> float:
        running_s = 0.0 if self._going_since is None else self._loop.time() - self._going_since
        return self._elapsed_s + running_s

    def _clock_off(self) -> None:
        self._elapsed_s = self._elapsed()
        self._going_since = None
