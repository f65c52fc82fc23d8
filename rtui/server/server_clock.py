"""What a server itself says about the time that our commands took it."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

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
