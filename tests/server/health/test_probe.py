"""Samples of real servers of every version, and the parsers against what each has replied and nobody would."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rtui.analysis.facts import Reason
from rtui.analysis.health.fields import FIELDS, FieldUnit
from rtui.analysis.health.sample import ClientFigures, LoggedCommand, Sample, Source, only_new, with_earlier
from rtui.keyspace.text.display import SafeText
from rtui.server import guard
from rtui.server.guard.acl import acl_line, parse_release
from rtui.server.guard.closed_list import MAX_SLOW
from rtui.server.guard.command import build_batch
from rtui.server.guard.evidence import MAX_CLIENTS, TypeEvidence
from rtui.server.guard.spec import CommandGroup
from rtui.server.health import info
from rtui.server.health.lists import (
    LatencyReader,
    LogReader,
    parse_clients,
    parse_latency_history,
    parse_latency_latest,
    parse_slow_log,
    redacted,
    too_many,
)
from rtui.server.health.probe import HealthProbe
from rtui.server.wire.capability import Capabilities
from rtui.server.wire.connection import Connection
from rtui.server.wire.errors import Reply
from tests.fakes.servers import ALL, FakeKey, FakeServer
from tests.made_sample import ONLY_WITH_OTHERS
from tests.server.health.record import FOLDER
from tests.server.targets import connected, raw, target_of, until
from tests.server.test_denied import POOR, let_in, logged
from tests.servers import VERSIONS, Server

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
    uptimes = [server.admin.info("server")["uptime_in_seconds"]]
    async with connected(target_of(server)) as connection:
        sample = await probe_of(connection).sample()
    uptimes.append(server.admin.info("server")["uptime_in_seconds"])
    assert set(sample.missing) == absent(server)
    assert all(one.reason is Reason.UNSUPPORTED and one.detail for one in sample.missing.values())
    assert set(sample.sources) == set(Source) - absent(server) - ONLY_WITH_OTHERS
    assert uptimes[0] <= int(sample.info["uptime_in_seconds"]) <= uptimes[1]
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
    admin.execute_command("COMMANDLOG", "RESET", "large-request")
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
        assert "command" not in [one.name for one in (await probe.sample()).latency]
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


SECTIONS = [source for source in Source if source.startswith("INFO ")]


def as_reply(value: Any) -> Reply:
    if isinstance(value, str):
        return value.encode("latin-1")
    return [as_reply(one) for one in value] if isinstance(value, list) else value


@cache
def recorded(version: str) -> dict[str, Reply]:
    """What a version has replied, by what it was asked."""
    found: dict[str, Any] = json.loads((FOLDER / f"{version}.json").read_text())
    return {asked: as_reply(reply) for asked, reply in found.items()}


def is_newer(version: str, redis: tuple[int, int] | None, valkey: tuple[int, int] | None) -> bool:
    product, _, number = version.partition("-")
    since = redis if product == "redis" else valkey
    return since is not None and tuple(map(int, number.split("."))) >= since


@pytest.mark.parametrize("version", VERSIONS)
def test_what_each_version_replies(version: str) -> None:
    replies = recorded(version)
    fields = {name: value for one in SECTIONS for name, value in info.parse_fields(one, replies[one]).items()}
    assert len(fields) > 110
    for name, value in fields.items():
        assert isinstance(value, str) is (FIELDS[name].unit is FieldUnit.TEXT), name
    assert (fields["role"], fields["maxmemory_policy"], fields["blocked_clients"]) == ("master", "noeviction", 1)
    databases = info.parse_databases(replies[Source.INFO_KEYSPACE])
    assert (databases[0].keys, databases[0].expires) == (2, 1)
    commands = info.parse_commands(replies[Source.COMMAND_STATS])
    assert (commands["GET"].calls, commands["GET"].failed) == (2, 1)
    assert commands["EVAL"].took_us >= 1_000
    assert info.parse_errors(replies[Source.ERROR_STATS])["WRONGTYPE"] == 1
    percentiles = info.parse_percentiles(replies[Source.LATENCY_STATS])
    assert bool(percentiles) is is_newer(version, (7, 0), (8, 0))
    assert not percentiles or set(percentiles["GET"]) == {"50", "99", "99.9"}
    assert bool(info.parse_key_sizes(replies[Source.KEY_SIZES])) is is_newer(version, (8, 0), None)
    assert info.has_section(replies[Source.KEY_SIZES]) is is_newer(version, (8, 0), None)


@pytest.mark.parametrize("version", VERSIONS)
def test_logs_clients_and_settings_of_each_version(version: str) -> None:
    replies = recorded(version)
    entry = parse_slow_log(replies["SLOWLOG GET 128"])[0]
    assert (entry.name, entry.argv[-1], entry.amount >= 1_000) == ("EVAL", b"shop:\x1b[31m", True)
    worker = next(one for one in parse_clients(replies["CLIENT LIST"]) if one.name == b"worker")
    assert (worker.last_command, worker.flags, worker.subscriptions) == ("BLPOP", "bU", 0)
    assert worker.total_bytes
    (event,) = [one for one in parse_latency_latest(replies["LATENCY LATEST"]) if one.name == "command"]
    assert (event.at_s, event.highest_ms) in parse_latency_history(replies["LATENCY HISTORY command"])
    settings = info.parse_settings([replies["CONFIG GET"]])
    assert (settings["slowlog-log-slower-than"], settings["maxmemory-policy"]) == ("1000", "noeviction")
    if is_newer(version, None, (8, 1)):
        assert parse_slow_log(replies["COMMANDLOG GET 128 slow"])[0] == entry
        assert [one.name for one in parse_slow_log(replies["COMMANDLOG GET 128 large-request"])] == ["SET"]
        assert [one.name for one in parse_slow_log(replies["COMMANDLOG GET 128 large-reply"])][-1] == "GET"


def read_all(reply: Reply) -> list[object]:
    texts = [info.parse_databases, info.parse_commands, info.parse_percentiles, info.parse_errors, info.parse_replicas]
    lists = [parse_slow_log, parse_latency_latest, parse_latency_history, parse_clients, info.parse_key_sizes]
    found: list[object] = [parse(reply) for parse in (*texts, *lists)]
    return [*found, info.parse_settings([reply]), *(info.parse_fields(source, reply) for source in SECTIONS)]


@given(st.sampled_from(VERSIONS), st.data())
def test_replies_with_bytes_that_nobody_would_send(version: str, data: st.DataObject) -> None:
    reply = recorded(version)[data.draw(st.sampled_from([*SECTIONS, "CLIENT LIST"]))]
    assert isinstance(reply, bytes)
    at = data.draw(st.integers(0, len(reply)))
    other = data.draw(st.binary(max_size=40) | st.sampled_from((b"=", b",", b":", b"\r\n", b"9" * 30, b"\x1b[2J")))
    for found in read_all(reply[:at] + other + reply[at + len(other) :]):
        msgspec.json.encode(found)


@given(
    st.recursive(
        st.none() | st.integers(-(1 << 70), 1 << 70) | st.binary(max_size=20) | st.booleans(),
        lambda inner: st.lists(inner, max_size=6),
        max_leaves=30,
    )
)
def test_no_reply_is_too_strange(reply: Reply) -> None:
    for found in read_all(reply):
        msgspec.json.encode(found)


def test_nothing_unbounded_is_kept() -> None:
    entry: Reply = [1, 1, 1, [b"x" * 9_000] * 90, b"a" * 9_000, b"n" * 9_000]
    (found, *_) = entries = parse_slow_log([entry] * 500)
    assert len(entries) == MAX_SLOW
    assert sum(map(len, found.argv)) + len(found.address) + len(found.client_name) < 10_000
    assert len(parse_clients(b"addr=a\n" * 9_000)) == MAX_CLIENTS + 1
    assert (
        len(info.parse_errors(b"".join(b"errorstat_E%d:count=1\r\n" % one for one in range(9_000)))) == info.MAX_ERRORS
    )
    many = b"".join(b"cmdstat_c%d:calls=1,usec=1\r\n" % one for one in range(9_000))
    assert len(info.parse_commands(many)) == info.MAX_COMMANDS


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (b"auth word", 1), (b"AUTH name word", 1), (b"HELLO 3 AUTH name word", 2), (b"ACL SETUSER a >word", 3),
        (b"config set requirepass word", 3), (b"CONFIG SET save x masterauth word", 3), (b"GET AUTH", 2),
        (b"MIGRATE h 1 k 0 5 AUTH word", 6),
    ],
)  # fmt: skip
def test_passwords_of_old_servers_are_redacted(line: bytes, shown: int) -> None:
    argv = tuple(line.split(b" "))
    assert redacted(argv) == (*argv[:shown], *[b"(redacted)"] * (len(argv) - shown))


@given(st.lists(st.integers(0, 40), max_size=12), st.integers(1, MAX_SLOW))
def test_a_log_that_is_read_in_steps_is_the_log(grown: list[int], kept: int) -> None:
    """A log of `kept` entries grows by so many between looks; 40 stands for a reset."""
    log: list[Reply] = []
    reader, number = LogReader(), 0
    for more in grown:
        if more == 40:
            log = []
        for _ in range(more % 40):
            entry: Reply = [number, 1, 1, [b"GET"]]
            log = [entry, *log][:kept]
            number += 1
        count = reader.to_request(list(log[:1]))
        if count:
            reader.add(list(log[:count]), count)
        expected = parse_slow_log(list(log))
        assert reader.entries is not None
        assert reader.entries[: len(expected)] == expected
        assert isinstance(reader.entries, tuple)
        assert not expected or all(isinstance(one, LoggedCommand) for one in reader.entries)


def test_histories_of_delays_that_are_not_new_are_kept() -> None:
    reader = LatencyReader()
    latest: Reply = [[b"command", 10, 5, 5], [b"\x1b[31m", 10, 5, 5], [b"module-acquire-GIL", 10, 1, 1]]
    assert reader.to_request(latest) == ("command", "module-acquire-GIL")
    reader.add(("command",), [[[10, 5]]])
    assert reader.to_request([[b"command", 10, 5, 5], [b"fork", 12, 9, 9]]) == ("fork",)
    command, fork = reader.add(("fork",), [[[12, 9]]])
    assert (command.history, fork.history) == (((10, 5),), ((12, 9),))


OLD = b"addr=127.0.0.1:50123 fd=8 name= age=7 idle=0 flags=N db=3 sub=0 qbuf=26 omem=0 events=r cmd=client"
NEW = (
    b"id=9 addr=[::1]:50124 laddr=[::1]:6379 fd=8 name=nightly age=70 idle=12 flags=N db=0 sub=0 psub=0 ssub=0 "
    b"multi=-1 watch=0 qbuf=26 qbuf-free=20448 argv-mem=10 multi-mem=0 rbs=1024 rbp=0 obl=100 oll=2 omem=20512 "
    b"tot-mem=42880 events=r cmd=keys user=app redir=-1 resp=3 lib-name=redis-py lib-ver=8.1.0 io-thread=0"
)


def test_lines_of_old_and_new_servers() -> None:
    old, new = parse_clients(OLD + b"\n" + NEW + b"\n")
    assert old == ClientFigures(
        None,
        b"127.0.0.1:50123",
        flags="N",
        db=3,
        connected_s=7,
        idle_s=0,
        last_command="CLIENT",
        subscriptions=0,
        query_bytes=26,
        output_bytes=0,
    )
    assert new == ClientFigures(
        *(9, b"[::1]:50124", b"nightly", b"redis-py 8.1.0", b"app", "N", 0, 70, 12, "KEYS"),
        subscriptions=0,
        query_bytes=26,
        output_bytes=20_612,
        total_bytes=42_880,
    )


@given(st.lists(st.sampled_from((OLD, NEW, b"", b"addr", b"addr=", b"\xff\x1b[31m=\x00", b"addr=x age=-1 idle=9" * 9))))
def test_any_list_is_read(lines: list[bytes]) -> None:
    assert len(parse_clients(b"\n".join(lines))) == sum(b"addr=" in line for line in lines)


def test_entries_of_every_length() -> None:
    entry: list[Reply] = [7, 1_790_000_000, 12_345, [b"keys", b"shop:*"]]
    who: list[Reply] = [b"127.0.0.1:1", b"nightly", 2]
    assert parse_slow_log([entry]) == (LoggedCommand(7, 1_790_000_000, 12_345, (b"keys", b"shop:*")),)
    (whole,) = parse_slow_log([[*entry, *who]])
    assert parse_slow_log([[*entry, *who[:2]]]) == (replace(whole, argument_count=None),)
    assert whole.argument_count == 2
    assert parse_slow_log([[*entry, *who]])[0].client_name == b"nightly"
    assert parse_slow_log([entry])[0].name == "KEYS"


def test_the_reason_tells_the_bound() -> None:
    assert f"{MAX_CLIENTS:,}" in too_many(5_000).detail
    assert too_many(None).detail
