"""The hot keys of a server, asked for again and again while a pass runs, but not too often."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from rtui.analysis.facts import LfuSettings
from rtui.analysis.report import HotReport, Summary
from rtui.server.capability import Capabilities
from rtui.server.connection import Connection
from rtui.server.hot.report import hot_report
from rtui.server.lfu_settings import lfu_settings

HOT_EVERY_S: Final = 5.0
"""How often the server is asked while a pass runs."""


class HotWatch:
    """Keeps the latest of what the server and the inspected keys say of hot keys."""

    def __init__(self, connection: Connection, capabilities: Capabilities) -> None:
        """The inspection of keys begins now."""
        self.report = HotReport()
        self._connection = connection
        self._capabilities = capabilities
        self._lfu = LfuSettings()
        self._looked_since_s = time.time()
        self._asked_at = float("-inf")
        self.asked_at_s: float | None = None
        """When the report was asked for, in seconds since the epoch; None before that."""

    async def learn(self) -> None:
        """Read how access counters grow and fall; raises ConnectionLost."""
        self._lfu = await lfu_settings(self._connection, self._capabilities)

    async def ask(self, summary: Summary, *, at_last: bool = False) -> None:
        """Ask, unless that was done just now and this is not the last time; raises ConnectionLost."""
        now = asyncio.get_running_loop().time()
        is_due = at_last or now - self._asked_at >= HOT_EVERY_S
        if not (is_due and self._connection.is_online):
            return
        self._asked_at, now_s = now, time.time()
        self.report = await hot_report(
            self._connection,
            self._capabilities,
            summary,
            lfu=self._lfu,
            is_lfu_policy=self._connection.server.is_lfu,
            now_s=now_s,
            looked_since_s=self._looked_since_s,
        )
        self.asked_at_s = now_s
