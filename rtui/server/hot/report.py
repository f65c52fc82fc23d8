"""Hot keys and slots: by the server's measurements, by the keys' counters, and by CLUSTER SLOT-STATS.

Under an LFU policy `OBJECT FREQ` returns a logarithmic counter, from which `lfu-log-factor` and `lfu-decay-time` give
accesses per minute. Under other policies keys are ranked by the time since their last use, in whole seconds.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from functools import partial
from typing import Final

from msgspec import structs

from rtui.analysis.facts import Frequency, IdleBasis, LfuSettings
from rtui.analysis.report.document import HotKey, HotList, HotReport, HotSource, KeyRecord, NodeLoad, SlotLoad, Summary
from rtui.keyspace.slots import SLOTS
from rtui.keyspace.text.display import display_text
from rtui.server import guard
from rtui.server.facts.first_answers import REPLICA_NOTE
from rtui.server.guard.closed_list import MAX_SLOTS
from rtui.server.hot.hotkeys import MAX_LISTED_KEYS, server_source
from rtui.server.wire.capability import Capabilities, Feature, Querier
from rtui.server.wire.command_log import Purpose, for_purpose
from rtui.server.wire.connection import Connection
from rtui.server.wire.errors import Reply, ServerError
from rtui.server.wire.own_reads import OwnReads
from rtui.server.wire.supervised_tasks import for_each

NO_RATE: Final = "lfu-decay-time is 0: access counters never decrease, so they show no current rate."
ASSUMED: Final = "Rates assume the defaults of lfu-log-factor and lfu-decay-time, which could not be read."


READS_COUNT: Final = (
    "Reading a key counts as a use here, since the server has no CLIENT NO-TOUCH or denies it: "
    "what an earlier session of rtui showed, or an earlier report listed as largest, may be here for that alone."
)


def counted_source(
    summary: Summary,
    capabilities: Capabilities,
    *,
    lfu: LfuSettings,
    is_lfu_policy: bool | None,
    basis: IdleBasis,
    now_s: float,
    own_reads: OwnReads | None = None,
) -> HotReport:
    """Rank the hottest inspected keys by frequency, else by idle time.

    `own_reads` is rtui's own reads where they count as a use, None where they don't.
    """
    if basis is IdleBasis.WRITE:
        own_reads = None
    counted = [record for record in summary.hottest if record.frequency is not None]
    used = [record for record in summary.hottest if record.idle_s is not None]
    if counted and is_lfu_policy is not False:
        source = _by_frequency(counted, lfu)
    elif used:
        source = _by_idle(used, basis, OwnReads() if own_reads is None else own_reads)
    else:
        refused = [
            f"{feature} can't be used: {capabilities[feature].reason}."
            for feature in (Feature.OBJECT_FREQ, Feature.OBJECT_IDLETIME)
            if not capabilities.allows(feature)
        ]
        return HotReport(better=tuple(refused) or ("No key with a known frequency or idle time.",))
    if own_reads is not None:
        source = structs.replace(source, better=(*source.better, READS_COUNT))
    asked_at_s = min(record.asked_at_s for record in summary.hottest)
    return structs.replace(source, age_s=max(0.0, now_s - asked_at_s) if asked_at_s else None)


def _by_frequency(records: Sequence[KeyRecord], lfu: LfuSettings) -> HotReport:
    keys = []
    for record in records:
        frequency = Frequency(record.frequency or 0, lfu)
        rate = frequency.per_minute
        keys.append(HotKey(record, float(frequency.counter if rate is None else rate), frequency.is_saturated))
    keys.sort(key=lambda hot: (-hot.value, hot.record.key))
    if lfu.decay_minutes <= 0:
        counters = (HotList("Access counter", "LFU counter", tuple(keys)),)
        about = "the access counter of each key, 0 to 255"
        return HotReport(HotSource.FREQUENCY, about, better=(NO_RATE,), lists=counters)
    about = "estimated accesses per minute (from the LFU counter)"
    if any(hot.at_least for hot in keys):
        about += "; keys at the maximum of the counter are not ranked"
    lists = (HotList("Accesses", "accesses/min", tuple(keys)),)
    return HotReport(HotSource.FREQUENCY, about, better=(ASSUMED,) if lfu.assumed else (), lists=lists)


def _by_idle(records: Sequence[KeyRecord], basis: IdleBasis, own_reads: OwnReads) -> HotReport:
    by_others = [one for one in records if not own_reads.idle(one.key, one.idle_s or 0, one.asked_at_s).is_own_read]
    keys = sorted(
        (HotKey(record, float(record.idle_s or 0)) for record in by_others), key=lambda hot: (hot.value, hot.record.key)
    )
    left_out = len(records) - len(keys)
    use = "write" if basis is IdleBasis.WRITE else "use"
    about = f"idle time in seconds (last {use}); constantly used keys all show 0"
    better = "The server keeps no access counters; an LFU maxmemory-policy such as allkeys-lfu ranks keys by use."
    own = (f"{left_out:,} keys are excluded: last accessed by rtui itself.",) if left_out else ()
    own = ("1 key is excluded: last accessed by rtui itself.",) if left_out == 1 else own
    lists = (HotList("Last use", "seconds idle", tuple(keys)),)
    return HotReport(HotSource.IDLE, about, better=(*own, better), lists=lists)


_METRICS: Final = frozenset((b"key-count", b"cpu-usec", b"memory-bytes", b"network-bytes-in", b"network-bytes-out"))
"""The counters that a node may report of a slot."""

KEYS_ONLY: Final = "This node counts only keys per slot; cluster-slot-stats-enabled adds CPU time and traffic."


async def slot_loads(querier: Querier) -> tuple[tuple[SlotLoad, ...], tuple[str, ...]]:
    """Return the most loaded slots, and sentences about missing counters; empty outside a cluster. Raises
    ConnectionLost."""
    if not querier.connection.server.cluster_enabled:
        return (), ()
    (reply,) = await querier.run(guard.slot_stats("cpu-usec", limit=MAX_SLOTS))
    if not isinstance(reply, ServerError):
        return parse_slot_loads(reply), ()
    (reply,) = await querier.run(guard.slot_stats("key-count", limit=MAX_SLOTS))
    if not isinstance(reply, ServerError):
        return parse_slot_loads(reply), (KEYS_ONLY,)
    return (), (f"CLUSTER SLOT-STATS failed: {reply}.",)


def parse_slot_loads(reply: Reply) -> tuple[SlotLoad, ...]:
    """Read slots with their counters, leaving out slots without load or of another form."""
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
    now_s: float,
    looked_since_s: float | None,
    others: Sequence[Querier] = (),
    of_replicas: bool = False,
) -> HotReport:
    """Ask the server for its measurements, and add the counters of the inspected keys.

    Lists of the best source come first, those of the other after them. `now_s` and `looked_since_s`, when rtui began to
    read keys, are seconds since the epoch. `others` query the other nodes of a cluster, each for its own keys and
    slots. If the keys were inspected on replicas (`of_replicas`), their lists are labelled so. Raises ConnectionLost.
    """
    queriers = Querier(connection, capabilities), *others
    querier = queriers[0]
    server = connection.server
    is_of_replica = of_replicas or server.role == "replica"
    basis = IdleBasis.WRITE if "lrm" in (server.maxmemory_policy or "") else IdleBasis.ACCESS
    measured = _join_reports(
        await for_each(queriers, partial(server_source, now_s=now_s, looked_since_s=looked_since_s))
    )
    counted = counted_source(
        summary,
        capabilities,
        lfu=lfu,
        is_lfu_policy=server.is_lfu,
        basis=basis,
        now_s=now_s,
        own_reads=connection.own_reads if querier.touches else None,
    )
    loads = await for_each(queriers, slot_loads)
    missing = dict.fromkeys(text for _, texts in loads for text in texts)
    slots = tuple(load for of_node, _ in loads for load in of_node)
    nodes = [_node_load(one, of_node) for one, (of_node, _) in zip(queriers, loads, strict=True)]
    if others:
        slots = tuple(sorted(slots, key=_slot_order, reverse=True)[:MAX_SLOTS])
    nothing = HotReport(about="nothing tells which keys are hot")
    best = next((source for source in (measured, counted) if source.lists), nothing)
    return structs.replace(
        best,
        about=f"{best.about}; {REPLICA_NOTE}" if best is counted and is_of_replica else best.about,
        better=(*measured.better, *counted.better, *missing),
        lists=(*measured.lists, *counted.lists),
        slots=slots,
        nodes=tuple(node for node in nodes if node is not None),
        lfu=lfu if server.is_lfu or counted.source is HotSource.FREQUENCY else None,
        idle_basis=basis,
    )


def _node_load(querier: Querier, slots: Sequence[SlotLoad]) -> NodeLoad | None:
    """Return the sum of the times of a node's slots; None if it does not count time."""
    times = [load.values["cpu-usec"] for load in slots if "cpu-usec" in load.values]
    label = display_text(querier.connection.target.label)
    return NodeLoad(label, sum(times), len(slots) >= MAX_SLOTS) if times else None


def _join_reports(reports: Sequence[HotReport]) -> HotReport:
    """Join the measurements of a cluster's nodes: the lists have the keys of all nodes, hottest first."""
    first = next((report for report in reports if report.lists), reports[0])
    if len(reports) == 1:
        return first
    lists: dict[tuple[str, str], list[HotKey]] = {}
    for hot_list in (hot for report in reports for hot in report.lists):
        lists.setdefault((hot_list.title, hot_list.unit), []).extend(hot_list.keys)
    ranked = (
        HotList(*title, tuple(sorted(keys, key=lambda hot: (-hot.value, hot.record.key))[:MAX_LISTED_KEYS]))
        for title, keys in lists.items()
    )
    better = dict.fromkeys(text for report in reports for text in report.better)
    return structs.replace(first, better=tuple(better), lists=tuple(ranked))


def _slot_order(load: SlotLoad) -> tuple[int, int]:
    """Sort key of slots, as the server sorts them: by time if it is counted, else by keys."""
    return load.values.get("cpu-usec", 0), load.values.get("key-count", 0)


HOT_EVERY_S: Final = 5.0
"""The shortest time between two reports while an analysis runs."""


class HotKeyReporter:
    """Keeps the latest report of hot keys of one analysis."""

    def __init__(
        self,
        connection: Connection,
        capabilities: Capabilities,
        others: Sequence[tuple[Connection, Capabilities]] = (),
        *,
        of_replicas: bool = False,
    ) -> None:
        """The inspection of keys begins now; `others` are the other nodes of a cluster.

        `of_replicas` is whether keys are inspected on replicas while these connections lead to the primaries, which
        clients use.
        """
        self.lfu = LfuSettings()
        """The server's parameters of access counters."""
        self._others, self._of_replicas = others, of_replicas
        self.report = HotReport()
        self._connection = connection
        self._capabilities = capabilities
        self._looked_since_s = time.time()
        self._asked_at = float("-inf")
        self.asked_at_s: float | None = None
        """When the report was requested, in seconds since the epoch; None before that."""

    @for_purpose(Purpose.HOT)
    async def refresh(self, summary: Summary, *, at_last: bool = False) -> None:
        """Request the report unless it is recent and this is not the last time; raises ConnectionLost."""
        now = asyncio.get_running_loop().time()
        if not self._connection.is_online or not (at_last or now - self._asked_at >= HOT_EVERY_S):
            return
        self._asked_at, now_s = now, time.time()
        self.report = await hot_report(
            self._connection,
            self._capabilities,
            summary,
            lfu=self.lfu,
            now_s=now_s,
            looked_since_s=self._looked_since_s,
            others=[Querier(*other) for other in self._others if other[0].is_online],
            of_replicas=self._of_replicas,
        )
        self.asked_at_s = now_s
