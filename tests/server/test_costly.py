"""What the wire shows of commands whose cost depends on the value: none goes out before that is known to be small."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rtui.analysis.facts import Reason, Unknown
from rtui.server.analysis.run import AnalysisRun
from rtui.server.browsing.session import BrowsingSession
from rtui.server.facts.key_facts import key_facts, key_preview, row_facts
from rtui.server.guard.evidence import PROBE_KEY
from rtui.server.options import AnalysisOptions, BrowseOptions
from rtui.server.scan.pace import Pace
from rtui.server.scan.server_time import COSTLY_S, MAX_COSTLY, CostWatch
from tests.fakes.servers import ModuleServer
from tests.monitor import Recorder
from tests.server.targets import connected, target_of
from tests.server.watched import Watched
from tests.servers import Server

DOCUMENTS = [b"doc:%02d" % number for number in range(40)]


@pytest.mark.parametrize("key_type", [b"ReJSON-RL", b"MBbloom--", b"TSDB-TYPE", b"unheard-of"])
async def test_no_size_of_a_module_type_is_asked_while_browsing(tmp_path: Path, key_type: bytes) -> None:
    async with ModuleServer(DOCUMENTS, key_type) as server:
        session = BrowsingSession(BrowseOptions(server.target, pace="full"), state_folder=tmp_path)
        await session.start()
        try:
            rows = await session.keys.row_facts(DOCUMENTS)
            for key in DOCUMENTS:
                facts = await session.keys.key_facts(key)
                assert facts.type == key_type
                assert isinstance(facts.memory_bytes, Unknown)
                assert facts.memory_bytes.reason is Reason.NOT_ASKED
                assert "module" in facts.memory_bytes.detail
                await key_preview(session.connection, facts)
        finally:
            await session.close()
        assert {row.type for row in rows} == {key_type}
        assert {row.memory_bytes for row in rows} == {facts.memory_bytes}
        assert {line[2] for line in server.sent(b"MEMORY", b"USAGE")} <= {PROBE_KEY}
        assert server.sent(b"TYPE")


async def test_no_size_of_a_module_type_is_asked_by_a_report() -> None:
    async with ModuleServer(DOCUMENTS) as server, connected(server.target) as connection:
        analysis = AnalysisRun(connection, AnalysisOptions(pace=Pace.FULL))
        await analysis.run()
        assert analysis.report is not None
        assert analysis.report.head.coverage.keys == len(DOCUMENTS)
        assert {line[2] for line in server.sent(b"MEMORY", b"USAGE")} <= {PROBE_KEY}


def plant_streams(server: Server) -> list[bytes]:
    """Write streams with groups among other keys."""
    client = server.client()
    names = [b"events:%02d" % number for number in range(40)]
    for name in names:
        client.xadd(name, {"field": "value"})
        client.xgroup_create(name, "group", "0")
    client.set("other", "value")
    return names


async def test_sizes_of_streams_are_not_asked_for_a_screen_of_rows_before_84(redis70: Server) -> None:
    streams = plant_streams(redis70)
    with Recorder(redis70) as recorder:
        async with connected(target_of(redis70)) as connection:
            rows = await row_facts(connection, [*streams, b"other"])
    assert {line.argv[-1] for line in recorder.commands if line.argv[0].upper() == b"MEMORY"} == {b"other"}
    for row in rows[:-1]:
        assert isinstance(row.memory_bytes, Unknown)
        assert row.memory_bytes.reason is Reason.NOT_ASKED
        assert "groups and consumers" in row.memory_bytes.detail
    assert rows[-1].memory_bytes == redis70.client().memory_usage("other")


async def test_the_size_of_the_stream_under_the_cursor_is_asked_alone_before_84(redis70: Server) -> None:
    streams = plant_streams(redis70)
    watch = CostWatch()
    async with connected(target_of(redis70)) as connection:
        watched = Watched(connection)
        for name in streams[:3]:
            facts = await key_facts(watched, name, watch=watch)
            assert facts.memory_bytes == redis70.client().memory_usage(name)
        asked = [[name for name in run if name != "INFO"] for run in watched.runs if "MEMORY USAGE" in run]
        assert asked == [["MEMORY USAGE", "XLEN"]] * 3


async def test_the_clock_of_the_server_is_watched_once_a_round_trip_was_slow(redis70: Server) -> None:
    streams = plant_streams(redis70)
    watch = CostWatch()
    watch.observe_round_trip(COSTLY_S * 2)
    async with connected(target_of(redis70)) as connection:
        watched = Watched(connection)
        facts = await key_facts(watched, streams[0], watch=watch)
        assert watched.runs[-1] == ["INFO", "MEMORY USAGE", "INFO", "XLEN"]
        assert facts.memory_bytes == redis70.client().memory_usage(streams[0])
        assert watch.proved == 1
        assert facts.length == 1


async def test_after_a_few_slow_streams_no_more_are_asked_for_their_size(redis70: Server) -> None:
    streams = plant_streams(redis70)
    watch = CostWatch()
    for _ in range(MAX_COSTLY):
        watch.observe(1, COSTLY_S * 2)
    async with connected(target_of(redis70)) as connection:
        watched = Watched(connection)
        facts = await key_facts(watched, streams[0], watch=watch)
    assert not any("MEMORY USAGE" in run for run in watched.runs)
    assert isinstance(facts.memory_bytes, Unknown)
    assert facts.memory_bytes.reason is Reason.NOT_ASKED
    assert "too slow for others" in facts.memory_bytes.detail
    assert facts.length == 1


async def test_sizes_of_streams_are_asked_in_bulk_where_groups_are_sampled(valkey: Server) -> None:
    streams = plant_streams(valkey)
    async with connected(target_of(valkey)) as connection:
        watched = Watched(connection)
        rows = await row_facts(watched, streams)
    assert [row.memory_bytes for row in rows] == [valkey.client().memory_usage(name) for name in streams]


async def test_a_large_compact_hash_is_not_walked_over_where_too_little_is_known(redis70: Server) -> None:
    redis70.client().hset("key", mapping={f"field{number}": "v" for number in range(20)})
    async with connected(target_of(redis70)) as connection:
        watched = Watched(connection)
        facts = await key_facts(watched, b"key")
        assert facts.encoding == b"listpack"
        watched.runs.clear()
        shown = await key_preview(watched, replace(facts, length=60_000, memory_bytes=10_000_000))
    assert watched.runs == []
    assert shown.refusal is not None
    assert shown.refusal.reason is Reason.TOO_LARGE


async def test_groups_are_listed_where_the_size_of_a_stream_is_denied(valkey: Server) -> None:
    streams = plant_streams(valkey)
    valkey.client().execute_command("ACL", "SETUSER", "default", "-memory|usage")
    async with connected(target_of(valkey)) as connection:
        watched = Watched(connection)
        shown = await key_preview(watched, await key_facts(watched, streams[0]))
    assert [section.title for section in shown.sections] == ["groups"]
