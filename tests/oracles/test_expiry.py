"""Coming expiries of a report, beside the moments that were planted."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from itertools import chain
from random import Random

from rtui.analysis.report.document import Report
from rtui.analysis.report.members import MINUTE_S, Cliff
from tests.oracles.counted import report_on
from tests.server.targets import target_of
from tests.servers import Server

HOUR_MIN = 60
DAY_MIN = 24 * HOUR_MIN

NAMESPACES = 12
"""With even expiries in one pass; each gets a timeline."""

PASSES = 8


def planted(server: Server, lives_min: Mapping[bytes, Iterable[float]]) -> dict[bytes, list[float]]:
    """Write keys below these names that live so many minutes; returns when they expire, in seconds since the epoch.

    No moment is near the border of a minute: the pass knows the server's moments to some milliseconds only.
    """
    this_minute = time.time() // MINUTE_S
    moments: dict[bytes, list[float]] = {}
    pipeline = server.client().pipeline(transaction=False)
    for name, lives in lives_min.items():
        moments[name] = [(this_minute + int(life) + 0.5) * MINUTE_S for life in lives]
        for number, moment in enumerate(moments[name]):
            pipeline.set(b"%b:%d" % (name, number), b"v")
            pipeline.pexpireat(b"%b:%d" % (name, number), int(moment * 1000))
    pipeline.execute()
    return moments


async def test_timelines_hold_what_was_planted(server: Server) -> None:
    random = Random(server.version[0])
    spreads = {
        b"soon": [random.uniform(2, HOUR_MIN) for _ in range(300)],
        b"later": [random.uniform(2, 30 * DAY_MIN) for _ in range(300)],
        b"any": [2 + 10 ** random.uniform(0, 6) for _ in range(300)],
    }
    moments = planted(server, spreads)
    server.client().mset({b"stays:%d" % number: b"v" for number in range(100)})
    report = await report_on(target_of(server))
    whole, *each = report.summary.expiry.timelines
    assert whole.path == ()
    assert {one.path[0] for one in each} >= moments.keys()
    all_moments = [*chain.from_iterable(moments.values())]
    for one in (whole, *each):
        mine = moments[one.path[0]] if one.path else all_moments
        assert sum(part.keys for part in one.bins if isinstance(part.keys, int)) == len(mine)
        for part in one.bins:
            assert part.keys == sum(part.start_s <= moment < part.start_s + part.width_s for moment in mine)
            assert part.width_s <= max(MINUTE_S, (part.start_s - report.head.made_at_s) / 32)
    soonest = report.summary.root.stats.soonest_expiry_s
    assert soonest is not None
    assert abs(soonest - min(all_moments)) < 1


async def test_planted_cliffs_are_found_and_nothing_else(server: Server) -> None:
    random = Random(server.version[1])
    cliff_min, lasts_min = 95, 3
    spreads = {
        b"sess": [
            *(random.uniform(2, 6 * HOUR_MIN) for _ in range(900)),
            *(random.uniform(cliff_min, cliff_min + lasts_min) for _ in range(600)),
        ],
        b"even": [random.uniform(2, DAY_MIN) for _ in range(900)],
    }
    moments = planted(server, spreads)
    report = await report_on(target_of(server))
    (cliff,) = report.summary.expiry.cliffs
    assert (cliff.path, cliff.label) == ((b"sess",), "sess:")
    begins = min(sorted(moments[b"sess"][900:]))
    assert begins - 3 * MINUTE_S <= cliff.start_s <= begins
    assert begins + (lasts_min - 1) * MINUTE_S <= cliff.end_s <= begins + (lasts_min + 3) * MINUTE_S
    assert cliff.keys == sum(cliff.start_s <= moment < cliff.end_s for moment in moments[b"sess"])
    assert cliff.share == cliff.keys / 1_500
    assert cliff.memory_bytes == sum_of_memory(server, moments[b"sess"], cliff)


def sum_of_memory(server: Server, moments: list[float], cliff: Cliff) -> int:
    """Bytes of the keys that expire within a cliff."""
    pipeline = server.client().pipeline(transaction=False)
    for number, moment in enumerate(moments):
        if cliff.start_s <= moment < cliff.end_s:
            pipeline.memory_usage(b"sess:%d" % number)
    return sum(pipeline.execute())


async def test_even_expiries_raise_alarms_at_the_stated_rate_at_most(valkey: Server) -> None:
    """Timelines of many spans and sizes over several passes; a rate that is true exceeds this once in 5,000 runs."""
    alarms: list[Cliff] = []
    stated = 0.0
    for seed in range(PASSES):
        valkey.client().flushall()
        report = await even_pass(valkey, Random(seed))
        assert len(report.summary.expiry.timelines) > NAMESPACES / 2
        stated += report.summary.expiry.false_alarms
        alarms += report.summary.expiry.cliffs
    assert 0.2 < stated < 1.3
    assert len(alarms) <= 5, alarms


async def even_pass(server: Server, random: Random) -> Report:
    """Plant namespaces whose keys expire evenly over some time, from an hour to two months, and look."""
    spans_min = [HOUR_MIN * 1500 ** random.random() for _ in range(NAMESPACES)]
    spreads = {
        b"even%s" % (b"abcdefghijklmnopqrstuvwxyz"[number : number + 1]): [
            random.uniform(2, span) for _ in range(random.randrange(30, 300))
        ]
        for number, span in enumerate(spans_min)
    }
    planted(server, spreads)
    return await report_on(target_of(server))
