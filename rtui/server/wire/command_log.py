"""The command log: every command that was sent, on which connection, what for, and what it and its replies came to.

A lane writes to it through its `LaneLog` when bytes leave and when replies are complete. Single commands have an entry
each. A scan and an inspection send tens of thousands of commands a second; so a lane for bulk work adds up what it
sends, by name, in an entry for each `BATCH_S`: `SCAN ×31, TYPE ×620, PTTL ×620`. The compiled engine counts by itself,
and tells after each slice of its work.

What for is known where the work begins: `with sent_for(Purpose.PREVIEW):` holds for everything that is sent below it,
also by tasks that are started there. The entries are in a ring: the oldest make room, and how many did is kept. Of a
command with a password only its name is ever known here.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Literal, ParamSpec, TypeAlias, TypeVar

from rtui.keyspace.text.display import SafeText
from rtui.server.guard.closed_list import TABLE
from rtui.server.guard.command import Command, SecretBytes
from rtui.server.guard.evidence import PROBE_KEY
from rtui.server.wire.replies import Reply, ServerError
from rtui.server.wire.reply_sizes import ReplySizes

MOST_ENTRIES: Final = 10_000
"""Entries that are kept."""

MOST_BYTES: Final = 8 << 20
"""About so much memory the entries may take."""

ENTRY_BYTES: Final = 600
"""About what an entry takes without its request."""

MOST_REQUEST_BYTES: Final = 4096
"""Of a longer request the beginning is kept."""

BATCH_S: Final = 0.25
"""What a bulk lane sends within so many seconds is one entry."""


class Purpose(StrEnum):
    """What a command is sent for, in the words of the screen."""

    HANDSHAKE = "handshake"
    HEARTBEAT = "heartbeat"
    RIGHTS = "what is allowed"
    SERVER = "server facts"
    LOOKUP = "look-up"
    ROWS = "rows"
    FACTS = "facts of a key"
    PREVIEW = "preview"
    REFERENCES = "references"
    SCAN = "scan"
    SAMPLE = "sample"
    FIND = "find"
    INSPECTION = "inspection"
    HOT = "hot keys"
    CLIENTS = "clients"
    HEALTH = "health"
    OTHER = "other"


_purpose: ContextVar[Purpose] = ContextVar("purpose", default=Purpose.OTHER)

current_purpose: Final = _purpose.get
"""Return what is sent just now is for."""

P = ParamSpec("P")
T = TypeVar("T")


@contextmanager
def sent_for(purpose: Purpose) -> Iterator[None]:
    """Have all that is sent within the block logged with this purpose."""
    token = _purpose.set(purpose)
    try:
        yield
    finally:
        _purpose.reset(token)


def for_purpose(
    purpose: Purpose,
) -> Callable[[Callable[P, Coroutine[Any, Any, T]]], Callable[P, Coroutine[Any, Any, T]]]:
    """Decorate a coroutine function: all that it sends is logged with this purpose."""

    def decorate(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
        @functools.wraps(function)
        async def run(*args: P.args, **options: P.kwargs) -> T:
            with sent_for(purpose):
                return await function(*args, **options)

        return run

    return decorate


_COUNTING: Final = frozenset(spec.name for spec in TABLE if spec.counts) - {
    spec.name for spec in TABLE if not spec.counts
}
"""Commands of which each counts in the server's keyspace_hits or keyspace_misses."""


@functools.lru_cache(maxsize=1024)
def _counting(batch: str) -> tuple[int, int]:
    """Return how many of the commands of a batch count there, and how many there are."""
    names = batch.split(" + ")
    return sum(name in _COUNTING for name in names), len(names)


@dataclass(slots=True)
class SentCounts:
    """What was sent to one server, over all lanes, as its statistics count it."""

    commands: int = 0
    hits: int = 0
    """Look-ups of keys; also of those that were gone by then, since nobody looks at each reply."""
    misses: int = 0
    """Look-ups of the key that nobody has, which find out what is allowed."""

    def add(self, name: str, replies: int, request: bytes = b"") -> None:
        """Count a command, or a batch of them, that brings so many replies."""
        counting, all_names = _counting(name)
        self.commands += replies
        if PROBE_KEY in request:
            self.misses += replies * counting // all_names
        else:
            self.hits += replies * counting // all_names


Outcome = Literal["waiting", "answered", "error", "lost"]
"""What became of a command: `lost` where the connection ended before all its replies had come."""


@dataclass(slots=True, eq=False)
class LogEntry:
    """A command, or several that are added up; its figures grow until it is over."""

    number: int
    """Counts from 1 on; one more than the entry before."""
    at_s: float
    """When the first of it was sent, in seconds since the epoch."""
    connection: str
    """The lane: `interactive 1`, after a reconnection `interactive 2`; `bulk 1`."""
    purpose: Purpose
    sent: dict[str, int]
    """How many replies the commands bring, by their names in capitals; that of a batch is such as `TYPE + PTTL`."""
    request: bytes = b""
    """What was sent, at most MOST_REQUEST_BYTES of it; nothing for a sum, and nothing where a password is in it.

    A command that the server knows by another name has its own.
    """
    is_cut: bool = False
    """Whether only the beginning of the request is kept."""
    is_sum: bool = False
    """Whether it adds up what a bulk lane has sent in a while."""
    is_secret: bool = False
    bytes_out: int = 0
    bytes_in: int = 0
    replies: int = 0
    owed: int = 0
    """Replies that have not come."""
    ms: float = 0.0
    """From when it was sent until its last reply so far had come."""
    error: str = ""
    """The code of the first reply that is an error, such as `NOPERM`; not looked for in a sum."""
    is_over: bool = False
    """Whether nothing of it changes any more."""
    sent_s: float = 0.0
    """When it was sent, on the monotonic clock."""

    @property
    def commands(self) -> int:
        """How many were sent."""
        return sum(self.sent.values())

    @property
    def counts(self) -> dict[str, int]:
        """How often each command was sent, by its name in capitals; those of a batch are sent for each of its keys."""
        found: dict[str, int] = {}
        for batch, replies in self.sent.items():
            names = batch.split(" + ")
            for name in names:
                found[name] = found.get(name, 0) + replies // len(names)
        return found

    @property
    def counts_text(self) -> str:
        """The commands, with how often each was sent: `TYPE ×25, PTTL ×25`, or `PING`; safe to show."""
        if self.commands == 1 and not self.is_sum:
            return next(iter(self.sent))
        return ", ".join(f"{name} ×{count:,}" for name, count in self.counts.items())

    @property
    def outcome(self) -> Outcome:
        """What became of it."""
        if self.owed:
            return "lost" if self.is_over else "waiting"
        return "error" if self.error else "answered"


RepliesReport: TypeAlias = Callable[[Sequence[Command], Sequence[Reply], float], object]


class CommandLog:
    """The latest entries of all lanes of a session, oldest first."""

    def __init__(self, *, most_entries: int = MOST_ENTRIES, most_bytes: int = MOST_BYTES) -> None:
        self.entries: deque[LogEntry] = deque()
        self.commands = self.bytes_out = self.bytes_in = 0
        """What all lanes together have sent and received, also in entries that are gone."""
        self.dropped = 0
        """Entries that have made room for later ones."""
        self.revision = 0
        """Grows with every change."""
        self.failure: SafeText | None = None
        """Why it is not written to the file that was asked for, a sentence; None while it is."""
        self.on_over: list[Callable[[LogEntry], object]] = []
        """Called with each entry once it is over."""
        self.on_replies: list[RepliesReport] = []
        """Called with what was written at once, the replies to it, and the seconds that took; not for what the compiled
        engine sends."""
        self._most_entries, self._most_bytes = most_entries, most_bytes
        self._kept_bytes = 0
        self._opened: dict[str, int] = {}
        self._lanes: dict[LaneLog, None] = {}

    def open_lane(self, name: str, *, is_bulk: bool = False, counts: SentCounts | None = None) -> LaneLog:
        """Return what a new lane writes to; from its handshake on, one for bulk work adds up what it sends.

        `counts` counts what is sent to its server.
        """
        return LaneLog(self, name, is_bulk=is_bulk, counts=SentCounts() if counts is None else counts)

    def end(self) -> None:
        """Let all entries be over, as at the end of a session; replies that are owed are lost."""
        for lane in tuple(self._lanes):
            lane.ended()

    def _begin_lane(self, lane: LaneLog, name: str) -> str:
        """Return the name of a lane that begins to send, with a number."""
        self._lanes[lane] = None
        self._opened[name] = self._opened.get(name, 0) + 1
        return f"{name} {self._opened[name]}"

    def _end_lane(self, lane: LaneLog) -> None:
        self._lanes.pop(lane, None)

    def _add(self, connection: str, purpose: Purpose, sent: dict[str, int], request: bytes) -> LogEntry:
        number = self.dropped + len(self.entries) + 1
        entry = LogEntry(number, time.time(), connection, purpose, sent, request, sent_s=time.monotonic())
        self.entries.append(entry)
        self._kept_bytes += ENTRY_BYTES + len(request)
        while len(self.entries) > self._most_entries or self._kept_bytes > self._most_bytes:
            self._kept_bytes -= ENTRY_BYTES + len(self.entries.popleft().request)
            self.dropped += 1
        return entry

    def _finish(self, entry: LogEntry) -> None:
        entry.is_over = True
        self.revision += 1
        for call in self.on_over:
            call(entry)


@dataclass(slots=True)
class _Owed:
    """Replies to one entry that a lane waits for."""

    entry: LogEntry
    replies: int


@dataclass(slots=True, eq=False)
class LaneLog:
    """What one lane writes to the log, in the order in which bytes leave and arrive."""

    _log: CommandLog
    _kind: str
    is_bulk: bool = False
    counts: SentCounts = field(default_factory=SentCounts)
    _name: str = ""
    _sizes: ReplySizes | None = field(default_factory=ReplySizes)
    """Measures the replies to single commands; None where they are added up."""
    _owed: deque[_Owed] = field(default_factory=deque)
    _sum: LogEntry | None = None
    """The entry to which what is sent now is added."""
    _counted_in: int = 0
    """Bytes that had arrived at the lane when they were last counted."""
    _timer: asyncio.TimerHandle | None = None

    @property
    def on_replies(self) -> Sequence[RepliesReport]:
        """What is called with the replies to each write."""
        return self._log.on_replies

    def ready(self, bytes_in: int) -> None:
        """Add up from now on if the lane is for bulk work; `bytes_in` have arrived at it so far."""
        if self.is_bulk:
            self._sizes, self._counted_in = None, bytes_in

    def sent(self, commands: Sequence[Command], purpose: Purpose) -> None:
        """Log what was written at once."""
        if self._sizes is None:  # tens of thousands a second: names of batches are divided when somebody looks
            entry = self._sum_for(purpose)
            sent, replies, bytes_out = entry.sent, 0, 0
            for command in commands:
                name, brings = command.name, command.replies
                sent[name] = sent[name] + brings if name in sent else brings
                self.counts.add(name, brings)
                replies += brings
                bytes_out += len(command.packed)
            self._count(entry, replies, bytes_out)
            return
        for command in commands:
            is_secret = isinstance(command.packed, SecretBytes)
            request = b"" if is_secret else command.request[:MOST_REQUEST_BYTES]
            entry = self._begin(purpose, {command.name: command.replies}, request)
            self.counts.add(command.name, command.replies, request)
            entry.is_secret, entry.is_cut = is_secret, not is_secret and len(request) < len(command.request)
            self._count(entry, command.replies, len(command.packed))

    def received(self, buffer: bytes | bytearray, size_bytes: int) -> None:
        """Measure the replies in what has arrived: the first bytes of a buffer."""
        if self._sizes is not None:
            self._sizes.feed(buffer[:size_bytes])

    def answered(self, replies: Sequence[Reply], bytes_in: int) -> None:
        """Log the replies to a write; `bytes_in` have arrived at the lane so far."""
        if self._sizes is None:
            self._take_replies(len(replies), bytes_in)
            return
        now_s, sizes, at = time.monotonic(), self._sizes.sizes, 0
        while at < len(replies):
            owed = self._owed.popleft()
            entry, end = owed.entry, at + owed.replies
            size = sum(sizes.popleft() for _ in range(min(owed.replies, len(sizes))))
            entry.error = next((reply.code for reply in replies[at:end] if isinstance(reply, ServerError)), "")
            if entry.is_secret and entry.error:
                entry.error = "ERR"  # what the server makes of a password is not repeated, in no form
            entry.bytes_in, entry.owed, entry.ms = size, 0, 1000 * (now_s - entry.sent_s)
            self._log.bytes_in += size
            self._log._finish(entry)
            at = end

    def worked(self, counts: dict[str, int], replies: int, bytes_out: int, bytes_in: int) -> None:
        """Log what the compiled engine has sent and received in a slice; `bytes_in` as for `answered`."""
        if counts:
            entry = self._sum_for(current_purpose())
            for name, count in counts.items():
                entry.sent[name] = entry.sent.get(name, 0) + count
                self.counts.add(name, count)
            self._count(entry, sum(counts.values()), bytes_out)
        self._take_replies(replies, bytes_in)

    def ended(self) -> None:
        """Let all entries be over: the connection has ended, and replies that are owed will not come."""
        self._end_sum()
        while self._owed:
            self._log._finish(self._owed.popleft().entry)
        self._log._end_lane(self)

    def _begin(self, purpose: Purpose, sent: dict[str, int], request: bytes) -> LogEntry:
        if not self._name:
            self._name = self._log._begin_lane(self, self._kind)
        return self._log._add(self._name, purpose, sent, request)

    def _count(self, entry: LogEntry, replies: int, bytes_out: int) -> None:
        """Count what was sent for an entry, which has its commands already."""
        entry.replies += replies
        entry.owed += replies
        entry.bytes_out += bytes_out
        if self._owed and self._owed[-1].entry is entry:
            self._owed[-1].replies += replies
        else:
            self._owed.append(_Owed(entry, replies))
        log = self._log
        log.commands += replies
        log.bytes_out += bytes_out
        log.revision += 1

    def _sum_for(self, purpose: Purpose) -> LogEntry:
        """Return the sum of now, or begin another one."""
        entry = self._sum
        if entry is None or entry.purpose is not purpose:
            self._end_sum()
            entry = self._sum = self._begin(purpose, {}, b"")
            entry.is_sum = True
            self._timer = asyncio.get_running_loop().call_later(BATCH_S, self._end_sum)
        return entry

    def _end_sum(self) -> None:
        """Let the next commands begin another entry."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        entry, self._sum = self._sum, None
        if entry is not None and not entry.owed:
            self._log._finish(entry)

    def _take_replies(self, replies: int, bytes_in: int) -> None:
        """Count replies to sums, oldest first; all bytes that have come since are theirs."""
        size, self._counted_in = bytes_in - self._counted_in, bytes_in
        now_s, log = time.monotonic(), self._log
        log.bytes_in += size
        log.revision += 1
        while self._owed:
            owed = self._owed[0]
            entry, taken = owed.entry, min(owed.replies, replies)
            entry.bytes_in += size
            size, replies = 0, replies - taken
            owed.replies -= taken
            entry.owed -= taken
            if taken:
                entry.ms = 1000 * (now_s - entry.sent_s)
            if owed.replies:
                return
            self._owed.popleft()
            if entry is not self._sum and not entry.owed:
                log._finish(entry)
