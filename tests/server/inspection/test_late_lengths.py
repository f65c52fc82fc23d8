"""Lengths of some keys only: which are asked, that memory bounds the others, and that the longest are found."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from rtui.analysis.columns import ALL_COLUMNS, EVERYTHING, SAMPLED_COLUMNS, parse_columns
from rtui.analysis.estimates import Estimate, as_estimate
from rtui.analysis.formats import write_text
from rtui.analysis.report.document import ColumnState, CoverageKind, HotSource, Report, Scope
from rtui.analysis.report.tables.contents import tables
from rtui.analysis.report.tables.keys import of_sample
from rtui.keyspace.types import HASH, LIST, SET, SHORT_LENGTH, STRING, TYPES, ZSET
from rtui.server.analysis.run import AnalysisRun
from rtui.server.inspection.plan import LEFT_OUT
from rtui.server.options import AnalysisOptions
from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import ScanState
from tests.proxy import DelayProxy
from tests.server import every_type
from tests.server.every_type import NO_TOUCH
from tests.server.inspection.gathered import Gathered, inspecting
from tests.server.targets import connected, target_of
from tests.servers import Server

COUNTS = (1, 2, 3, 10, 100, 500, 513, 5_000)


def fill_lean(client: Any) -> None:
    """Write values that take as little memory as their length allows."""
    for number in (0, 7, 10_000, -(1 << 63), (1 << 63) - 1):
        client.set(f"i{number}", number)
    for count in COUNTS:
        client.set(f"s{count}", "x" * count)
        client.hset(f"h{count}", mapping={str(field): field % 10 for field in range(count)})
        client.hset(f"H{count}", mapping={f"{field:x}": "" for field in range(count)})
        client.sadd(f"S{count}", *range(count))
        client.sadd(f"t{count}", *(f"{member:x}" for member in range(count)))
        client.zadd(f"z{count}", {str(member): member for member in range(count)})
        client.zadd(f"Z{count}", {f"{member:x}": 0 for member in range(count)})
    client.hset("h", "", "")
    client.sadd("S", "")
    client.zadd("z", {"": 0})


def test_memory_bounds_the_length_on_every_server(server: Server) -> None:
    client: Any = server.client()
    every_type.fill(server, client)
    for largest in (0, 100_000):
        for kind in ("hash", "zset", "set"):
            for entries in client.config_get(f"{kind}-m*-entries"):
                client.config_set(entries, min(largest, 1) if "-min-" in entries else largest)
        fill_lean(client)
        for key in client.keys("*"):
            kind = client.type(key)
            least = TYPES[kind].least_element_bytes
            length = client.execute_command(every_type.LENGTHS[kind], key) if least else 0
            if length > SHORT_LENGTH:
                assert length * least <= client.memory_usage(key), (key, length)
        client.flushall()


def fill(client: Any, keys: int) -> None:
    """Write keys of five types whose lengths are heavy in their tails, shuffled by the server's own hash."""
    pipe = client.pipeline(transaction=False)
    for number in range(keys):
        size = round(2_000_000 / (1 + number * 7_919 % keys) ** 1.2) // 100 + 1
        kind = number % 5
        if kind == 0:
            pipe.set(f"s:{number}", "x" * size)
        elif kind == 1:
            pipe.hset(f"h:{number}", mapping={str(field): field for field in range(min(size, 2_000))})
        elif kind == 2:
            pipe.sadd(f"t:{number}", *range(min(size, 2_000)))
        elif kind == 3:
            pipe.zadd(f"z:{number}", {str(member): member for member in range(min(size, 2_000))})
        else:
            pipe.rpush(f"l:{number}", *range(min(size, 2_000)))
        if number % 500 == 499:
            pipe.execute()
    pipe.execute()


async def test_a_sampled_pass_asks_one_key_in_eight_and_the_long_ones(server: Server) -> None:
    client: Any = server.client()
    fill(client, 6_000)
    found = Gathered(Scope(top=10))
    async with DelayProxy(server.port) as proxy, connected(target_of(server, port=proxy.port)) as connection:
        scan, pipeline = await inspecting(connection, found, columns=SAMPLED_COLUMNS)
        await scan.run()
        sent = Counter(argv[0] for argv in proxy.commands())
    assert scan.state is ScanState.DONE
    assert pipeline.waiting == 0
    assert set(found.times.values()) == {1}
    assert len(found.facts) == 6_000
    sampled = {key for key, facts in found.facts.items() if facts["idle"] is not None}
    assert 6_000 // 8 - 1 <= len(sampled) <= 6_000 // 8 + 1
    assert all(facts["ttl"] == -1 and facts["memory"] for facts in found.facts.values())
    lengths = {key: facts["length"] for key, facts in found.facts.items() if facts["length"] is not None}
    if not every_type.has_no_touch(server):
        assert not lengths
        return
    assert sampled <= set(lengths)
    assert sum(sent[name.encode()] for name in every_type.LENGTHS.values()) < 6_500
    for kind, prefix in ((STRING, b"s"), (HASH, b"h"), (SET, b"t"), (ZSET, b"z"), (LIST, b"l")):
        keys = client.keys(prefix + b":*")
        true = sorted(((client.execute_command(every_type.LENGTHS[kind.name], key), key) for key in keys), reverse=True)
        threshold = true[9][0]
        assert {key for length, key in true if length > threshold} <= set(lengths)
        assert all(lengths[key] == length for length, key in true if key in lengths)


async def report_of(server: Server, **options: Any) -> Report:
    """The report of a pass over all keys."""
    async with connected(target_of(server)) as connection:
        analysis = AnalysisRun(connection, AnalysisOptions(pace=Pace.FULL, **options))
        await analysis.run()
    assert analysis.report is not None
    return analysis.report


@NO_TOUCH
async def test_the_longest_keys_are_those_of_a_pass_that_asks_everything(server: Server) -> None:
    fill(server.client(), 6_000)
    every = await report_of(server, columns=EVERYTHING, top=20)
    some = await report_of(server, columns=SAMPLED_COLUMNS, top=20)
    assert some.head.coverage == every.head.coverage
    assert some.summary.big.length_not_asked == {}

    def longest(report: Report) -> dict[bytes, list[tuple[bytes, int | None]]]:
        lists = report.summary.big.by_type_length
        return {kind: [(record.key, record.length) for record in records] for kind, records in lists.items()}

    assert longest(some) == longest(every)
    assert some.summary.big.over == every.summary.big.over
    assert [one.key for one in some.summary.big.by_length] == [one.key for one in every.summary.big.by_length]
    assert all(one.idle_s is not None and one.length is not None for one in some.summary.big.by_memory)
    assert [one.length and one.length.max for one in some.summary.types] == [
        one.length and one.length.max for one in every.summary.types
    ]
    root, true = some.summary.root.stats, every.summary.root.stats
    assert (root.keys, root.memory_bytes, root.no_ttl_keys) == (true.keys, true.memory_bytes, true.no_ttl_keys)
    assert root.idle is not None
    assert sum(as_estimate(one).value for one in root.idle) == pytest.approx(6_000)
    assert some.head.scope.columns == SAMPLED_COLUMNS
    columns = some.head.columns
    assert columns["ttl"].state is columns["memory"].state is ColumnState.COMPLETE
    assert columns["idle"].state is columns["length"].state is ColumnState.SOME
    assert some.head.cost.commands < 0.8 * every.head.cost.commands
    assert len(some.summary.hottest) == 20


async def test_keys_that_are_all_alike_are_not_all_asked_and_it_is_said(valkey: Server) -> None:
    client: Any = valkey.client()
    pipe = client.pipeline(transaction=False)
    for number in range(8_000):
        pipe.set(f"s:{number}", "x" * (200 + number % 7))
        pipe.rpush(f"l:{number}", "a", "b")
    pipe.execute()
    async with DelayProxy(valkey.port) as proxy, connected(target_of(valkey, port=proxy.port)) as connection:
        analysis = AnalysisRun(connection, AnalysisOptions(pace=Pace.FULL, columns=SAMPLED_COLUMNS, top=10))
        await analysis.run()
        sent = Counter(argv[0] for argv in proxy.commands())
    assert analysis.report is not None
    most = 8_000 / 8 + 1_000 + 16_000 / 16 + 1_000
    assert sent[b"STRLEN"] < most
    assert sent[b"LLEN"] < most
    not_asked = analysis.report.summary.big.length_not_asked
    assert not_asked[b"list"] is None
    assert (not_asked[b"string"] or 0) > 206
    (note,) = {table.note for table in tables(analysis.report) if table.id == "big_keys_by_length"}
    assert note.startswith("There may be longer keys of type list: length was read of one key in 8")
    assert "There may be longer keys of type list" in write_text(analysis.report)


async def test_small_keyspaces_are_asked_everything_by_default(valkey: Server) -> None:
    fill(valkey.client(), 500)
    report = await report_of(valkey)
    assert report.head.scope.columns == ALL_COLUMNS
    assert report.head.columns["idle"].state is ColumnState.COMPLETE


async def test_an_estimate_asks_its_keys_everything(valkey: Server) -> None:
    fill(valkey.client(), 3_000)
    report = await report_of(valkey, columns=SAMPLED_COLUMNS, estimate_keys=500)
    assert report.head.coverage.kind is CoverageKind.ESTIMATE
    assert report.head.scope.columns == ALL_COLUMNS
    assert all(one.idle_s is not None for one in report.summary.big.by_memory)


async def test_columns_that_are_left_out_are_not_asked(valkey: Server) -> None:
    fill(valkey.client(), 1_000)
    async with DelayProxy(valkey.port) as proxy, connected(target_of(valkey, port=proxy.port)) as connection:
        columns = parse_columns("type,length")
        analysis = AnalysisRun(connection, AnalysisOptions(pace=Pace.FULL, columns=columns))
        await analysis.run()
        sent = Counter(argv[0] for argv in proxy.commands())
    assert analysis.report is not None
    assert sent[b"PTTL"] <= 1
    assert sent[b"MEMORY"] <= 1
    assert sent[b"OBJECT"] <= 3
    report = analysis.report
    assert {name for name, one in report.head.columns.items() if one.reason == LEFT_OUT} == {
        "ttl", "memory", "idle", "encoding",
    }  # fmt: skip
    assert report.summary.root.stats.keys == 1_000
    assert not any(record.note for records in report.summary.big.by_type_length.values() for record in records)
    assert all(one.length is not None for one in report.summary.types)


async def test_access_counters_of_one_key_in_eight(lfu_server: Server) -> None:
    client: Any = lfu_server.client()
    fill(client, 2_000)
    report = await report_of(lfu_server, columns=SAMPLED_COLUMNS, top=20)
    frequency = report.summary.root.stats.frequency
    assert frequency is not None
    assert all(isinstance(one, Estimate) for one in frequency)
    assert sum(as_estimate(one).value for one in frequency) == pytest.approx(2_000)
    assert report.summary.root.stats.idle is None
    assert report.hot.source is HotSource.FREQUENCY
    assert of_sample(report) == "Access counter was read of one key in 8 only"
    assert all(one.frequency is not None for one in report.summary.big.by_memory)


async def test_the_longest_keys_over_tls(tls_server: Server) -> None:
    fill(tls_server.client(), 3_000)
    every = await report_of(tls_server, columns=EVERYTHING, top=20)
    some = await report_of(tls_server, columns=SAMPLED_COLUMNS, top=20)
    assert some.summary.big.length_not_asked == {}
    assert [one.key for one in some.summary.big.by_length] == [one.key for one in every.summary.big.by_length]
