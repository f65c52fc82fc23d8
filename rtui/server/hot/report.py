"""The hottest keys by the best source there is, and what a better one would take."""

from __future__ import annotations

from rtui.analysis.facts import IdleBasis, LfuSettings
from rtui.analysis.report import HotReport, HotSource, Summary
from rtui.server.asking import Asking, Reads
from rtui.server.capability import Capabilities
from rtui.server.hot.counted_source import counted_source
from rtui.server.hot.server_source import server_source
from rtui.server.hot.slot_loads import slot_loads
from rtui.server.hot.source import Source
from rtui.server.inspect import REPLICA_NOTE


async def hot_report(
    connection: Reads,
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
    asking = Asking(connection, capabilities)
    server = connection.server
    basis = IdleBasis.WRITE if "lrm" in (server.maxmemory_policy or "") else IdleBasis.ACCESS
    if looked_since_s is None:
        looked_since_s = min((record.asked_at_s for record in summary.hottest), default=None)
    told = await server_source(asking, now_s=now_s, looked_since_s=looked_since_s)
    counted = counted_source(
        summary,
        capabilities,
        lfu=lfu,
        is_lfu_policy=is_lfu_policy,
        basis=basis,
        now_s=now_s,
        own_reads=connection.own_reads if asking.touches else None,
    )
    slots, missing = await slot_loads(asking)
    best = next(
        (source for source in (told, counted) if source.lists), Source(about="nothing tells which keys are hot")
    )
    return HotReport(
        source=best.kind,
        about=f"{best.about}; {REPLICA_NOTE}" if best is counted and server.role == "replica" else best.about,
        age_s=best.age_s,
        better=(*told.better, *counted.better, *missing),
        lists=(*told.lists, *counted.lists),
        slots=slots,
        lfu=lfu if is_lfu_policy or counted.kind is HotSource.FREQUENCY else None,
        idle_basis=basis,
    )
