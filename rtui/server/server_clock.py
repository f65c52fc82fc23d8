"""What a server itself says about the time its SCANs took."""

from __future__ import annotations

import re
from typing import Final

_SCAN_LINE: Final = re.compile(rb"^cmdstat_scan:calls=([0-9]{1,19}),usec=([0-9]{1,19}),", re.MULTILINE)


class ServerClock:
    """Adds up the time of our SCANs from `INFO commandstats`, whose counters cover all clients since the last reset."""

    def __init__(self) -> None:
        self.us = 0.0
        """Server time of our SCANs as far as it has been told, in µs."""
        self.has_told = False
        """Whether any of it has been told."""
        self._calls: int | None = None
        self._us = 0

    def forget(self) -> None:
        """Begin a new stretch: what the counters say next is its start, for example after a new connection."""
        self._calls = None

    def said(self, info: bytes, our_calls: int) -> float | None:
        """Take up a reply; return the µs that `our_calls` SCANs since the one before took, None for the first.

        When others scan too, the time is shared by the number of calls.
        """
        found = _SCAN_LINE.search(info)
        calls, us = (int(found[1]), int(found[2])) if found else (0, 0)
        before, self._calls = self._calls, calls
        spent, self._us = us - self._us, us
        if before is None or calls < before or spent < 0:
            return None
        made = calls - before
        ours = spent * min(1.0, our_calls / made) if made else 0.0
        self.us += ours
        self.has_told = True
        return ours
