"""The progress of a scan: its state, how far and how fast it is, and its cost to the server."""

from __future__ import annotations

import enum
from collections import deque
from dataclasses import dataclass
from typing import Final

from rtui.keyspace.text.display import SafeText

SPEED_WINDOW_S: Final = 3.0

_SPEED_STEP_S: Final = 0.1


class ScanState(enum.Enum):
    """The state of a scan."""

    READY = "ready"
    SAMPLING = "sampling"
    """An overview is taken from random cursors."""
    RUNNING = "running"
    PAUSED = "paused"
    WAITING = "waiting"
    """For a connection or for a server that is busy loading."""
    DONE = "done"
    STOPPED = "stopped"
    FAILED = "failed"

    @property
    def is_over(self) -> bool:
        return self in {ScanState.DONE, ScanState.STOPPED, ScanState.FAILED}


class ScanNote(enum.Enum):
    """A note on the figures of a scan; its value is the sentence to show."""

    RESTARTED = "The server was restarted or replaced, so the scan started again."
    NODE_RESTARTED = "A node was restarted; the unconfirmed part is scanned again."
    REPLICA_LEFT = "Switched from a replica to another server; the scan started again."
    NODE_REPLICA_LEFT = "Switched from a replica to another server; the unconfirmed part is scanned again."
    UNCONFIRMED = "The primary can't confirm that the replica is in sync: keys may be missing."
    PLAIN_NODE = "The cursors of a node go backwards: it is scanned again, in one range; each key counts once."
    TAKING_IN = "A node takes in slots that no other node hands over: keys of these may be counted twice or not at all."
    UNSURE = "Reconnected, and a restart of the server can't be ruled out: keys may be missing."
    PLAIN = "This server's cursors go backwards: the scan started again, without progress."
    UNPROVEN = "This server's cursors are opaque: the scan has no progress or estimates."
    BEGAN_AGAIN = "The server lost its cursor and began again, so the scan started again."
    LOST_PLACE = "The server lost its cursor: the scan started again, with one SCAN at a time."
    ALONE = "This server does not pipeline SCAN: the scan started again, with one command at a time."
    EMPTIED = "The server was emptied during the scan: the list is from before."
    SHRANK = "More than half of the keys disappeared during the scan: the list may be outdated."
    REPEATS = "The server resized its table during the scan, so some keys came twice; they count once at the end."


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of a scan so far."""

    commands: int = 0
    keys: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    server_us: float = 0.0
    """Server time in µs."""
    is_measured: bool = False
    """Whether it is by the server's own clock; otherwise it is estimated from round trips."""
    elapsed_s: float = 0.0
    """Time under way, pauses left out."""

    def __add__(self, other: Cost) -> Cost:
        """Return the cost of both, one after the other."""
        return Cost(
            commands=self.commands + other.commands,
            keys=self.keys + other.keys,
            bytes_in=self.bytes_in + other.bytes_in,
            bytes_out=self.bytes_out + other.bytes_out,
            server_us=self.server_us + other.server_us,
            is_measured=all(cost.is_measured for cost in (self, other) if cost.server_us),
            elapsed_s=self.elapsed_s + other.elapsed_s,
        )

    @property
    def server_share(self) -> float:
        return min(1.0, self.server_us / 1e6 / self.elapsed_s) if self.elapsed_s > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a scan is."""

    state: ScanState = ScanState.READY
    fraction: float | None = 0.0
    """0 … 1, from the cursors; None where they have no position."""
    keys: int = 0
    keys_per_s: float = 0.0
    eta_s: float | None = None
    reason: SafeText | None = None
    """Why it failed or waits."""
    notes: tuple[ScanNote, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeProgress:
    """How far the scan of one of several nodes is."""

    id: str | None
    label: SafeText
    state: ScanState
    fraction: float | None
    """0 … 1, from its cursors; None where they have no position."""
    keys: int
    keys_per_s: float
    cost: Cost
    waits_for: SafeText | None = None
    """Why nothing is sent to it just now."""
    failure: SafeText | None = None
    """Why it was given up."""


class Speedometer:
    """How fast two counters grow over the last few seconds: keys and the fraction that is done."""

    def __init__(self) -> None:
        self._marks: deque[tuple[float, int, float]] = deque()

    def is_due(self, now: float) -> bool:
        return not self._marks or now - self._marks[-1][0] >= _SPEED_STEP_S

    def mark(self, now: float, keys: int, fraction: float) -> None:
        """Record the counters at a time in seconds."""
        marks = self._marks
        marks.append((now, keys, fraction))
        while now - marks[0][0] > SPEED_WINDOW_S and len(marks) > 2:
            marks.popleft()

    def restart(self) -> None:
        self._marks.clear()

    def speed(self, now: float, keys: int, fraction: float) -> tuple[float, float | None]:
        """Keys a second, and the seconds until the fraction is 1 (None when that is unknown)."""
        if not self._marks or now <= self._marks[0][0]:
            return 0.0, None
        then, keys_then, fraction_then = self._marks[0]
        elapsed_s = now - then
        advance = fraction - fraction_then
        left_s = (1.0 - fraction) * elapsed_s / advance if advance > 0 else None
        return (keys - keys_then) / elapsed_s, left_s
