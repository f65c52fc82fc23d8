"""What a server itself says about the time that our commands took it."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from rtui.server import guard
from rtui.server.guard import Command
from rtui.server.scan.page import key_count
from rtui.server.scan.progress import ScanNote
from rtui.server.wire.errors import ServerError
from rtui.server.wire.replies import Reply

SCAN: Final = ("scan",)
"""What a plain scan sends in numbers."""


class ServerClock:
    """Adds up the time of some commands from `INFO commandstats`, whose counters cover all clients since their reset.

    Commands are named as the server names them there, in lower case: `scan`, `memory|usage`. A server before 7.0 counts
    subcommands under their container; each container's line is read as well.
    """

    def __init__(self, names: Collection[str] = SCAN) -> None:
        self.us = 0.0
        """Server time of our commands as far as it has been told, in µs."""
        self.has_told = False
        """Whether any of it has been told."""
        wanted = dict.fromkeys(form for name in names for form in (name, name.split("|", 1)[0]))
        self._line = re.compile(
            rb"^cmdstat_(?:%b):calls=([0-9]{1,19}),usec=([0-9]{1,19})," % b"|".join(map(re.escape, _encoded(wanted))),
            re.MULTILINE,
        )
        self._calls: int | None = None
        self._us = 0

    def forget(self) -> None:
        """Begin a new stretch: what the counters say next is its start, for example after a new connection."""
        self._calls = None

    def said(self, info: bytes, our_calls: int) -> float | None:
        """Take up a reply; return the µs that `our_calls` since the one before took, None for the first.

        When others send them too, the time is shared by the number of calls.
        """
        found = self._line.findall(info)
        calls = sum(int(count) for count, _ in found)
        us = sum(int(spent) for _, spent in found)
        before, self._calls = self._calls, calls
        spent, self._us = us - self._us, us
        if before is None or calls < before or spent < 0:
            return None
        made = calls - before
        ours = spent * min(1.0, our_calls / made) if made else 0.0
        self.us += ours
        self.has_told = True
        return ours


def _encoded(names: Collection[str]) -> list[bytes]:
    return [name.encode() for name in names]


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
