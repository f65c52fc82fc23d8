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

    RESTARTED = (
        "The server was restarted, or another one answers now, so cursors mean nothing any more: the scan began again."
    )
    NODE_RESTARTED = "A node was restarted: what it had not been confirmed to have listed in full it lists again."
    REPLICA_LEFT = "A replica was left for another server, so the scan began again."
    NODE_REPLICA_LEFT = "A replica was left for another server: what was not confirmed to be listed in full is again."
    UNCONFIRMED = "The primary can't be asked whether its replica has followed it to the end: keys may be missing."
    PLAIN_NODE = "The cursors of a node go backwards: it is scanned again, in one range; each key counts once."
    TAKING_IN = "A node takes in slots that no other node hands over: keys of these may be counted twice or not at all."
    UNSURE = "The connection was remade and the server does not tell whether it was restarted: keys may be missing."
    PLAIN = "This server's cursors go backwards: the scan began again, without progress and in one range."
    UNPROVEN = "This server's cursors are no places in its keyspace: it is scanned without progress or estimates."
    BEGAN_AGAIN = "The server lost its place and began again with its first keys, so the scan began again, too."
    LOST_PLACE = "The server did not know its own cursor any more: the scan began again, with one SCAN at a time."
    ALONE = "This server answers SCAN only by itself: the scan began again, with one command at a time."
    EMPTIED = "The server was emptied during the scan: what is listed was there before."
    SHRANK = "More than half of the keys vanished during the scan: what is listed may be gone."
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
