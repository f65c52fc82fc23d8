"""The state of a browsing session at one moment, with the states of a cluster's nodes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rtui.analysis.estimates import Estimate
from rtui.keyspace.text.display import SafeText
from rtui.server.deployment.nodes import NODES_A_ROUND, Deployment
from rtui.server.health.session import Trouble
from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import Cost, NodeProgress, Progress, ScanState
from rtui.server.wire.connection import State
from rtui.server.wire.identity import NoTouch, Outdated, ServerIdentity
from rtui.server.wire.target import DumpFile, Mark

if TYPE_CHECKING:
    from rtui.server.scan.scan import Scan

STATUS_S: Final = 0.25


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """A cluster node whose keys are read, at one moment."""

    id: str
    label: SafeText
    slots: tuple[tuple[int, int], ...]
    link: State | None
    """None before the first command to it."""
    keys: int | None
    """By its own count; None if unknown."""
    lag_s: float | None = None
    """The lag of the replica that is read; None if the primary is."""
    scan: NodeProgress | None = None
    """The progress of its scan; None before that begins."""


class NodeStatuses:
    """The states of a cluster's nodes, computed anew at most every STATUS_S.

    Screens ask for them with every frame, and a cluster may have a thousand nodes: each time the next NODES_A_ROUND and
    all new nodes are computed.
    """

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self._latest: tuple[NodeStatus, ...] = ()
        self._due_s = 0.0
        self._next = 0
        """The index of the next node to compute, in the order of slots."""

    def now(self, scan: Scan | None, sizes: Mapping[str, int | None]) -> tuple[NodeStatus, ...]:
        """Return each node whose keys are read; empty for one server. `sizes` are numbers of keys by node id."""
        if time.monotonic() < self._due_s:
            return self._latest
        topology = self._deployment.topology
        shards = () if topology is None else tuple(shard for shard in topology.shards if shard.slots)
        known = {status.id: status for status in self._latest}
        begin = self._next if self._next < len(shards) else 0
        self._next = begin + NODES_A_ROUND
        due = {shard.primary.id for shard in shards[begin : begin + NODES_A_ROUND]}
        due |= {shard.primary.id for shard in shards if shard.primary.id not in known}
        progress = {node.id: node for node in (() if scan is None else scan.progress_of(due))}
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
    """A session at one moment; unknown values are None."""

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
    """The cost of everything that scanned: samples, the scan, targeted scans."""
    dump: DumpFile | None = None
    """The dump that takes the place of a server."""
    mark: Mark | None = None
    """The mark of the server's profile."""
    match: bytes | None = None
    key_type: bytes | None = None
    total: int | Estimate | None = None
    """Keys of the database: by the server's own count (including expired ones not yet removed), or an estimate."""
    sampled: int = 0
    """Size of the sample behind the estimated counts of namespaces."""
    generation: int = 0
    """The number of connections made; facts learned before an increase may not hold."""
    seen_age_s: float | None = None
    """Seconds since the listed keys were read: since the end of the scan, or its start if it has not ended."""
    outdated: Outdated | None = None
    """The reason why the listed keys are outdated; None while they may hold."""
    complete: bool = False
    nodes: tuple[NodeStatus, ...] = ()
    """The nodes of a cluster by their slots; empty for one server."""
    analysis: Progress | None = None
    """The progress of a running analysis, which suspends the scan."""
    trouble: Trouble | None = None
    """The problem of the server or a cluster node, by the figures that are read anyway; None if there is none."""
    notes: tuple[SafeText, ...] = ()

    @property
    def is_counted(self) -> bool:
        """Whether the scan of all keys is complete and still valid: its count is then that of the database."""
        is_of_all = self.match is None and self.key_type is None
        return is_of_all and self.progress.state is ScanState.DONE and self.outdated is None

    @property
    def keys(self) -> int | Estimate | None:
        """The number of keys shown: the scan's own count if it is complete and valid, else `total`."""
        return self.progress.keys if self.is_counted else self.total

    @property
    def came_or_went(self) -> int | None:
        """The server's own count now if it differs from the scan's; else None."""
        has_others = self.is_counted and isinstance(self.total, int) and self.total != self.progress.keys
        return self.total if has_others and isinstance(self.total, int) else None
