"""Which keys and slots are hot: by what the server measures, by counters of the keys, and by CLUSTER SLOT-STATS."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from rtui.analysis.facts import IdleBasis, LfuSettings
from rtui.analysis.report.document import HotReport, HotSource, SlotLoad, Summary
from rtui.keyspace.slots import SLOTS
from rtui.server import guard
from rtui.server.facts.key_facts import REPLICA_NOTE
from rtui.server.guard.table import MAX_SLOTS
from rtui.server.hot.counters import Source, counted_source, lfu_settings
from rtui.server.hot.hotkeys import server_source
from rtui.server.wire.capability import Capabilities, Querier
from rtui.server.wire.connection import Connection
from rtui.server.wire.replies import Reply, ServerError

_METRICS: Final = frozenset((b"key-count", b"cpu-usec", b"memory-bytes", b"network-bytes-in", b"network-bytes-out"))
"""What a node may count of a slot, as it names it."""

KEYS_ONLY: Final = (
    "This node counts only the keys of its slots; its setting cluster-slot-stats-enabled adds time and traffic."
)
"""Why there is no CPU time by slot."""


async def slot_loads(querier: Querier) -> tuple[tuple[SlotLoad, ...], tuple[str, ...]]:
    """Ask for the most loaded slots, and say what is missing; nothing outside a cluster. Raises ConnectionLost."""
    if not querier.connection.server.cluster_enabled:
        return (), ()
    (reply,) = await querier.run(guard.slot_stats("cpu-usec", limit=MAX_SLOTS))
    if not isinstance(reply, ServerError):
        return parse_slots(reply), ()
    (reply,) = await querier.run(guard.slot_stats("key-count", limit=MAX_SLOTS))
    if not isinstance(reply, ServerError):
        return parse_slots(reply), (KEYS_ONLY,)
    return (), (f"What this node counts of its slots could not be had: {reply}.",)


def parse_slots(reply: Reply) -> tuple[SlotLoad, ...]:
    """Read slots with their counters, without those that have no load or another shape."""
    loads = []
    for row in reply[:MAX_SLOTS] if isinstance(reply, list) else []:
        match row:
            case [int(slot), list(flat)] if 0 <= slot < SLOTS:
                values = {
                    name.decode(): value
                    for name, value in zip(flat[::2], flat[1::2], strict=False)
                    if isinstance(name, bytes) and name in _METRICS and isinstance(value, int) and value >= 0
                }
                if any(values.values()):
                    loads.append(SlotLoad(slot, values))
    return tuple(loads)


async def hot_report(
    connection: Connection,
    capabilities: Capabilities,
    summary: Summary,
    *,
    lfu: LfuSettings,
    is_lfu_policy: bool | None,
    now_s: float,
    looked_since_s: float | None = None,
) -> HotReport:
    """Ask the server for what it knows, and add what the inspected keys say themselves.

    The lists of the best source come first, those of the other after them. `now_s` and `looked_since_s`, when the
    inspection began, are seconds since the epoch; without the latter it is when the first of the hottest keys was
    asked. Raises ConnectionLost.
    """
    querier = Querier(connection, capabilities)
    server = connection.server
    basis = IdleBasis.WRITE if "lrm" in (server.maxmemory_policy or "") else IdleBasis.ACCESS
    if looked_since_s is None:
        looked_since_s = min((record.asked_at_s for record in summary.hottest), default=None)
    measured = await server_source(querier, now_s=now_s, looked_since_s=looked_since_s)
    counted = counted_source(
        summary,
        capabilities,
        lfu=lfu,
        is_lfu_policy=is_lfu_policy,
        basis=basis,
        now_s=now_s,
        own_reads=connection.own_reads if querier.touches else None,
    )
    slots, missing = await slot_loads(querier)
    best = next(
        (source for source in (measured, counted) if source.lists), Source(about="nothing tells which keys are hot")
    )
    return HotReport(
        source=best.kind,
        about=f"{best.about}; {REPLICA_NOTE}" if best is counted and server.role == "replica" else best.about,
        age_s=best.age_s,
        better=(*measured.better, *counted.better, *missing),
        lists=(*measured.lists, *counted.lists),
        slots=slots,
        lfu=lfu if is_lfu_policy or counted.kind is HotSource.FREQUENCY else None,
        idle_basis=basis,
    )


HOT_EVERY_S: Final = 5.0
"""How often the server is asked while an analysis runs."""


class HotKeyReporter:
    """Keeps the latest report of hot keys of one analysis."""

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

    async def read_lfu_settings(self) -> None:
        """Read how access counters grow and fall; raises ConnectionLost."""
        self._lfu = await lfu_settings(self._connection, self._capabilities)

    async def refresh(self, summary: Summary, *, at_last: bool = False) -> None:
        """Ask for the report, unless that was done just now and this is not the last time; raises ConnectionLost."""
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
