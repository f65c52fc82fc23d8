from __future__ import annotations

from dataclasses import replace

import pytest
import redis

from rtui.analysis.facts import (
    GONE,
    NO_TTL,
    Frequency,
    IdleBasis,
    KeyFacts,
    LfuSettings,
    NoTtl,
    Reason,
    RowFacts,
    Unknown,
)
from rtui.server.facts.answers import length_commands
from rtui.server.facts.first_answers import REPLICA_NOTE
from rtui.server.facts.key_facts import key_facts, key_preview, row_facts
from rtui.server.facts.keys import lfu_settings, parse_setting
from rtui.server.facts.preview.page import Page
from rtui.server.guard.command import Secret
from rtui.server.wire.capability import Capabilities, Feature, Verdict
from rtui.server.wire.errors import ConnectionLost, Reply, ServerError
from rtui.server.wire.own_reads import IDLE_NOTE
from tests.conftest import Pool
from tests.proxy import DelayProxy
from tests.server.every_type import LENGTHS, NO_TOUCH, UNSTEADY_MEMORY, fill, has_no_touch
from tests.server.targets import Watched, connected, raw, target_of
from tests.servers import Server

PATIENCE_MS = 60_000
"""How far a TTL may have run down between two clients' questions."""


@pytest.fixture
def redis86(pool: Pool) -> Server:
    """Redis 8.6, empty: the first with `*-lrm` policies."""
    return pool.take("redis-8.6", "redis-8.6")


@pytest.fixture(params=["redis-6.2", "redis-7.0"])
def without_no_touch(request: pytest.FixtureRequest, pool: Pool) -> Server:
    """Servers on which reading a key counts as a use."""
    name: str = request.param
    return pool.take(name, name)


@pytest.fixture
def without_memory(pool: Pool) -> Server:
    """Redis 7.0 with MEMORY renamed away."""
    return pool.take("renamed", "redis-7.0", "--rename-command", "MEMORY", "hidden-memory")


def same_ttl(found: object, asked: int) -> bool:
    if asked == -1:
        return found is NO_TTL
    return isinstance(found, int) and asked <= found <= asked + PATIENCE_MS


def reason(fact: object) -> Reason | None:
    return fact.reason if isinstance(fact, Unknown) else None


async def test_facts_are_what_another_client_is_told(server: Server) -> None:
    client = server.client()
    types = fill(server, client)
    async with connected(target_of(server)) as connection:
        for key, kind in types.items():
            facts = await key_facts(connection, key)
            assert facts.type == kind
            assert facts.encoding == client.execute_command("OBJECT", "ENCODING", key)
            assert key in UNSTEADY_MEMORY or facts.memory_bytes == client.memory_usage(key, samples=1000)
            assert same_ttl(facts.ttl_ms, client.pttl(key))
            assert facts.length == client.execute_command(LENGTHS[kind], key)
            assert reason(facts.frequency) is Reason.UNSUPPORTED
            assert isinstance(facts.idle_s, int)
            assert facts.touched is not has_no_touch(server)


async def test_rows_are_what_another_client_is_told(server: Server) -> None:
    client = server.client()
    types = fill(server, client)
    async with connected(target_of(server)) as connection:
        rows = await row_facts(connection, [*types, b"absent"])
    assert [row.key for row in rows] == [*types, b"absent"]
    assert rows[-1].is_gone
    for row, (key, kind) in zip(rows, types.items(), strict=False):
        assert row.type == kind
        if kind == b"stream" and walks_streams(server):
            assert reason(row.memory_bytes) is Reason.NOT_ASKED
        else:
            assert key in UNSTEADY_MEMORY or row.memory_bytes == client.memory_usage(key)
        assert same_ttl(row.ttl_ms, client.pttl(key))


async def test_rows_with_room_for_more_say_what_another_client_is_told(server: Server) -> None:
    client = server.client()
    types = fill(server, client)
    async with connected(target_of(server)) as connection:
        *rows, absent = await row_facts(connection, [*types, b"absent"], with_more=True)
    assert absent.is_gone
    for row, (key, kind) in zip(rows, types.items(), strict=True):
        assert row.has_more
        assert row.encoding == client.execute_command("OBJECT", "ENCODING", key)
        if has_no_touch(server):
            assert row.length == client.execute_command(LENGTHS[kind], key)
            assert isinstance(row.idle_s, int)
        else:
            assert (reason(row.length), reason(row.idle_s)) == (Reason.NOT_ASKED, Reason.NOT_ASKED)


async def test_rows_with_room_for_more_take_three_round_trips_once_the_rights_are_known(valkey: Server) -> None:
    client = valkey.client()
    for index in range(50):
        client.set(f"key:{index}", index)
        client.rpush(f"key:{50 + index}", index)
    keys = [b"key:%d" % index for index in range(100)]
    async with connected(target_of(valkey)) as connection:
        capabilities = Capabilities()
        await row_facts(connection, keys, capabilities, with_more=True)
        watched = Watched(connection)
        await row_facts(watched, keys, capabilities, with_more=True)
    first, memory, lengths = watched.runs
    assert first == ["OBJECT IDLETIME + TYPE + PTTL + OBJECT ENCODING"]
    assert memory == ["MEMORY USAGE", "MEMORY USAGE"]
    assert sorted(lengths) == ["LLEN", "STRLEN"]


def test_every_length_asked_is_known_to_the_tests() -> None:
    assert {kind: ask.spec.name for kind, ask in length_commands().items()} == LENGTHS


def walks_streams(server: Server) -> bool:
    """Whether MEMORY USAGE of a stream walks over all its groups and consumers."""
    return server.product == "redis" and server.version < (8, 4)


async def test_rows_take_two_round_trips_once_the_rights_are_known(server: Server) -> None:
    client = server.client()
    for index in range(50):
        client.set(f"key:{index}", index)
        client.rpush(f"key:{50 + index}", index)
    async with connected(target_of(server)) as connection:
        capabilities = Capabilities()
        await capabilities.probe(connection)
        watched = Watched(connection)
        await row_facts(watched, [b"key:%d" % index for index in range(100)], capabilities)
        assert watched.runs == [["TYPE + PTTL"], ["MEMORY USAGE", "MEMORY USAGE"], ["OBJECT ENCODING"]]


async def test_facts_of_a_key_take_two_round_trips_and_touch_last(valkey: Server) -> None:
    valkey.client().rpush("key", 1)
    async with connected(target_of(valkey)) as connection:
        watched = Watched(connection)
        await key_facts(watched, b"key")
    first, second = watched.runs
    assert first == ["OBJECT IDLETIME", "TYPE", "PTTL", "OBJECT ENCODING"]
    assert second == ["MEMORY USAGE", "LLEN"]


async def test_no_rows_ask_nothing(valkey: Server) -> None:
    async with connected(target_of(valkey)) as connection:
        watched = Watched(connection)
        assert await row_facts(watched, []) == []
    assert watched.runs == []


async def test_a_row_listed_twice_is_answered_twice(valkey: Server) -> None:
    valkey.client().set("key", 1)
    async with connected(target_of(valkey)) as connection:
        rows = await row_facts(connection, [b"key", b"gone", b"key"])
    assert [row.is_gone for row in rows] == [False, True, False]


async def test_long_names_are_not_sent_for_rows_and_longer_ones_not_at_all(valkey: Server) -> None:
    long, longer = b"k" * (64 * 1024 + 1), b"k" * ((1 << 20) + 1)
    valkey.client().set(long, 1)
    async with connected(target_of(valkey)) as connection:
        (row,) = await row_facts(connection, [long])
        assert {reason(row.type), reason(row.ttl_ms), reason(row.memory_bytes)} == {Reason.TOO_LARGE}
        assert (await key_facts(connection, long)).type == b"string"
        watched = Watched(connection)
        facts = await key_facts(watched, longer)
        assert reason(facts.type) is Reason.TOO_LARGE
        assert watched.runs == []


async def test_a_name_of_any_bytes_is_asked_for_as_it_is(server: Server) -> None:
    name = bytes(range(256)) + b"\r\n$3\r\n"
    server.client().set(name, b"value")
    async with connected(target_of(server)) as connection:
        assert (await key_facts(connection, name)).length == 5
        assert (await row_facts(connection, [name, b""]))[0].type == b"string"


async def test_the_moment_of_expiry_comes_from_the_clock_given(valkey: Server) -> None:
    valkey.client().set("key", 1, px=500_000)
    async with connected(target_of(valkey)) as connection:
        facts = await key_facts(connection, b"key", clock=lambda: 1_000.0)
    assert isinstance(facts.ttl_ms, int)
    assert facts.expires_at_s == 1_000.0 + facts.ttl_ms / 1000


async def test_a_key_that_is_not_there_is_gone_not_without_ttl(server: Server) -> None:
    async with connected(target_of(server)) as connection:
        facts = await key_facts(connection, b"absent")
        (row,) = await row_facts(connection, [b"absent"])
    assert facts.is_gone
    assert row.is_gone
    assert facts.ttl_ms == row.ttl_ms == GONE
    assert not isinstance(facts.ttl_ms, NoTtl)


@pytest.mark.parametrize("kind", ["hash", "list", "set", "zset"])
async def test_a_key_that_vanishes_before_its_length_is_asked_is_gone(valkey: Server, kind: str) -> None:
    client = valkey.client()
    write = {"hash": "HSET", "list": "RPUSH", "set": "SADD", "zset": "ZADD"}[kind]
    client.execute_command(write, "key", 1, *([2] if kind in ("hash", "zset") else []))
    async with connected(target_of(valkey)) as connection:
        watched = Watched(connection)
        watched.before[1] = lambda: client.delete("key")
        assert (await key_facts(watched, b"key")).is_gone


async def test_the_length_of_a_key_whose_name_another_one_has_taken_says_so(valkey: Server) -> None:
    client = valkey.client()
    client.rpush("key", 1)
    async with connected(target_of(valkey)) as connection:
        watched = Watched(connection)
        watched.before[1] = lambda: (client.delete("key"), client.set("key", 1))
        length = (await key_facts(watched, b"key")).length
    assert isinstance(length, Unknown)
    assert length.reason is Reason.GONE
    assert "a key of another type" in length.detail


async def test_under_an_lfu_policy_there_is_a_frequency_and_no_idle_time(lfu_server: Server) -> None:
    client = lfu_server.client()
    client.set("key", 1)
    for _ in range(20):
        client.get("key")
    settings = LfuSettings(log_factor=0, assumed=False)
    async with connected(target_of(lfu_server)) as connection:
        facts = await key_facts(connection, b"key", lfu=settings)
    assert facts.frequency == Frequency(client.object("freq", "key"), settings)
    assert isinstance(facts.idle_s, Unknown)
    assert facts.idle_s.reason is Reason.UNSUPPORTED
    assert "allkeys-lfu" in facts.idle_s.detail


async def test_a_policy_that_changes_while_connected_is_noticed(valkey: Server) -> None:
    client = valkey.client()
    client.set("key", 1)
    async with connected(target_of(valkey)) as connection:
        capabilities = Capabilities()
        await capabilities.probe(connection)
        client.config_set("maxmemory-policy", "allkeys-lfu")
        facts = await key_facts(connection, b"key", capabilities)
        assert isinstance(facts.frequency, Frequency)
        assert reason(facts.idle_s) is Reason.UNSUPPORTED
        again = await key_facts(connection, b"key", capabilities)
        assert isinstance(again.frequency, Frequency)


async def test_idle_time_counts_from_the_last_write_under_an_lrm_policy(redis86: Server) -> None:
    redis86.client().config_set("maxmemory-policy", "allkeys-lrm")
    redis86.client().set("key", 1)
    async with connected(target_of(redis86)) as connection:
        facts = await key_facts(connection, b"key")
    assert isinstance(facts.idle_s, int)
    assert facts.idle_basis is IdleBasis.WRITE


OPTIONAL = {
    Feature.TYPE: "type", Feature.PTTL: "ttl_ms", Feature.MEMORY_USAGE: "memory_bytes",
    Feature.OBJECT_ENCODING: "encoding", Feature.OBJECT_IDLETIME: "idle_s", Feature.STRLEN: "length",
}  # fmt: skip


@pytest.mark.parametrize("feature", OPTIONAL)
async def test_a_denied_command_costs_its_fact_and_no_other(server: Server, feature: Feature) -> None:
    client = server.client()
    client.set("key", "value", px=1_000_000)
    rule = feature.lower().replace(" ", "|") if server.version >= (7, 0) else feature.split(" ")[0].lower()
    client.execute_command("ACL", "SETUSER", "some", "on", ">word", "~*", "+@all", f"-{rule}")
    lost = {OPTIONAL[feature]}
    if feature is Feature.TYPE:
        lost |= {"length", "memory_bytes"}
    if server.version < (7, 0) and rule == "object":
        lost |= {"encoding", "idle_s"}
    async with connected(target_of(server, user="some", password=Secret("word"))) as connection:
        capabilities = Capabilities()
        facts = await key_facts(connection, b"key", capabilities)
        unknown = {name for name in OPTIONAL.values() if isinstance(getattr(facts, name), Unknown)}
        assert unknown == lost
        assert reason(getattr(facts, OPTIONAL[feature])) is Reason.DENIED
        assert {reason(getattr(facts, name)) for name in unknown} <= {Reason.DENIED, Reason.NOT_ASKED}
        watched = Watched(connection)
        await key_facts(watched, b"key", capabilities)
        await row_facts(watched, [b"key", b"key2"], capabilities)
        assert not any(feature.value in name for run in watched.runs for name in run)


async def test_a_refused_command_is_refused_once_for_all_rows(valkey: Server) -> None:
    client = valkey.client()
    client.mset({f"key:{index}": index for index in range(50)})
    client.execute_command("ACL", "SETUSER", "some", "on", ">word", "~*", "+@all", "-memory|usage")
    async with connected(target_of(valkey, user="some", password=Secret("word"))) as connection:
        rows = await row_facts(connection, [b"key:%d" % index for index in range(50)])
    assert {(row.type, row.ttl_ms, reason(row.memory_bytes)) for row in rows} == {(b"string", NO_TTL, Reason.DENIED)}
    (entry,) = client.acl_log()
    assert (entry["object"], entry["count"]) == ("memory|usage", 1)


async def test_a_renamed_command_is_unknown_and_the_rest_is_there(without_memory: Server) -> None:
    without_memory.client().set("key", 1)
    async with connected(target_of(without_memory)) as connection:
        facts = await key_facts(connection, b"key")
    assert reason(facts.memory_bytes) is Reason.UNKNOWN_COMMAND
    assert (facts.type, facts.length, facts.encoding) == (b"string", 1, b"int")


async def test_a_key_that_the_user_may_not_read_is_a_state_of_that_key(server: Server) -> None:
    client = server.client()
    client.mset({"mine:1": 1, "theirs:1": 2, "mine:2": 3})
    client.execute_command("ACL", "SETUSER", "some", "on", ">word", "~mine:*", "+@all")
    async with connected(target_of(server, user="some", password=Secret("word"))) as connection:
        capabilities = Capabilities()
        rows = await row_facts(connection, [b"theirs:1", b"mine:1", b"theirs:1", b"mine:2"], capabilities)
        facts = await key_facts(connection, b"theirs:1", capabilities)
        mine = await key_facts(connection, b"mine:1", capabilities)
    assert [reason(row.type) for row in rows] == [Reason.DENIED, None, Reason.DENIED, None]
    assert capabilities[Feature.TYPE].verdict is Verdict.YES
    assert not facts.is_gone
    assert reason(facts.type) is Reason.DENIED
    assert mine.type == b"string"


async def test_without_no_touch_idle_time_is_read_before_the_length_touches(redis62: Server) -> None:
    client = redis62.client()
    client.rpush("key", 1)
    age(redis62, b"key", 100)
    async with connected(target_of(redis62)) as connection:
        facts = await key_facts(connection, b"key")
        assert isinstance(facts.idle_s, int)
        assert facts.idle_s >= 100
        assert facts.touched
        age(redis62, b"key", 100)
        facts = await key_facts(connection, b"key", may_touch=False)
        assert reason(facts.length) is Reason.NOT_ASKED
        assert not facts.touched
        assert idle_s(client, b"key") >= 100


async def test_an_idle_time_that_rtui_itself_has_reset_is_still_told(without_no_touch: Server) -> None:
    client = without_no_touch.client()
    client.set("key", "value")
    age(without_no_touch, b"key", 230)
    async with connected(target_of(without_no_touch)) as connection:
        first = await key_facts(connection, b"key")
        await key_preview(connection, first)
        again = await key_facts(connection, b"key")
        await key_preview(connection, again, Page(number=2, position=2))
        third = await key_facts(connection, b"key")
    assert idle_s(client, b"key") < 230
    for facts in (first, again, third):
        assert isinstance(facts.idle_s, int)
        assert facts.idle_s >= 230
    assert first.notes == ()
    assert again.notes == third.notes == (IDLE_NOTE,)


async def test_a_use_by_somebody_else_is_told_as_the_server_tells_it(without_no_touch: Server) -> None:
    without_no_touch.client().set("key", "value")
    age(without_no_touch, b"key", 230)
    async with connected(target_of(without_no_touch)) as connection:
        await key_facts(connection, b"key")
        age(without_no_touch, b"key", 100)
        facts = await key_facts(connection, b"key")
    assert isinstance(facts.idle_s, int)
    assert 100 <= facts.idle_s < 230
    assert facts.notes == ()


async def test_an_idle_time_is_read_again_before_a_page_that_is_turned_later(redis70: Server) -> None:
    redis70.client().set("key", "value" * 5_000)
    async with connected(target_of(redis70)) as connection:
        facts = await key_facts(connection, b"key")
        watched = Watched(connection)
        await key_preview(watched, facts)
        await key_preview(watched, replace(facts, asked_at_s=facts.asked_at_s - 60))
    assert watched.runs == [["GETRANGE", "TYPE"], ["OBJECT IDLETIME", "GETRANGE", "TYPE"]]


async def test_a_counter_that_rtui_itself_may_have_raised_says_so(redis70: Server) -> None:
    client = redis70.client()
    client.config_set("maxmemory-policy", "allkeys-lfu")
    client.set("key", "value")
    mark(redis70, b"key", "FREQ", 50)
    async with connected(target_of(redis70)) as connection:
        first = await key_facts(connection, b"key")
        again = await key_facts(connection, b"key")
    assert isinstance(first.frequency, Frequency)
    assert first.notes == ()
    (note,) = again.notes
    assert f"it was {first.frequency.counter} before" in note


def age(server: Server, key: bytes, seconds: int) -> None:
    """Make the key look as if nobody had used it for so long."""
    mark(server, key, "IDLETIME", seconds)


def mark(server: Server, key: bytes, what: str, value: int) -> None:
    """Write the key again with this idle time in seconds (`IDLETIME`) or access counter (`FREQ`)."""
    client = server.client()
    client.execute_command("RESTORE", key, 0, client.dump(key), "REPLACE", what, value)


def idle_s(client: redis.Redis, key: bytes) -> int:
    found: int = client.object("idletime", key)
    return found


@NO_TOUCH
async def test_idle_times_and_frequencies_survive_asking(server: Server) -> None:
    client = server.client()
    types = fill(server, client)
    for policy, asked in (("noeviction", "idletime"), ("allkeys-lfu", "freq")):
        client.config_set("maxmemory-policy", policy)
        client.config_set("lfu-log-factor", 0)
        for key, kind in types.items():
            if kind != b"vectorset":
                mark(server, key, asked.upper(), 77 if asked == "freq" else 5_000)
        before = {key: client.object(asked, key) for key in types}
        async with connected(target_of(server)) as connection:
            await row_facts(connection, list(types), with_more=True)
            for key in types:
                await key_facts(connection, key)
        for key in types:
            now = client.object(asked, key)
            assert before[key] <= now <= before[key] + 60 if asked == "idletime" else now == before[key]


async def test_a_replica_says_that_its_idle_times_are_its_own(valkey: Server) -> None:
    client = valkey.client()
    client.set("key", 1)
    client.execute_command("REPLICAOF", "127.0.0.1", 1)
    try:
        async with connected(target_of(valkey)) as connection:
            facts = await key_facts(connection, b"key")
    finally:
        client.execute_command("REPLICAOF", "NO", "ONE")
    assert facts.notes == (REPLICA_NOTE,)
    assert facts.length == 1


async def test_a_connection_cut_between_the_round_trips_is_lost_not_gone(valkey: Server) -> None:
    valkey.client().rpush("key", 1)
    async with DelayProxy(valkey.port) as proxy, connected(target_of(valkey, port=proxy.port)) as connection:
        watched = Watched(connection)
        watched.before[1] = proxy.cut
        with pytest.raises(ConnectionLost):
            await key_facts(watched, b"key")
        with pytest.raises(ConnectionLost):
            await row_facts(watched, [b"key"])


async def test_facts_are_the_same_in_both_protocols(server: Server) -> None:
    types = fill(server, server.client())
    keys = [key for key in types if key not in {b"string:expires", *UNSTEADY_MEMORY}]

    async def ask(protocol: int) -> tuple[list[KeyFacts], list[RowFacts]]:
        async with connected(target_of(server, protocol=protocol)) as connection:
            rows = await row_facts(connection, keys, clock=lambda: 0.0)
            facts = [await key_facts(connection, row.key, clock=lambda: 0.0) for row in rows]
        return [replace(one, idle_s=0) for one in facts], rows

    assert await ask(2) == await ask(3)


async def settings_of(server: Server, capabilities: Capabilities | None = None, **login: object) -> LfuSettings:
    async with connected(target_of(server, **login)) as connection:
        return await lfu_settings(connection, capabilities or Capabilities())


async def test_as_they_are_set(server: Server) -> None:
    admin = server.admin
    for setting, value in (("maxmemory-policy", "allkeys-lfu"), ("lfu-log-factor", 3), ("lfu-decay-time", 0)):
        admin.config_set(setting, value)
    assert await settings_of(server) == LfuSettings(3, 0, assumed=False)


async def test_a_server_without_counters_is_not_asked(server: Server) -> None:
    capabilities = Capabilities()
    assert await settings_of(server, capabilities) == LfuSettings()
    assert capabilities["CONFIG GET"].verdict is Verdict.UNTRIED


async def test_defaults_where_asking_is_denied(server: Server) -> None:
    server.admin.config_set("maxmemory-policy", "allkeys-lfu")
    server.admin.config_set("lfu-log-factor", 3)
    raw(server, "ACL", "SETUSER", "few", "on", ">word", "~*", "+@all", "-config")
    capabilities = Capabilities()
    found = await settings_of(server, capabilities, user="few", password=Secret("word"))
    assert found == LfuSettings(assumed=True)
    assert capabilities["CONFIG GET"].verdict is Verdict.DENIED


@pytest.mark.parametrize(
    "reply",
    [None, [], [b"lfu-log-factor"], [b"a", b"-1"], [b"a", b"9" * 30], [b"a", b"x"], 5, ServerError("ERR no")],
    ids=repr,
)
def test_odd_replies_tell_nothing(reply: Reply) -> None:
    assert parse_setting(reply) is None
