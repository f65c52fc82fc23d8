"""The command log: every command that was sent, with its connection, purpose, outcome, bytes and time.

A lane writes to it through its `LaneLog` when bytes leave and when replies are complete. Single commands have an entry
each. A scan and an inspection send tens of thousands of commands a second; so a lane for bulk work sums up its commands
by name, in an entry for each `BATCH_S`: `SCAN ×31, TYPE ×620, PTTL ×620`. The compiled engine counts by itself, and
reports after each slice of its work.

The purpose is set where the work begins: `with sent_for(Purpose.PREVIEW):` covers all commands sent below it, also by
tasks that are started there. The entries are in a ring: the oldest make room, and their number is kept. Of a command
with a password only its name is ever known here.

The parser does not tell the size of a reply on the wire, so `ReplySizes` looks for the ends of replies. `$5 hello` is
read as a header with seven more bytes to follow, `*2` as one with two more replies. So a counter of outstanding parts
is enough, however deep replies are nested: `*2 :1 *1 $1 a` leaves 1, 3 - 1, 2 - 1, 2 - 1 + 1, 1 - 1 outstanding.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, Literal, ParamSpec, TypeAlias, TypeVar

from rtui.keyspace.text.display import SafeText
from rtui.server.guard.closed_list import TABLE
from rtui.server.guard.command import Command, SecretBytes
from rtui.server.guard.evidence import PROBE_KEY
from rtui.server.wire.errors import Reply, ServerError

_BULK: Final = frozenset(b"$!=")
_NESTING: Final = {ord("*"): 1, ord("~"): 1, ord(">"): 1, ord("%"): 2, ord("|"): 2}
"""Marks of replies that contain others, with the number of replies for each that their header counts."""

_ATTRIBUTE: Final = ord("|")
_PUSH: Final = ord(">")

_KEPT_HEADER_BYTES: Final = 32
"""The kept part of a header whose end has not arrived; headers with a number are shorter."""


class ReplySizes:
    """Measures replies of either protocol, in whatever pieces they arrive; push messages are skipped."""

    def __init__(self) -> None:
        self.sizes: deque[int] = deque()
        """The sizes of complete replies in bytes, in order of arrival."""
        self._header = b""
        self._size = 0
        self._skip = 0
        """The remaining bytes of a bulk string."""
        self._to_come = 1
        self._is_push = False
        self._is_broken = False

    def feed(self, received: bytes | bytearray | memoryview) -> None:
        """Measure the next bytes. Anything but a reply ends the measuring; the parser reports it."""
        if self._is_broken:
            return
        data, at = bytes(received), 0
        while at < len(data):
            if self._skip:
                step = min(self._skip, len(data) - at)
                at, self._size, self._skip = at + step, self._size + step, self._skip - step
                if not self._skip:
                    self._end_one()
                continue
            end = data.find(b"\n", at) + 1
            part = data[at : end or len(data)]
            at += len(part)
            self._size += len(part)
            self._header += part[:_KEPT_HEADER_BYTES]
            if end:
                header, self._header = self._header, b""
                if not self._begin(header):
                    self._is_broken = True
                    return

    def _begin(self, header: bytes) -> bool:
        """Read the first line of a reply, which may be all of it; return whether it can be one."""
        mark = header[0]
        nested = _NESTING.get(mark)
        if nested is None and mark not in _BULK:
            self._end_one()
            return True
        digits = header[1:].strip()
        if not digits.removeprefix(b"-").isdigit():
            return False
        count = int(digits)
        if nested is None:
            self._skip = count + 2 if count >= 0 else 0
            if not self._skip:
                self._end_one()
            return True
        self._is_push = self._is_push or mark == _PUSH
        self._to_come += max(0, count) * nested + (mark == _ATTRIBUTE)
        self._end_one()
        return True

    def _end_one(self) -> None:
        """Count down by one reply that is complete, or whose parts are outstanding."""
        self._to_come -= 1
        if not self._to_come:
            if not self._is_push:
                self.sizes.append(self._size)
            self._size, self._to_come, self._is_push = 0, 1, False


MOST_ENTRIES: Final = 10_000
"""The most entries that are kept."""

MOST_BYTES: Final = 8 << 20
"""The approximate limit of the memory of all entries."""

ENTRY_BYTES: Final = 600
"""The approximate size of an entry without its request."""

MOST_REQUEST_BYTES: Final = 4096
"""The beginning of a request that is kept, in bytes."""

BATCH_S: Final = 0.25
"""The time that one summed-up entry of a bulk lane covers, in seconds."""


class Purpose(StrEnum):
    """The purpose of a command, in the words of the screen."""

    HANDSHAKE = "handshake"
    HEARTBEAT = "heartbeat"
    RIGHTS = "permission probe"
    SERVER = "INFO/CONFIG"
    LOOKUP = "look-up"
    ROWS = "tree rows"
    FACTS = "key facts"
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
"""Return the purpose of commands that are sent now."""

P = ParamSpec("P")
T = TypeVar("T")


@contextmanager
def sent_for(purpose: Purpose) -> Iterator[None]:
    """Log all commands sent within the block with this purpose."""
    token = _purpose.set(purpose)
    try:
        yield
    finally:
        _purpose.reset(token)


def for_purpose(
    purpose: Purpose,
) -> Callable[[Callable[P, Coroutine[Any, Any, T]]], Callable[P, Coroutine[Any, Any, T]]]:
    """Decorate a coroutine function: all its commands are logged with this purpose."""

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
"""Commands that always count in the server's keyspace_hits or keyspace_misses."""


@functools.lru_cache(maxsize=1024)
def _counting(batch: str) -> tuple[int, int]:
    """Return the number of commands of a batch that count there, and the number of all."""
    names = batch.split(" + ")
    return sum(name in _COUNTING for name in names), len(names)


@dataclass(slots=True)
class SentCounts:
    """The commands sent to one server, over all lanes, as its statistics count them."""

    commands: int = 0
    hits: int = 0
    """Look-ups of keys, including keys that were gone by then, since nobody checks each reply."""
    misses: int = 0
    """Look-ups of the probe's key, which nobody has."""

    def add(self, name: str, replies: int, request: bytes = b"") -> None:
        """Count a command, or a batch of them, by its number of replies."""
        counting, all_names = _counting(name)
        self.commands += replies
        if PROBE_KEY in request:
            self.misses += replies * counting // all_names
        else:
            self.hits += replies * counting // all_names


Outcome = Literal["waiting", "answered", "error", "lost"]
"""The outcome of a command: `lost` if the connection ended before its last reply."""


@dataclass(slots=True, eq=False)
class LogEntry:
    """A command, or a sum of several; its figures grow until it is over."""

    number: int
    """Counts from 1 on; one more than the entry before."""
    at_s: float
    """When the first of its commands was sent, in seconds since the epoch."""
    connection: str
    """The lane: `interactive 1`, after a reconnection `interactive 2`; `bulk 1`."""
    purpose: Purpose
    sent: dict[str, int]
    """The number of expected replies by command name in capitals, or batch name, such as `TYPE + PTTL`."""
    request: bytes = b""
    """The request, at most MOST_REQUEST_BYTES of it; empty for a sum, and if it contains a password.

    A renamed command has its own name.
    """
    is_cut: bool = False
    """Whether only the beginning of the request is kept."""
    is_sum: bool = False
    """Whether it sums up a bulk lane's commands of some time."""
    is_secret: bool = False
    bytes_out: int = 0
    bytes_in: int = 0
    replies: int = 0
    owed: int = 0
    """The number of replies that have not come."""
    ms: float = 0.0
    """The time from sending to the last reply so far."""
    error: str = ""
    """The code of the first error reply, such as `NOPERM`; not looked for in a sum."""
    is_over: bool = False
    sent_s: float = 0.0
    """When it was sent, on the monotonic clock."""

    @property
    def commands(self) -> int:
        return sum(self.sent.values())

    @property
    def counts(self) -> dict[str, int]:
        """The number of each command, by its name in capitals; commands of a batch are sent for each of its keys."""
        found: dict[str, int] = {}
        for batch, replies in self.sent.items():
            names = batch.split(" + ")
            for name in names:
                found[name] = found.get(name, 0) + replies // len(names)
        return found

    @property
    def counts_text(self) -> str:
        """The commands with their numbers: `TYPE ×25, PTTL ×25`, or `PING`; safe to show."""
        if self.commands == 1 and not self.is_sum:
            return next(iter(self.sent))
        return ", ".join(f"{name} ×{count:,}" for name, count in self.counts.items())

    @property
    def outcome(self) -> Outcome:
        if self.owed:
            return "lost" if self.is_over else "waiting"
        return "error" if self.error else "answered"


RepliesReport: TypeAlias = Callable[[Sequence[Command], Sequence[Reply], float], object]


class CommandLog:
    """The latest entries of all lanes of a session, oldest first."""

    def __init__(self, *, most_entries: int = MOST_ENTRIES, most_bytes: int = MOST_BYTES) -> None:
        self.entries: deque[LogEntry] = deque()
        self.commands = self.bytes_out = self.bytes_in = 0
        self.dropped = 0
        """Entries that have made room for later ones."""
        self.revision = 0
        self.failure: SafeText | None = None
        """Why the log file that was asked for is not written, a sentence; None while it is."""
        self.on_over: list[Callable[[LogEntry], object]] = []
        """Called with each entry once it is over."""
        self.on_replies: list[RepliesReport] = []
        """Called with the commands of one write, the replies, and the seconds in between; not for commands of the
        compiled engine."""
        self._most_entries, self._most_bytes = most_entries, most_bytes
        self._kept_bytes = 0
        self._opened: dict[str, int] = {}
        self._lanes: dict[LaneLog, None] = {}

    def open_lane(self, name: str, *, is_bulk: bool = False, counts: SentCounts | None = None) -> LaneLog:
        """Return the log of a new lane; a bulk lane sums up its commands from the end of its handshake on.

        `counts` counts the commands sent to its server.
        """
        return LaneLog(self, name, is_bulk=is_bulk, counts=SentCounts() if counts is None else counts)

    def end(self) -> None:
        """End all entries, as at the end of a session; missing replies are lost."""
        for lane in tuple(self._lanes):
            lane.ended()

    def take(self, entry: LogEntry) -> None:
        """Add an entry of another process that is over."""
        self._append(replace(entry, number=self.dropped + len(self.entries) + 1))
        self.commands += sum(entry.sent.values())
        self.bytes_out += entry.bytes_out
        self.bytes_in += entry.bytes_in
        self._finish(self.entries[-1])

    def _begin_lane(self, lane: LaneLog, name: str) -> str:
        """Return the name of a lane that begins to send, with a number."""
        self._lanes[lane] = None
        self._opened[name] = self._opened.get(name, 0) + 1
        return f"{name} {self._opened[name]}"

    def _add(self, connection: str, purpose: Purpose, sent: dict[str, int], request: bytes) -> LogEntry:
        number = self.dropped + len(self.entries) + 1
        entry = LogEntry(number, time.time(), connection, purpose, sent, request, sent_s=time.monotonic())
        self._append(entry)
        return entry

    def _append(self, entry: LogEntry) -> None:
        self.entries.append(entry)
        self._kept_bytes += ENTRY_BYTES + len(entry.request)
        while len(self.entries) > self._most_entries or self._kept_bytes > self._most_bytes:
            self._kept_bytes -= ENTRY_BYTES + len(self.entries.popleft().request)
            self.dropped += 1

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
    """The log of one lane, in the order in which bytes leave and arrive."""

    _log: CommandLog
    _kind: str
    is_bulk: bool = False
    counts: SentCounts = field(default_factory=SentCounts)
    _name: str = ""
    _sizes: ReplySizes | None = field(default_factory=ReplySizes)
    """Measures the replies to single commands; None while they are summed up."""
    _owed: deque[_Owed] = field(default_factory=deque)
    _sum: LogEntry | None = None
    _counted_in: int = 0
    """The bytes that had arrived at the lane when they were last counted."""
    _timer: asyncio.TimerHandle | None = None

    @property
    def on_replies(self) -> Sequence[RepliesReport]:
        return self._log.on_replies

    def ready(self, bytes_in: int) -> None:
        """Sum up from now on if the lane is for bulk work; `bytes_in` have arrived at it so far."""
        if self.is_bulk:
            self._sizes, self._counted_in = None, bytes_in

    def sent(self, commands: Sequence[Command], purpose: Purpose) -> None:
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
        """Measure the replies in received bytes, the first ones of a buffer."""
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
        """Log the traffic of the compiled engine in a slice; `bytes_in` as for `answered`."""
        if counts:
            entry = self._sum_for(current_purpose())
            for name, count in counts.items():
                entry.sent[name] = entry.sent.get(name, 0) + count
                self.counts.add(name, count)
            self._count(entry, sum(counts.values()), bytes_out)
        self._take_replies(replies, bytes_in)

    def ended(self) -> None:
        """End all entries: the connection has ended, and missing replies will not come."""
        self._end_sum()
        while self._owed:
            self._log._finish(self._owed.popleft().entry)
        self._log._lanes.pop(self, None)

    def _begin(self, purpose: Purpose, sent: dict[str, int], request: bytes) -> LogEntry:
        if not self._name:
            self._name = self._log._begin_lane(self, self._kind)
        return self._log._add(self._name, purpose, sent, request)

    def _count(self, entry: LogEntry, replies: int, bytes_out: int) -> None:
        """Count replies and bytes for an entry, which has its commands already."""
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
        entry = self._sum
        if entry is None or entry.purpose is not purpose:
            self._end_sum()
            entry = self._sum = self._begin(purpose, {}, b"")
            entry.is_sum = True
            self._timer = asyncio.get_running_loop().call_later(BATCH_S, self._end_sum)
        return entry

    def _end_sum(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        entry, self._sum = self._sum, None
        if entry is not None and not entry.owed:
            self._log._finish(entry)

    def _take_replies(self, replies: int, bytes_in: int) -> None:
        """Count replies to sums, oldest first; all bytes since the last call are theirs."""
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
