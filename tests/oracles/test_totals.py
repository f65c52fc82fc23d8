"""Totals, expiries and the biggest keys, whatever happens on the way, beside brute-force counts and redis-cli."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from math import ceil
from random import Random
from typing import Any

import pytest
import redis

from rtui.analysis.columns import EVERYTHING
from rtui.analysis.report.document import ColumnState, CoverageKind, KeyRecord, Node, Quantiles, Report, Stats
from rtui.analysis.report.expiries import FALSE_ALARMS
from rtui.analysis.report.members import MINUTE_S, Cliff
from rtui.server.analysis.run import AnalysisRun
from rtui.server.guard.command import find_spec
from rtui.server.options import AnalysisOptions
from rtui.server.scan.pace import Pace
from tests.conftest import known
from tests.monitor import Recorder, escapes_quotes
from tests.oracles.counted import Fact, Total, by_namespace, by_type, facts, report_on, told
from tests.oracles.keyspaces import Path, Planted, grown
from tests.proxy import DelayProxy
from tests.server import every_type
from tests.server.guard.harmless import is_harmless
from tests.server.targets import connected, eventually, target_of
from tests.servers import Server
from tests.tui.tour import PLANTED_IDLE_S, minimal_user, plant_idle, usage

KEYS = 1_500


def zoo_path(key: bytes) -> Path:
    """Where one of the keys belongs that stand for every type: all are names."""
    *above, last = key.split(b":")
    return (*((name, b":") for name in above), (last, b""))


async def test_every_namespace_at_every_level_and_every_type(server: Server) -> None:
    client = server.client()
    paths = {key: one.path for key, one in grown(client, keys=KEYS, seed=server.version[0]).items()}
    paths |= {key: zoo_path(key) for key in every_type.fill(server, client) if key not in paths}
    for key in every_type.UNSTEADY_MEMORY & paths.keys():
        client.unlink(key)
    report = await report_on(target_of(server), columns=EVERYTHING)
    found = facts(client)
    coverage, summary = report.head.coverage, report.summary
    assert (coverage.kind, coverage.keys, coverage.vanished) == (CoverageKind.EXACT, len(found), 0)
    namespaces = by_namespace(found.values(), paths)
    nodes = {tuple((node.name, node.separator) for node in path[1:]): path[-1] for path in summary.root.walk()}
    assert nodes.keys() == namespaces.keys()
    for path, total in namespaces.items():
        agrees(nodes[path].stats, total, whole=namespaces[()])
    types = by_type(found.values())
    assert {one.name: one.stats.keys for one in summary.types} == {kind: one.keys for kind, one in types.items()}
    has_lengths = every_type.has_no_touch(server)
    assert (report.head.columns["length"].state is ColumnState.COMPLETE) is has_lengths
    for one in summary.types:
        agrees(one.stats, types[one.name], whole=namespaces[()])
        assert (one.length is not None) is has_lengths
        if one.length is not None:
            is_near(one.length, types[one.name].lengths)
    encodings = {(one.key_type, one.encoding): one.keys for one in summary.encodings}
    for pair, keys in encodings.items():
        assert keys == sum((one.kind, one.encoding) == pair for one in found.values())
    assert sum(one for one in encodings.values() if isinstance(one, int)) == len(found)


def agrees(stats: Stats, total: Total, *, whole: Total) -> None:
    """Hold the figures of a namespace or type against the count."""
    assert stats.keys == total.keys
    assert stats.memory_bytes == total.memory_bytes
    assert stats.memory_known_keys == total.keys
    assert stats.no_ttl_keys == total.no_ttl_keys
    assert stats.no_ttl_memory_bytes == total.no_ttl_memory_bytes
    assert stats.no_ttl_share == pytest.approx(total.no_ttl_keys / total.keys)
    assert stats.share_keys == pytest.approx(total.keys / whole.keys)
    assert stats.share_memory == pytest.approx(total.memory_bytes / whole.memory_bytes)
    assert stats.ttl is None or list(stats.ttl) == total.ttl
    assert stats.ttl is not None or not sum(total.ttl)
    assert dict(stats.types) == total.types
    assert sum(count for count in known(stats.idle) if isinstance(count, int)) == total.keys
    is_near(known(stats.memory), total.sizes)


def is_near(quantiles: Quantiles, sizes: list[int]) -> None:
    """Hold quantiles against the exact ones: within the error that they state, the largest and the mean without any."""
    ordered = sorted(sizes)
    assert quantiles.max == ordered[-1]
    assert quantiles.mean == pytest.approx(sum(sizes) / len(sizes))
    for share, said in ((0.5, quantiles.p50), (0.9, quantiles.p90), (0.99, quantiles.p99)):
        exact = ordered[ceil(share * len(ordered)) - 1]
        assert said == pytest.approx(exact, rel=quantiles.error), (share, ordered)


async def test_on_a_cluster_node(cluster_node: Server) -> None:
    client = cluster_node.client()
    keys = list(grown(client, keys=KEYS, seed=9))
    report = await report_on(target_of(cluster_node))
    pipeline = client.pipeline(transaction=False)
    for key in keys:
        pipeline.execute_command("CLUSTER", "KEYSLOT", key)
    slot_of = dict(zip(keys, pipeline.execute(), strict=True))
    slots = report.summary.slots
    assert {slot: count for slot, count in enumerate(slots.keys) if count} == Counter(slot_of.values())
    for slot in range(16384):
        pipeline.execute_command("CLUSTER", "COUNTKEYSINSLOT", slot)
    assert list(slots.keys) == pipeline.execute()
    assert slots.owned == ((0, 16383),)
    sizes: Counter[int] = Counter()
    for key, fact in facts(client).items():
        sizes[slot_of[key]] += fact.memory_bytes
    assert {slot: count for slot, count in enumerate(known(slots.memory_bytes)) if count} == sizes


HOUR_MIN = 60
DAY_MIN = 24 * HOUR_MIN


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
    assert abs(known(report.summary.root.stats.soonest_expiry_s) - min(all_moments)) < 1
    assert report.summary.expiry.false_alarms == FALSE_ALARMS * (1 + len(each))


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


RANKED_KEYS = 1_200

RANKS = 25


async def test_as_memkeys_and_bigkeys_find_them(server: Server) -> None:
    client = server.client()
    grown(client, keys=RANKED_KEYS, seed=server.version[1])
    report = await report_on(target_of(server), top=RANKS)
    by_memory, by_length = told(server, "--memkeys"), told(server, "--bigkeys")
    big, types = report.summary.big, {one.name: one for one in report.summary.types}
    assert report.head.coverage.keys == by_memory.keys == by_length.keys == RANKED_KEYS
    assert by_memory.biggest.keys() == types.keys()
    sizes = {kind: (one.stats.keys, one.stats.memory_bytes) for kind, one in types.items()}
    assert sizes == by_memory.totals
    for kind, (key, size) in by_memory.biggest.items():
        is_first(key, size, [(one.key, one.memory_bytes) for one in big.by_type_memory[kind]])
    assert big.by_memory[0].memory_bytes == max(size for _, size in by_memory.biggest.values())
    if not every_type.has_no_touch(server):
        return
    for kind, (key, size) in by_length.biggest.items():
        is_first(key, size, [(one.key, one.length) for one in big.by_type_length[kind]])
    for kind, (keys, total) in by_length.totals.items():
        length = known(types[kind].length)
        assert types[kind].stats.keys == keys
        assert length.mean == pytest.approx(total / keys)


def is_first(key: bytes, size: int, records: list[tuple[bytes, int | None]]) -> None:
    """Hold the head of a list against a key and its size; it may be any of those that are as large."""
    equals = [name for name, one in records if one == size]
    assert records[0][1] == size
    assert key in equals or len(equals) == RANKS


async def test_the_lists_are_the_head_of_all_keys_in_order(server: Server) -> None:
    client = server.client()
    grown(client, keys=RANKED_KEYS, seed=100 + server.version[1])
    report = await report_on(target_of(server), top=RANKS)
    found = facts(client)
    big = report.summary.big
    is_head(big.by_memory, found.values(), lambda fact: fact.memory_bytes, lambda record: record.memory_bytes)
    for kind, total in by_type(found.values()).items():
        ofs = [fact for fact in found.values() if fact.kind == kind]
        is_head(big.by_type_memory[kind], ofs, lambda fact: fact.memory_bytes, lambda record: record.memory_bytes)
        if every_type.has_no_touch(server) and total.lengths:
            is_head(big.by_type_length[kind], ofs, lambda fact: fact.length or 0, lambda record: record.length)
    if every_type.has_no_touch(server):
        elements = [fact for fact in found.values() if fact.kind != b"string"]
        is_head(big.by_length, elements, lambda fact: fact.length or 0, lambda record: record.length)
    records_are_true(report, found)


def is_head(
    records: tuple[KeyRecord, ...],
    found: Iterable[Fact],
    size: Callable[[Fact], int],
    said: Callable[[KeyRecord], int | None],
) -> None:
    """Hold a list against all keys in order of size; among equals any is as good as another, but none comes twice."""
    ordered = sorted(map(size, found), reverse=True)
    assert [said(record) for record in records] == ordered[:RANKS]
    assert len({record.key for record in records}) == len(records)


def records_are_true(report: Report, found: dict[bytes, Fact]) -> None:
    """Everything that a list says of a key is what the server says of it."""
    assert all(record.length is not None and record.encoding for record in report.summary.big.by_memory)
    big = report.summary.big
    for records in (big.by_memory, big.by_length, *big.by_type_memory.values(), *big.by_type_length.values()):
        for record in records:
            fact = found[record.key]
            assert (record.key_type, record.memory_bytes) == (fact.kind, fact.memory_bytes)
            assert record.length in (fact.length, None)
            assert record.encoding in (fact.encoding, None)
            assert (known(record.ttl_ms) < 0) is (fact.ttl_ms < 0)


async def test_as_hotkeys_finds_them(lfu_server: Server) -> None:
    client = lfu_server.client()
    client.config_set("lfu-decay-time", 0)
    random = Random(7)
    keys = list(grown(client, keys=400, seed=7))
    for key in keys:
        for _ in range(int(random.random() ** 4 * 120)):
            client.execute_command("TYPE" if random.random() < 0.1 else "TOUCH", key)
    report = await report_on(target_of(lfu_server), top=RANKS)
    hot = told(lfu_server, "--hotkeys").hot
    hottest = {record.key: record.frequency for record in report.summary.hottest}
    assert len(hot) == 16
    assert list(hottest.values())[:16] == [counter for _, counter in hot]
    least = hot[-1][1]
    assert {key for key, counter in hot if counter > least} <= hottest.keys()
    assert all(hottest.get(key, least) == counter for key, counter in hot)


MANY_KEYS = 1_500
SLOWLY_SEEN = 4 * MANY_KEYS
"""Enough for several counts on the way, at a gentle pace over a long link."""


def nodes_of(report: Report) -> dict[Path, Node]:
    return {tuple((node.name, node.separator) for node in path[1:]): path[-1] for path in report.summary.root.walk()}


def is_whole(server: Server, report: Report, planted: dict[bytes, Planted]) -> None:
    """Hold every sum against the count."""
    found = facts(server.client()).values()
    totals = by_namespace(found, {key: one.path for key, one in planted.items()})
    nodes = nodes_of(report)
    assert (report.head.coverage.kind, report.head.coverage.keys) == (CoverageKind.EXACT, MANY_KEYS)
    assert {path: (one.keys, one.memory_bytes, one.no_ttl_keys) for path, one in totals.items()} == {
        path: (one.stats.keys, one.stats.memory_bytes, one.stats.no_ttl_keys) for path, one in nodes.items()
    }
    types = {one.name: (one.stats.keys, one.stats.memory_bytes) for one in report.summary.types}
    assert types == {kind: (one.keys, one.memory_bytes) for kind, one in by_type(found).items()}
    assert sum(report.summary.slots.keys) == MANY_KEYS


async def test_paused_lost_and_with_a_budget_it_is_whole(server: Server) -> None:
    planted = grown(server.client(), keys=MANY_KEYS, seed=3)
    async with DelayProxy(server.port) as proxy, connected(target_of(server, port=proxy.port)) as connection:
        analysis = AnalysisRun(connection, AnalysisOptions(pace=Pace.FULL, budget_s=60))
        running = asyncio.create_task(analysis.run())
        await eventually(lambda: analysis.progress.keys >= 300)
        proxy.cut_after(10_000)
        await eventually(lambda: analysis.progress.keys >= MANY_KEYS // 2)
        analysis.control.pause()
        proxy.cut()
        analysis.control.resume()
        analysis.control.pace = Pace.NORMAL
        await running
        assert proxy.accepted > 3
    is_whole(server, known(analysis.report), planted)


async def test_a_summary_on_the_way_changes_nothing(valkey: Server) -> None:
    planted = grown(valkey.client(), keys=MANY_KEYS, seed=4)
    async with connected(target_of(valkey)) as connection:
        analysis = AnalysisRun(connection, AnalysisOptions(pace=Pace.GENTLE))
        running = asyncio.create_task(analysis.run())
        seen: list[Report] = []
        while not running.done():
            if analysis.report is not None and (not seen or analysis.report is not seen[-1]):
                seen.append(analysis.report)
                analysis.control.pace = Pace.NORMAL if len(seen) == 1 else Pace.FULL
            await asyncio.sleep(0)
    assert analysis.report is not None
    is_whole(valkey, analysis.report, planted)
    for early in seen[:-1]:
        is_part(early, analysis.report)


async def test_ended_early_it_says_so_and_no_figure_is_too_large(server: Server) -> None:
    grown(server.client(), keys=SLOWLY_SEEN, seed=5)
    async with (
        DelayProxy(server.port, 0.002, records=False) as proxy,
        connected(target_of(server, port=proxy.port)) as connection,
    ):
        analysis = AnalysisRun(connection, AnalysisOptions(pace=Pace.GENTLE))
        running = asyncio.create_task(analysis.run())
        await eventually(lambda: analysis.progress.keys >= MANY_KEYS // 3)
        analysis.control.stop()
        await running
    ended, whole = analysis.report, await report_on(target_of(server))
    assert ended is not None
    assert ended.head.coverage.kind is CoverageKind.PARTIAL
    assert ended.head.coverage.reason
    assert MANY_KEYS // 3 <= ended.head.coverage.keys < SLOWLY_SEEN
    is_part(ended, whole)


def is_part(part: Report, whole: Report) -> None:
    """Counts and sums of a part are at least so much, never more."""
    nodes = nodes_of(whole)
    assert part.summary.root.stats.keys == part.head.coverage.keys
    for path, node in nodes_of(part).items():
        stats, all_of = node.stats, nodes[path].stats
        assert isinstance(stats.keys, int)
        assert isinstance(all_of.keys, int)
        assert 0 < stats.keys <= all_of.keys
        for here, there in (
            (stats.memory_bytes, all_of.memory_bytes),
            (stats.no_ttl_keys, all_of.no_ttl_keys),
            (stats.no_ttl_memory_bytes, all_of.no_ttl_memory_bytes),
        ):
            assert isinstance(here, int)
            assert isinstance(there, int)
            assert here <= there


UNTOUCHED_KEYS = 600

TOP = 40


def dumps(client: redis.Redis) -> dict[bytes, bytes]:
    """The value of every key as the server writes it down. Asking counts as an access."""
    keys: Any = sorted(client.scan_iter(count=1_000))
    pipeline = client.pipeline(transaction=False)
    for key in keys:
        pipeline.dump(key)
    return dict(zip(keys, pipeline.execute(), strict=True))


def changes(server: Server) -> int:
    """How often the server's data has been written to."""
    info: Any = server.admin.info("persistence")
    changed: int = info["rdb_changes_since_last_save"]
    return changed


async def test_by_the_minimal_user(server: Server) -> None:
    grown(server.admin, keys=UNTOUCHED_KEYS, seed=11)
    every_type.fill(server, server.admin)
    plant_idle(server)
    user, password = minimal_user(server)
    server.admin.execute_command("ACL", "LOG", "RESET")
    written = changes(server)
    with Recorder(server) as recorder:
        async with DelayProxy(server.port) as proxy:
            target = target_of(server, port=proxy.port, user=user, password=password)
            whole = await report_on(target, top=TOP, columns=EVERYTHING)
            sampled = await report_on(target, top=TOP, estimate_keys=100)
            sent = proxy.commands()
    assert (whole.head.coverage.kind, sampled.head.coverage.kind) == (CoverageKind.EXACT, CoverageKind.ESTIMATE)
    assert changes(server) == written
    assert server.admin.execute_command("ACL", "LOG") == []
    nothing_is_denied(whole)
    for argv in sent:
        assert find_spec(argv) is not None, argv
        assert is_harmless(argv), argv
    seen = {one.argv for one in recorder.commands if one.client.startswith("127.0.0.1:")}
    if escapes_quotes(server):
        assert {argv for argv in seen if argv[0] not in {b"AUTH", b"HELLO"}} <= set(map(tuple, sent))
    touched = {key for key, seconds in usage(server, "IDLETIME").items() if seconds < PLANTED_IDLE_S}
    asked = {record.key for report in (whole, sampled) for record in report.summary.big.by_memory}
    assert touched <= (set() if every_type.has_no_touch(server) else asked)
    before = dumps(server.admin)
    await report_on(target_of(server, user=user, password=password))
    assert dumps(server.admin) == before


def nothing_is_denied(report: Report) -> None:
    states = {column.state for column in report.head.columns.values()}
    assert ColumnState.DENIED not in states
