"""Server time of our commands, by the server's own statistics (INFO commandstats).

ServerClock reads the statistics, ScanProbe asks for them now and then during a scan, and CostWatch stops queries of
unknown cost once they have proved costly.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from rtui.server import guard
from rtui.server.guard.command import Command
from rtui.server.guard.evidence import most_watched
from rtui.server.scan.pace import Pacer
from rtui.server.scan.page import key_count
from rtui.server.scan.progress import ScanNote
from rtui.server.wire.errors import Reply, ServerError


class ServerClock:
    """Adds up the time of some commands from `INFO commandstats`, whose counters cover all clients since their reset.

    Commands are named as the server names them there, in lower case: `scan`, `memory|usage`. A server before 7.0 counts
    subcommands under their container; each container's line is read as well.
    """

    def __init__(self, names: Collection[str] = ("scan",)) -> None:
        self.us = 0.0
        """Server time of our commands as far as it is known, in µs."""
        self.is_known = False
        forms = dict.fromkeys(form.encode() for name in names for form in (name, name.split("|", 1)[0]))
        self._line = re.compile(
            rb"^cmdstat_(?:%b):calls=([0-9]{1,19}),usec=([0-9]{1,19})," % b"|".join(map(re.escape, forms)), re.MULTILINE
        )
        self._calls: int | None = None
        self._us = 0

    def restart(self) -> None:
        self._calls = None

    def observe(self, info: bytes, our_calls: int) -> float | None:
        """Read a reply; return the server time in µs of `our_calls` since the one before, None for the first.

        When other clients send the same commands, the time is shared by the number of calls.
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
        self.is_known = True
        return ours


PROBE_EVERY_S: Final = 2.0

FIRST_PROBES_S: Final = (0.1, 0.3)
"""Pauses between the first probes, from which the first COUNTs are chosen."""

COMMAND_US: Final = 0.3
"""Reading and answering a command in a pipeline, which the server does not count as the command's time: five commands a
key took 2.7–3.2 µs of processor, of which the statistics count 0.6–1.5."""


class ScanProbe:
    """Asks a node for its size and its statistics while it is scanned; a refused command is not asked again."""

    def __init__(self, clock: ServerClock, now: float) -> None:
        """`now` and all other times are seconds of one monotonic clock."""
        self.clock = clock
        self.size: int | None = None
        """Keys of the database by DBSIZE, None where that is refused."""
        self.due_at = now
        self._largest_size = 0
        self._probes = 0
        self._asks_size = self._asks_clock = True
        self._calls_since = 0
        self._keys_since = 0
        self._around_us = 0.0
        self._estimated_us = 0.0

    @property
    def server_us(self) -> float:
        """The server's time for our commands, reading and answering included; the latest part is estimated."""
        return self.clock.us + self._around_us + self._estimated_us

    def reset(self) -> None:
        """Forget the sizes: another keyspace may be there."""
        self.size = None
        self._largest_size = 0

    def commands(self, now: float) -> tuple[Command, Command | None]:
        """The command whose round trip is an idle one, and INFO commandstats unless it is refused."""
        self.due_at = now + (FIRST_PROBES_S[self._probes] if self._probes < len(FIRST_PROBES_S) else PROBE_EVERY_S)
        self._probes += 1
        size = guard.dbsize() if self._asks_size else guard.ping()
        return size, guard.info("commandstats") if self._asks_clock else None

    def add_spent(self, commands: int, keys: int, estimated_us: float) -> None:
        """Count `commands` about `keys` keys, answered since the last probe, and their estimated server time in µs."""
        self._calls_since += commands
        self._keys_since += keys
        self._estimated_us += estimated_us

    def observe_size(self, reply: Reply, *, has_keys: bool) -> ScanNote | None:
        """Read a reply to DBSIZE or PING; return a note for the reader, or None."""
        if isinstance(reply, ServerError):
            self._asks_size = False
        size = key_count(reply)
        if size is None:
            return None
        if has_keys and size == 0:
            if not self._largest_size:  # a server that counts its keys only now and then
                return None
            self.size = size
            return ScanNote.EMPTIED
        self.size = size
        self._largest_size = max(self._largest_size, size)
        return ScanNote.SHRANK if size * 2 < self._largest_size else None

    def observe_clock(self, reply: Reply, pacer: Pacer) -> None:
        """Read a reply to INFO; tell the pacer the server time of a key since the last one, if it is known."""
        if not isinstance(reply, bytes):
            self._asks_clock = False
            return
        spent_us = self.clock.observe(reply, self._calls_since)
        calls, keys = self._calls_since, self._keys_since
        self._calls_since = self._keys_since = 0
        if spent_us is None:
            return
        self._estimated_us = 0.0
        around_us = COMMAND_US * calls
        self._around_us += around_us
        if keys:
            pacer.observe_key_us((spent_us + around_us) / keys)


CHEAP_S: Final = 0.0005
"""A write that takes the server less than this was cheap: twice as many questions go into the next."""

COSTLY_S: Final = 0.002
"""A single question that takes longer than this counts against all others of its type."""

MAX_COSTLY: Final = 3
"""Costly queries after which no more are sent."""


class CostWatch:
    """Decides how many MEMORY USAGE may go into one write if their cost has no bound, by the time of the last ones."""

    def __init__(self) -> None:
        self.proved = 0
        """Questions of one write that was cheap, since the last one that was not."""
        self.asks_clock = True
        """Whether the server is asked for its own time, so that a slow link is not taken for a costly question."""
        self.was_slow = False
        """Whether a round trip took so long that the server's own time is to be asked next time."""
        self._costly = 0

    @property
    def most(self) -> int:
        return most_watched(self.proved)

    @property
    def is_over(self) -> bool:
        return self._costly >= MAX_COSTLY

    def server_s(self, before: Reply, after: Reply, asked: int) -> float | None:
        """Return the server time of `asked` queries in seconds, by the statistics before and after; None if unknown."""
        if not (isinstance(before, bytes) and isinstance(after, bytes)):
            self.asks_clock = False
            return None
        clock = ServerClock(("memory|usage",))
        clock.observe(before, 0)
        spent_us = clock.observe(after, asked)
        return spent_us / 1e6 if spent_us else None

    def observe(self, asked: int, seconds: float | None) -> None:
        """Learn the server time of `asked` queries; None if it was not measured."""
        if seconds is None:
            return
        if seconds < CHEAP_S:
            self.proved = max(self.proved, asked)
            return
        self.proved = 0
        if asked == 1 and seconds > COSTLY_S:
            self._costly += 1

    def observe_round_trip(self, seconds: float) -> None:
        """Learn how much longer than others a round trip with one question took.

        A slow one counts only where the server does not tell its own time; else that is asked for from now on.
        """
        if not self.asks_clock:
            self.observe(1, max(0.0, seconds))
        elif seconds > COSTLY_S:
            self.was_slow = True
