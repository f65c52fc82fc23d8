"""Everything that title and status bars show of a browsing session, as one value."""

from __future__ import annotations

from dataclasses import dataclass

from rtui.analysis.estimate import Estimate
from rtui.keyspace.display import SafeText
from rtui.server.connection import State
from rtui.server.handshake import NoTouch
from rtui.server.identity import ServerIdentity
from rtui.server.outdated import Outdated
from rtui.server.pace import Pace
from rtui.server.progress import Cost, Progress


@dataclass(frozen=True, slots=True)
class BrowsingStatus:
    """A session at one moment; what is not known is None."""

    label: SafeText
    """Host and port or the socket's path; never a secret."""
    db: int
    server: ServerIdentity
    """What the server said of itself a few seconds ago at most, memory and load included."""
    no_touch: NoTouch
    link: State
    pace: Pace
    progress: Progress
    cost: Cost
    """Of everything that scanned: samples, the scan, targeted scans."""
    match: bytes | None = None
    kind: bytes | None = None
    total: int | Estimate | None = None
    """Keys of the database: told by the server (expired ones that still lie there included), or estimated."""
    sampled: int = 0
    """Keys that the estimates on namespaces rest on."""
    generation: int = 0
    """How often the connection has been made: what was learned before it grew may not hold."""
    seen_age_s: float | None = None
    """Seconds since the last look at what is listed: since the scan ended, or began where it has not ended."""
    outdated: Outdated | None = None
    """Why what is listed does not hold any more; None while it may."""
    complete: bool = False
    """Whether counts are totals."""
    notes: tuple[SafeText, ...] = ()
    """Sentences that a reader of the numbers has to know."""
