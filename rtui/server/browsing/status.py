"""The state of a browsing session at one moment, with those of the nodes of a cluster."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rtui.analysis.estimates import Estimate
from rtui.keyspace.text.display import SafeText
from rtui.server.deployment.nodes import NODES_A_ROUND, Deployment
from rtui.server.deployment.stamp import Outdated
from rtui.server.health.session import Trouble
from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import Cost, NodeProgress, Progress, ScanState
from rtui.server.wire.connection import State
from rtui.server.wire.identity import NoTouch, ServerIdentity
from rtui.server.wire.target import Mark

if TYPE_CHECKING:
    from rtui.server.scan.scan import Scan

STATUS_S: Final = 0.25
"""How often states of nodes are put together anew."""


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """A node of a cluster that is asked for its keys, at one moment."""

    id: str
    label: SafeText
    slots: tuple[tuple[int, int], ...]
    link: State | None
    """None where nothing was asked of it so far."""
    keys: int | None
    """By its own count; None where that is not known."""
    lag_s: float | None = None
    """How far the replica that is asked is behind; None where the primary is."""
    scan: NodeProgress | None = None
    """How far the scan of it is; None before that begins."""


class NodeStatuses:
    """The states of a cluster's nodes, put together anew at most every STATUS_S.

    Screens ask for them with every frame, and a cluster may have a thousand nodes: each time those of the next
    NODES_A_ROUND are put together, and of those that are new.
    """

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self._latest: tuple[NodeStatus, ...] = ()
        self._due_s = 0.0
        self._next = 0
        """The place of the node whose state is put together next, in the order of their slots."""

    def now(self, scan: Scan | None, sizes: Mapping[str, int | None]) -> tuple[NodeStatus, ...]:
        """Return each node that is asked for its keys; none for one server. `sizes` are keys by the node's id."""
        if time.monotonic() < self._due_s:
            return self._latest
        topology = self._deployment.topology
        shards = () if topology is None else tuple(shard for shard in topology.shards if shard.slots)
        known = {one.id: one for one in self._latest}
        begin = self._next if self._next < len(shards) else 0
        self._next = begin + NODES_A_ROUND
        due = {shard.primary.id for shard in shards[begin : begin + NODES_A_ROUND]}
        due |= {shard.primary.id for shard in shards if shard.primary.id not in known}
        progress = {one.id: one for one in (() if scan is None else scan.progress_of(due))}
        known |= {
            shard.primary.id: NodeStatus(
                shard.primary.id,
                shard.primary.label,
                shard.slots,
                self._deployment.link_of(shard.primary.id),
                sizes.get(shard.primary.id),
                self._deployment.replicas.lag_s(shard.primary.id),
                progress.get(shard.primary.id),
            )
            for shard in shards
            if shard.primary.id in due
        }
        self._latest = tuple(known[shard.primary.id] for shard in shards)
        self._due_s = time.monotonic() + STATUS_S
        return self._latest


@dataclass(frozen=True, slots=True)
class BrowsingStatus:
    """A session at one moment; what is not known is None."""

    label: SafeText
    """Host and port or the socket's path; never a secret."""
    db: int
    server: ServerIdentity
    """As of a few seconds ago at most, memory and load included."""
    no_touch: NoTouch
    link: State
    pace: Pace
    progress: Progress
    cost: Cost
    """Of everything that scanned: samples, the scan, targeted scans."""
    mark: Mark | None = None
    """What the server's profile marks it with."""
    match: bytes | None = None
    key_type: bytes | None = None
    total: int | Estimate | None = None
    """Keys of the database: by the server's own count (expired ones that still lie there included), or an estimate."""
    sampled: int = 0
    """Size of the sample that the estimated counts of namespaces come from."""
    generation: int = 0
    """How often the connection has been made: what was learned before it grew may not hold."""
    seen_age_s: float | None = None
    """Seconds since the listed keys were read: since the scan ended, or began where it has not ended."""
    outdated: Outdated | None = None
    """Why what is listed does not hold any more; None while it may."""
    complete: bool = False
    """Whether counts are totals."""
    nodes: tuple[NodeStatus, ...] = ()
    """The nodes of a cluster, by their slots; none for one server."""
    analysis: Progress | None = None
    """How far an analysis is that is under way; the scan waits meanwhile."""
    trouble: Trouble | None = None
    """What is wrong with the server, or with a node of the cluster, by what is known of it anyway; None for nothing."""
    notes: tuple[SafeText, ...] = ()
    """Sentences that a reader of the numbers has to know."""

    @property
    def is_counted(self) -> bool:
        """Whether the scan of all keys is done and still holds: its count is then that of the database."""
        is_of_all = self.match is None and self.key_type is None
        return is_of_all and self.progress.state is ScanState.DONE and self.outdated is None

    @property
    def keys(self) -> int | Estimate | None:
        """Keys of the database as they are shown: those that the scan has counted, before that `total`."""
        return self.progress.keys if self.is_counted else self.total

    @property
    def came_or_went(self) -> int | None:
        """Keys by the server's own count now where that is another number than the scan has counted; else None."""
        has_others = self.is_counted and isinstance(self.total, int) and self.total != self.progress.keys
        return self.total if has_others and isinstance(self.total, int) else None
