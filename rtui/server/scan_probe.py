"""Small looks beside a scan: how many keys there are, how long an idle round trip takes, and what our commands cost."""

from __future__ import annotations

from typing import Final

from rtui.server import guard
from rtui.server.errors import ServerError
from rtui.server.guard import Command
from rtui.server.progress import ScanNote
from rtui.server.reply import Reply
from rtui.server.scan_page import key_count
from rtui.server.server_clock import ServerClock

PROBE_EVERY_S: Final = 2.0
"""How often the server is looked at."""

FIRST_PROBES_S: Final = (0.1, 0.3)
"""Pauses between the first looks, which say how large a SCAN may be on this server."""


COMMAND_US: Final = 0.3
"""Reading and answering a command in a pipeline, which the server does not count as the command's time: five commands a
key took 2.7–3.2 µs of processor, of which the statistics told 0.6–1.5."""


class ScanProbe:
    """What the looks have told of one node; what is refused once is not asked again."""

    def __init__(self, clock: ServerClock, now: float) -> None:
        """`now` and all other times are seconds of one monotonic clock."""
        self.clock = clock
        self.size: int | None = None
        """Keys of the database by DBSIZE, if it tells."""
        self._largest_size = 0
        self._due_at = now
        self._looks = 0
        self._asks_size = self._asks_clock = True
        self._calls_since = 0
        self._keys_since = 0
        self._around_us = 0.0
        self._estimated_us = 0.0

    @property
    def server_us(self) -> float:
        """The server's time for our commands: what it told, what lies around it, and an estimate of what came after."""
        return self.clock.us + self._around_us + self._estimated_us

    def reset(self) -> None:
        """Forget the sizes: another keyspace may be there."""
        self.size = None
        self._largest_size = 0

    def hurry(self, now: float) -> None:
        """Look again as soon as possible."""
        self._due_at = now

    def is_due(self, now: float) -> bool:
        """Whether it is time for another look."""
        return now >= self._due_at

    def look(self, now: float) -> tuple[Command, Command | None]:
        """The command whose round trip is an idle one, and the one that asks for the server's clock, if it tells."""
        self._due_at = now + (FIRST_PROBES_S[self._looks] if self._looks < len(FIRST_PROBES_S) else PROBE_EVERY_S)
        self._looks += 1
        size = guard.dbsize() if self._asks_size else guard.ping()
        return size, guard.info("commandstats") if self._asks_clock else None

    def spent(self, commands: int, keys: int, estimated_us: float) -> None:
        """Book commands that were answered since the last look, for so many keys."""
        self._calls_since += commands
        self._keys_since += keys
        self._estimated_us += estimated_us

    def size_said(self, reply: Reply, *, has_keys: bool) -> ScanNote | None:
        """Take up a reply to DBSIZE or PING; return what a reader should know of it."""
        if isinstance(reply, ServerError):
            self._asks_size = False
        size = key_count(reply)
        if size is None:
            return None
        self.size = size
        self._largest_size = max(self._largest_size, size)
        if has_keys and size == 0:
            return ScanNote.EMPTIED
        return ScanNote.SHRANK if size * 2 < self._largest_size else None

    def clock_said(self, reply: Reply) -> float | None:
        """Take up a reply to INFO; return what a key has cost since the last one, in µs, None where nobody knows."""
        if not isinstance(reply, bytes):
            self._asks_clock = False
            return None
        spent_us = self.clock.said(reply, self._calls_since)
        calls, keys = self._calls_since, self._keys_since
        self._calls_since = self._keys_since = 0
        if spent_us is None:
            return None
        self._estimated_us = 0.0
        around_us = COMMAND_US * calls
        self._around_us += around_us
        return (spent_us + around_us) / keys if keys else None
