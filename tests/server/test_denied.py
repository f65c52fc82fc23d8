"""What a server denies is asked once a connection; what may cost much is asked only where it is known to be small."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from rtui.analysis.facts import Reason, Unknown
from rtui.server import guard
from rtui.server.analysis.run import AnalysisRun
from rtui.server.browsing.session import BrowsingSession
from rtui.server.facts.key_facts import key_facts, key_preview, row_facts
from rtui.server.guard.command import Secret
from rtui.server.guard.evidence import PROBE_KEY
from rtui.server.options import AnalysisOptions, BrowseOptions
from rtui.server.scan.pace import Pace
from rtui.server.scan.server_time import COSTLY_S, MAX_COSTLY, CostWatch
from rtui.server.wire.capability import CommandRunner
from rtui.server.wire.errors import ServerError
from tests.fakes.servers import ModuleServer
from tests.monitor import Recorder
from tests.proxy import DelayProxy
from tests.server import every_type
from tests.server.targets import Watched, connected, eventually, target_of
from tests.servers import Server

POOR = {"user": "poor", "password": Secret("pw")}

READS = ("-getrange", "-hscan", "-hmget", "-hrandfield", "-lrange", "-sscan", "-zrange", "-xrevrange", "-xinfo")
"""Rules that deny what previews read."""


def let_in(server: Server, *rules: str) -> None:
    """Have a user `poor` with exactly these rules."""
    server.admin.execute_command("ACL", "SETUSER", "poor", "reset", "on", ">pw", "~*", *rules)
    server.admin.execute_command("ACL", "LOG", "RESET")


def logged(server: Server) -> Counter[str]:
    """How often each command was denied."""
    found: Counter[str] = Counter()
    for entry in server.admin.acl_log(count=1_000):
        found[str(entry["object"])] += int(str(entry["count"]))
    return found


async def look(session: BrowsingSession, keys: list[bytes]) -> None:
    """Let the cursor rest on each of the keys once."""
    await session.keys.row_facts(keys)
    for key in keys:
        await session.keys.preview(await session.keys.key_facts(key))
        await session.keys.lookup(key)


async def test_previews_that_are_denied_are_asked_once_a_connection(server: Server) -> None:
    keys = sorted(every_type.fill(server, server.client()))
    let_in(server, "+@all", *READS)
    session = BrowsingSession(BrowseOptions(target_of(server, **POOR), resume=False))
    await session.start()
    try:
        for _ in range(3):
            await look(session, keys)
    finally:
        await session.close()
    found = logged(server)
    assert {rule[1:] for rule in READS[:2]} <= set(found)
    assert max(found.values()) == 1


@pytest.mark.slow
@pytest.mark.sampled("rules")
@pytest.mark.parametrize("rules", [("+scan",), ("+@all", "-info"), ("+@all", "-ping", "-dbsize"), ("+scan", "+type")])
async def test_a_poor_user_s_session_adds_nothing_to_the_log_as_it_goes_on(
    server: Server, monkeypatch: pytest.MonkeyPatch, rules: tuple[str, ...]
) -> None:
    monkeypatch.setattr("rtui.server.health.session.REFRESH_EVERY_S", 0.01)
    keys = sorted(every_type.fill(server, server.client()))
    let_in(server, *rules)
    session = BrowsingSession(BrowseOptions(target_of(server, **POOR), resume=False))
    session.connection._heartbeat_s = 0.01
    probe, rounds = session.capabilities.probe, 0

    async def counted(connection: CommandRunner) -> None:
        nonlocal rounds
        rounds += 1
        await probe(connection)

    monkeypatch.setattr(session.capabilities, "probe", counted)
    await session.start()
    try:
        await look(session, keys)
        await eventually(lambda: rounds >= 2)
        await eventually(lambda: session.status.progress.state.is_over)
        first = logged(server)
        assert first
        for _ in range(2):
            await look(session, keys)
            await session.filter(None)
            await eventually(lambda: session.status.progress.state.is_over)
        before = rounds
        await eventually(lambda: rounds >= before + 2)
        assert logged(server) == first
    finally:
        await session.close()


async def test_a_cluster_s_node_that_denies_what_it_is_asks_once(
    cluster_node: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rtui.server.health.session.REFRESH_EVERY_S", 0.001)
    let_in(cluster_node, "+@all", "-cluster")
    session = BrowsingSession(BrowseOptions(target_of(cluster_node, **POOR), resume=False))
    await session.start()
    try:
        await eventually(lambda: session.status.progress.state.is_over)
        first = logged(cluster_node)
        assert "cluster|info" in first
        revision = session.connection.revision
        await eventually(lambda: session.connection.revision >= revision + 5)
        await session.filter(None)
        assert logged(cluster_node) == first
    finally:
        await session.close()


async def test_another_analysis_tries_once_more_what_the_last_one_was_denied(valkey: Server) -> None:
    every_type.fill(valkey, valkey.client())
    let_in(valkey, "+@all", "-memory", "-object", "-config", "-strlen", "-hlen")
    async with connected(target_of(valkey, **POOR)) as connection:
        for turn in range(1, 4):
            await AnalysisRun(connection, AnalysisOptions(pace=Pace.FULL)).run()
            assert logged(valkey)["strlen"] == turn
            assert logged(valkey)["memory|usage"] == turn


async def test_a_lane_answers_in_order_what_it_sends_and_what_it_does_not(server: Server) -> None:
    let_in(server, "+@all", "-strlen", "-get")
    server.admin.set("k", "four")
    async with DelayProxy(server.port) as proxy, connected(target_of(server, port=proxy.port, **POOR)) as connection:
        assert isinstance((await connection.run(guard.strlen(b"k")))[0], ServerError)
        kind, denied, there, again = await connection.run(
            guard.key_type(b"k"), guard.strlen(b"k"), guard.exists(b"k"), guard.strlen(b"k")
        )
        assert (kind, there) == (b"string", 1)
        assert isinstance(denied, ServerError)
        assert denied is again
        assert denied.denies_command
        (alone,) = await connection.run(guard.strlen(b"k"))
        assert alone is denied
        assert sum(argv[0] == b"STRLEN" for argv in proxy.commands()) == 1
    assert logged(server)["strlen"] == 1


async def test_a_denied_key_is_no_denied_command(server: Server) -> None:
    server.admin.execute_command("ACL", "SETUSER", "poor", "reset", "on", ">pw", "~mine:*", "+@all")
    server.admin.mset({"mine:k": "four", "k": "four"})
    async with connected(target_of(server, **POOR)) as connection:
        (denied,) = await connection.run(guard.strlen(b"k"))
        assert isinstance(denied, ServerError)
        assert not denied.denies_command
        assert await connection.run(guard.strlen(b"mine:k")) == [4]


async def test_a_new_connection_tries_again(valkey: Server) -> None:
    valkey.admin.set("k", "four")
    let_in(valkey, "+@all", "-pttl")
    session = BrowsingSession(BrowseOptions(target_of(valkey, **POOR), resume=False))
    await session.start()
    try:
        (before,) = await session.keys.row_facts([b"k"])
        assert isinstance(before.ttl_ms, Unknown)
        let_in(valkey, "+@all")
        valkey.admin.client_kill_filter(_type="normal")
        await eventually(lambda: session.connection.generation > 1 and session.connection.is_online)
        (after,) = await session.keys.row_facts([b"k"])
        assert not isinstance(after.ttl_ms, Unknown)
    finally:
        await session.close()


async def test_a_report_of_a_user_who_may_read_some_keys_says_so(valkey: Server) -> None:
    valkey.admin.mset({f"{word}:{n}": n for n in range(300) for word in ("mine", "yours", "theirs")})
    valkey.admin.execute_command("ACL", "SETUSER", "poor", "reset", "on", ">pw", "~mine:*", "+@all")
    async with connected(target_of(valkey, **POOR)) as connection:
        run = AnalysisRun(connection, AnalysisOptions(pace=Pace.FULL))
        await run.run()
    assert run.report is not None
    notes = [note for note in run.report.head.notes if "ACL key patterns" in note]
    assert len(notes) == 1
    assert notes[0].startswith("The type of 600 keys is not known")


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
        rows = await row_facts(Watched(connection), streams)
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
