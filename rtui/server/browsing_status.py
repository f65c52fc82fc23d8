"""The status of a browsing session, and whether what it lists still holds: it may be of another run of the server."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from rtui.analysis.estimates import Estimate
from rtui.keyspace.text.display import SafeText
from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import Cost, NodeProgress, Progress, ScanState
from rtui.server.wire.connection import Connection, State
from rtui.server.wire.identity import NoTouch, ServerIdentity
from rtui.server.wire.target import Mark

LEAST_CHANGE: Final = 10
"""A database that has gained or lost fewer keys than this has not become another one."""

UPTIME_SLACK_S: Final = 2.0
"""Servers count their uptime in whole seconds, from a moment that they have rounded as well."""


class Outdated(Enum):
    """Why data does not hold any more, each as a sentence without a full stop."""

    RESTARTED = "The server was restarted"
    REPLACED = "Another server answers now"
    UNSURE = "The server may have been restarted"
    EMPTIED = "The database was emptied"
    SHRANK = "More than half of the keys are gone"
    GREW = "The keys have more than doubled"


@dataclass(frozen=True, slots=True)
class ServerStamp:
    """When something was read, and from which run of the server."""

    at_s: float
    """Seconds since the epoch."""
    run_id: str | None
    """None where it is not known."""
    generation: int
    """How often the connection had been made."""

    def outdated(self, server: ServerIdentity, generation: int, now_s: float) -> Outdated | None:
        """Return why the stamped data may be outdated: another run of the server, or another server, answers now.

        It was restarted if it has run for less time than has passed since; where that is not known, it may have been.
        """
        run_id, uptime_s = server.run_id, server.uptime_s
        if generation == self.generation or (run_id is not None and run_id == self.run_id):
            return None
        if run_id is None or self.run_id is None:
            return Outdated.UNSURE
        if uptime_s is not None and uptime_s > now_s - self.at_s + UPTIME_SLACK_S:
            return Outdated.REPLACED
        return Outdated.RESTARTED


def stamp_now(connection: Connection, now_s: float) -> ServerStamp:
    """Stamp what is read from a server at this moment."""
    return ServerStamp(now_s, connection.server.run_id, connection.generation)


def outdated_by_size(listed: int, then: int | None, now: int | None) -> Outdated | None:
    """Return why `listed` keys can't be all any more, by the size of the database when they had been counted and now.

    Both sizes are the server's own and include keys that have expired and still lie there: only their change counts.
    """
    if then is None or now is None:
        return None
    if not now:
        return Outdated.EMPTIED if listed else None
    if abs(now - then) < LEAST_CHANGE and listed:
        return None
    if now * 2 < then:
        return Outdated.SHRANK
    return Outdated.GREW if now > then * 2 else None


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


@dataclass(frozen=True, slots=True)
class Trouble:
    """What is wrong with a server, the gravest first."""

    word: str
    """The rule that finds it, such as `memory-near-limit`."""
    is_error: bool
    """Whether it is an error, not a warning."""
    more: int = 0
    """How many other rules find something."""


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
