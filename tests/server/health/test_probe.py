"""Samples of real servers of every version: what is asked how often, denied, new in logs, and after a restart."""

from __future__ import annotations

from collections import Counter

import pytest

from rtui.analysis.facts import Reason
from rtui.analysis.health.sample import Sample, Source, only_new, with_earlier
from rtui.keyspace.text.display import SafeText
from rtui.server import guard
from rtui.server.guard.acl import acl_line, parse_release
from rtui.server.guard.command import build_batch
from rtui.server.guard.evidence import TypeEvidence
from rtui.server.guard.spec import CommandGroup
from rtui.server.health.probe import HealthProbe
from rtui.server.wire.capability import Capabilities
from rtui.server.wire.connection import Connection
from tests.fakes.base import FakeKey, FakeServer
from tests.fakes.servers import ALL
from tests.made_sample import ONLY_WITH_OTHERS
from tests.server.raw_commands import raw
from tests.server.targets import connected, target_of, until
from tests.server.test_denied import POOR, let_in, logged
from tests.servers import Server

LATER = {"redis": {Source.LARGE_REQUESTS, Source.LARGE_REPLIES}, "valkey": {Source.KEY_SIZES}}
"""What the newest servers do not have."""

TOTAL = "total_commands_processed"
STRING = TypeEvidence(b"string", "valkey", (9, 1, 0))

RARELY = {Source.LATENCY_STATS, Source.KEY_SIZES, Source.CLIENTS, Source.SETTINGS}
"""What is not asked for each sample."""


class Clock:
    """Seconds that go on when a test says so."""

    def __init__(self) -> None:
        self.now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


def probe_of(connection: Connection, clock: Clock | None = None) -> HealthProbe:
    return HealthProbe(connection, SafeText("server"), monotonic=clock or Clock())


def absent(server: Server) -> set[Source]:
    """What a server of this version does not have."""
    found = set(LATER[server.product])
    if server.product == "valkey" and server.version < (8, 1):
        found |= LATER["redis"]
    if server.product == "redis" and server.version < (8, 0):
        found.add(Source.KEY_SIZES)
    if server.version < (7, 0):
        found.add(Source.LATENCY_STATS)
    return found


async def test_every_version_tells_all_that_it_has(server: Server) -> None:
    client = server.client(client_name="shop[31m")
    client.set("a", "b", ex=100)
    client.hset("hash", "field", "value")
    async with connected(target_of(server)) as connection:
        sample = await probe_of(connection).sample()
    assert set(sample.missing) == absent(server)
    assert all(one.reason is Reason.UNSUPPORTED and one.detail for one in sample.missing.values())
    assert set(sample.sources) == set(Source) - absent(server) - ONLY_WITH_OTHERS
    assert sample.info["uptime_in_seconds"] == server.admin.info("server")["uptime_in_seconds"]
    assert isinstance(sample.info["used_cpu_user"], float)
    assert sample.databases[0].keys == 2
    assert sample.databases[0].expires == 1
    assert sample.commands["HSET"].calls == 1
    assert sample.commands["HSET"].failed == 0
    assert bool(sample.commands["HSET"].percentiles_us) == (Source.LATENCY_STATS not in absent(server))
    assert sample.settings["maxmemory-policy"] == "noeviction"
    assert len(sample.settings) > 60
    assert {one.is_own for one in sample.clients if one.name == b"rtui"} == {True}
    assert [one.is_own for one in sample.clients if one.name == b"shop[31m"] == [False]
    client.close()


async def test_what_costs_more_is_asked_less_often(server: Server) -> None:
    clock = Clock()
    async with connected(target_of(server)) as connection:
        probe = probe_of(connection, clock)
        first = await probe.sample()
        clock.now_s += 1
        second = await probe.sample()
        clock.now_s += 60
        last = await probe.sample()
    assert not RARELY & set(second.sources)
    assert (second.clients, second.settings, second.key_sizes) == (first.clients, first.settings, first.key_sizes)
    assert second.commands["INFO"].percentiles_us == first.commands["INFO"].percentiles_us
    assert with_earlier(only_new(second), first) == second
    assert set(second.missing) == set(first.missing)
    assert RARELY & set(last.sources) == RARELY & set(first.sources)


async def test_the_latest_entries_of_the_slow_log_are_read_once(server: Server) -> None:
    def slow_ids(sample: Sample) -> list[int]:
        return [one.id for one in sample.slow]

    client, admin = server.client(), server.admin
    async with connected(target_of(server)) as connection:
        probe = probe_of(connection)
        assert Source.SLOW_LOG in (await probe.sample()).sources
        assert Source.SLOW_LOG not in (await probe.sample()).sources
        admin.config_set("slowlog-log-slower-than", 0)
        for number in range(5):
            client.set(f"key:{number}", "x")
        admin.config_set("slowlog-log-slower-than", -1)
        first = await probe.sample()
        assert [one.argv[1] for one in first.slow if one.name == "SET"] == [b"key:%d" % n for n in range(4, -1, -1)]
        admin.config_set("slowlog-log-slower-than", 0)
        client.get("key:0")
        admin.config_set("slowlog-log-slower-than", -1)
        second = await probe.sample()
        assert "GET" in [one.name for one in second.slow if one.id not in slow_ids(first)]
        assert slow_ids(second) == [entry["id"] for entry in admin.slowlog_get(128)]
        assert Source.SLOW_LOG not in (await probe.sample()).sources
        admin.slowlog_reset()
        emptied = await probe.sample()
        assert Source.SLOW_LOG in emptied.sources
        assert not emptied.slow
    client.close()


async def test_large_requests_and_replies(server: Server) -> None:
    if Source.LARGE_REQUESTS in absent(server):
        pytest.skip(f"{server.name} keeps no such logs")
    admin, client = server.admin, server.client()
    admin.config_set("commandlog-request-larger-than", 5_000)
    admin.config_set("commandlog-reply-larger-than", 5_000)
    client.set("big", "x" * 9_000)
    client.get("big")
    async with connected(target_of(server)) as connection:
        sample = await probe_of(connection).sample()
    assert [(one.name, one.amount > 9_000) for one in sample.large_requests] == [("SET", True)]
    assert [(one.name, one.amount > 9_000) for one in sample.large_replies if not one.is_own][-1:] == [("GET", True)]
    client.close()


async def test_delays_with_their_history(server: Server) -> None:
    admin = server.admin
    admin.config_set("latency-monitor-threshold", 1)
    async with connected(target_of(server)) as connection:
        probe = probe_of(connection)
        assert not (await probe.sample()).latency
        admin.eval("local n = 0 for i = 1, 3000000 do n = n + i end", 0)
        found = await probe.sample()
        (event,) = [one for one in found.latency if one.name == "command"]
        assert event.history == ((event.at_s, event.latest_ms),)
        assert event.highest_ms >= event.latest_ms >= 1
        assert Source.LATENCY_EVENTS not in (await probe.sample()).sources


@pytest.mark.parametrize("denied", ["info", "slowlog", "latency", "client|list", "config|get", "commandlog"])
async def test_what_is_denied_is_said_and_not_asked_again(valkey: Server, denied: str) -> None:
    let_in(valkey, "+@all", f"-{denied}")
    sources = {
        "info": {source for source in Source if source.startswith("INFO ")} | {Source.CLIENTS},
        "slowlog": {Source.SLOW_LOG},
        "commandlog": {Source.LARGE_REQUESTS, Source.LARGE_REPLIES},
        "latency": {Source.LATENCY_EVENTS},
        "client|list": {Source.CLIENTS},
        "config|get": {Source.SETTINGS},
    }[denied]
    async with connected(target_of(valkey, **POOR)) as connection:
        probe = probe_of(connection)
        samples = [await probe.sample() for _ in range(3)]
    for sample in samples:
        assert set(sample.missing) == sources | absent(valkey)
        assert all(sample.missing[one].reason in (Reason.DENIED, Reason.UNSUPPORTED) for one in sources)
    assert max(logged(valkey).values()) == 1


async def test_what_was_denied_is_asked_once_more_when_the_user_wants_it(valkey: Server) -> None:
    let_in(valkey, "+@all", "-slowlog")
    async with connected(target_of(valkey, **POOR)) as connection:
        probe = probe_of(connection)
        assert Source.SLOW_LOG in (await probe.sample()).missing
        valkey.admin.execute_command("ACL", "SETUSER", "poor", "+slowlog")
        assert Source.SLOW_LOG in (await probe.sample()).missing
        probe.ask_everything()
        assert Source.SLOW_LOG in (await probe.sample()).sources


async def test_the_user_for_health_is_told_everything(server: Server) -> None:
    groups = (CommandGroup.HEALTH, CommandGroup.SETTINGS)
    raw(
        server, *acl_line(parse_release(server.name), user="poor", groups=groups).replace(">PASSWORD", ">pw").split(" ")
    )
    server.admin.config_set("latency-monitor-threshold", 1)
    server.admin.eval("local n = 0 for i = 1, 3000000 do n = n + i end", 0)
    async with connected(target_of(server, **POOR)) as connection:
        sample = await probe_of(connection).sample()
    assert set(sample.missing) == absent(server)
    assert sample.latency[0].history
    assert not logged(server)


async def test_everything_is_denied(server: Server) -> None:
    let_in(server, "+ping", "+hello")
    async with connected(target_of(server, **POOR)) as connection:
        server.admin.execute_command("ACL", "LOG", "RESET")
        probe = probe_of(connection)
        samples = [await probe.sample() for _ in range(3)]
    for sample in samples:
        assert (sample.sources, sample.info, sample.commands, sample.clients) == ((), {}, {}, ())
        assert set(sample.missing) >= set(Source) - absent(server) - ONLY_WITH_OTHERS
    assert max(logged(server).values()) == 1


async def test_a_restart_begins_anew(valkey: Server) -> None:
    valkey.admin.config_set("slowlog-log-slower-than", 0)
    valkey.admin.ping()
    async with connected(target_of(valkey)) as connection:
        probe = probe_of(connection)
        before = await probe.sample()
        valkey.restart()
        await until(connection, lambda: not connection.is_online)
        await until(connection, lambda: connection.is_online)
        after = await probe.sample()
    assert before.slow
    assert after.slow == ()
    assert after.info["run_id"] != before.info["run_id"]
    assert after.sources == before.sources


async def test_many_clients_are_counted_and_not_listed(valkey: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rtui.server.guard.evidence.MAX_CLIENTS", 1)
    others = [valkey.client() for _ in range(3)]
    for other in others:
        other.ping()
    async with connected(target_of(valkey)) as connection:
        sample = await probe_of(connection).sample()
        assert "cmdstat_client|list" not in valkey.admin.info("commandstats")
    assert sample.missing[Source.CLIENTS].reason is Reason.TOO_LARGE
    assert str(sample.info["connected_clients"]) in sample.missing[Source.CLIENTS].detail
    for other in others:
        other.close()


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.name)
async def test_a_compatible_server_tells_what_it_has(kind: type[FakeServer]) -> None:
    async with kind({b"a": FakeKey()}) as fake, connected(fake.target) as connection:
        probe = probe_of(connection)
        first, second = await probe.sample(), await probe.sample()
    assert set(first.missing) | set(first.sources) >= set(Source) - ONLY_WITH_OTHERS
    assert set(second.missing) == set(first.missing)
    assert not set(first.missing) & set(first.sources)
    refused = Counter(argv[0] for argv in fake.asked if argv[0] in (b"SLOWLOG", b"LATENCY", b"COMMANDLOG"))
    assert set(refused.values()) <= {1}


async def test_what_rtui_itself_adds_to_the_counters_is_counted(server: Server) -> None:
    def counters(sample: Sample) -> tuple[int, int, int]:
        hits, misses, commands = (sample.info[name] for name in ("keyspace_hits", "keyspace_misses", TOTAL))
        assert isinstance(hits, int)
        assert isinstance(misses, int)
        assert isinstance(commands, int)
        return hits - sample.own.hits, misses - sample.own.misses, commands - sample.own.commands

    keys = [b"key:%d" % number for number in range(20)]
    server.client().mset(dict.fromkeys(keys, "x"))
    async with connected(target_of(server)) as connection:
        probe = probe_of(connection)
        for _ in range(2):
            await probe.sample()
        await Capabilities().probe(connection)
        before = await probe.sample()
        await connection.run(guard.key_type(keys[0]), guard.strlen(keys[1]), guard.memory_usage(keys[1], STRING))
        lane = await connection.bulk()
        await lane.run(build_batch((guard.key_type, guard.pttl), keys), guard.scan(0, count=10))
        after = await probe.sample()
    assert after.own.hits - before.own.hits == 42
    assert before.own.misses > 10
    hits, misses, commands = (later - earlier for earlier, later in zip(counters(before), counters(after), strict=True))
    assert (hits, misses, commands) == (0, 0, 0)
