"""Load and clients driven into each state, and found: slow and banned commands, churn, blocked and large clients."""

from __future__ import annotations

import contextlib
import socket
from typing import Final

import pytest
import redis

from rtui.analysis.facts import Reason, Unknown
from rtui.analysis.health.panel import State
from tests.server.health.driven import Given, Looking, looking, number, raw_clients
from tests.server.targets import eventually
from tests.servers import Server

BUSY: Final = "local n = 0 for i = 1, 3000000 do n = n + i end return n"
"""A script that takes some 20 ms."""

ANY_TIME: Final[Given] = {"command-slow": {"longest": 0.0}}
"""Every command of the slow log is slow: none of these tests waits for one that is."""


def read(server: Server, name: str, times: int) -> None:
    with server.client() as client:
        pipeline = client.pipeline(transaction=False)
        for _ in range(times):
            pipeline.get(name)
        pipeline.execute()


async def test_slow_commands_by_namespace(server: Server) -> None:
    server.admin.config_set("slowlog-log-slower-than", 0)
    with server.client(client_name="nightly") as client:
        for at in range(4):
            client.sadd(f"shop:tags:{at}", *range(2_000))
        server.admin.slowlog_reset()
        for at in range(4):
            client.smembers(f"shop:tags:{at}")
            client.keys(f"shop:tags:{at}*")
        client.flushall()
    server.admin.config_set("slowlog-log-slower-than", -1)
    async with looking(server, ANY_TIME) as looked:
        await looked.look()
    rows = {(str(row[0]), row[1]): row for row in looked.table("slow", "slow").rows}
    assert rows["SMEMBERS", b"shop:tags:<id>"][2] == 4
    assert rows["KEYS", None][2] == 4
    assert rows["FLUSHALL", None][2] == 1
    assert all("nightly" in str(rows[one][-1]) for one in (("KEYS", None), ("FLUSHALL", None)))
    found = {str(one.where).partition(" ")[2]: one for one in looked.health.found.findings}
    of_tags = found["SMEMBERS of shop:tags:<id>"]
    assert of_tags.rule == "command-slow"
    assert "4 times" in of_tags.title
    assert of_tags.query == "pattern:shop:tags:<id>"
    assert any("nightly" in text for text in of_tags.evidence)
    assert "KEYS" in found
    line = looked.line("slow", "slow_entries")
    assert (line.state, number(line) >= 9) == (State.WARN, True)
    entries = looked.table("slow", "slow_entries")
    lines = [str(row[entries.column("line")]) for row in entries.rows]
    assert "SMEMBERS shop:tags:3" in lines
    assert "KEYS shop:tags:3*" in lines
    words = {row[entries.column("arguments")] for row in entries.rows if str(row[2]).startswith("KEYS")}
    assert words == ({2} if server.product == "redis" and server.version >= (8, 10) else {None})
    callers = looked.table("clients", "keys_callers")
    assert {row[callers.column("pattern")] for row in callers.rows} >= {b"shop:tags:%d*" % at for at in range(4)}
    assert any("rtui" not in str(row[2]) for row in callers.rows)


async def test_a_slow_script(server: Server) -> None:
    server.admin.config_set("slowlog-log-slower-than", 1_000)
    given: Given = {"command-slow": {"longest": 1.0, "calls": 1}}
    with server.client(client_name="batch") as client:
        client.eval(BUSY, 1, "shop:totals")
    async with looking(server, given) as looked:
        await looked.look()
    (found,) = [one for one in looked.health.found.findings if "EVAL" in one.where]
    assert found.title.startswith("EVAL of shop:totals took over 1ms 1 time, ")
    assert any("sent by batch" in text for text in found.evidence)
    commands = looked.table("load", "commands")
    (row,) = [one for one in commands.rows if one[0] == "EVAL"]
    assert row[commands.column("calls")] == 1
    assert isinstance(row[commands.column("p99")], float) == (server.version >= (7, 0))


async def test_commands_of_a_big_key(server: Server) -> None:
    server.admin.config_set("slowlog-log-slower-than", 0)
    with server.client() as client:
        client.sadd("shop:followers", *range(5_000))
        client.set("shop:name", "x")
        server.admin.slowlog_reset()
        for _ in range(3):
            client.smembers("shop:followers")
    server.admin.config_set("slowlog-log-slower-than", -1)
    async with looking(server, ANY_TIME) as looked:
        await looked.look()
        assert "key-big-slow" not in looked.broken
        await looked.analyse()
        await looked.look()
    found = looked.finding("key-big-slow")
    assert found.title.startswith("SMEMBERS of shop:followers took ")
    assert found.example_keys == (b"shop:followers",)
    assert looked.wrong("slow", "slow_big_keys").value == 1


async def test_banned_commands(server: Server) -> None:
    with server.client() as client:
        for _ in range(12):
            client.keys("*")
            client.flushall()
    async with looking(server) as looked:
        await looked.look()
    assert looked.broken == ["command-banned", "command-banned"]
    titles = [str(one.title) for one in looked.health.found.findings]
    assert titles[0].startswith("KEYS was called 12 times since ")
    assert titles[1].startswith("FLUSHALL was called 1")
    assert looked.wrong("load", "banned_commands").value == 2


async def test_delays(server: Server) -> None:
    server.admin.config_set("latency-monitor-threshold", 1)
    async with looking(server) as looked:
        await looked.look()
        assert looked.line("slow", "latency_monitor_threshold").value == 0.001
        server.admin.eval(BUSY, 0)
        sample = await looked.look()
    (event,) = [one for one in sample.latency if one.name == "command"]
    events, moments = looked.table("slow", "latency"), looked.table("slow", "latency_history")
    (row,) = [one for one in events.rows if one[0] == "command"]
    assert row[events.column("highest")] == event.highest_ms / 1000
    assert (event.at_s, "command", event.latest_ms / 1000) in moments.rows


async def test_hits_that_fell(server: Server) -> None:
    server.admin.set("there", "x")
    read(server, "there", 2_000)
    async with looking(server) as looked:
        await looked.look()
        read(server, "there", 500)
        await looked.look()
        assert looked.line("load", "hit_ratio").value == 1.0
        assert looked.broken == []
        read(server, "gone", 1_500)
        await looked.look()
    assert looked.broken == ["hit-ratio-fell"]
    assert looked.finding("hit-ratio-fell").title == "25% of reads hit; before it was 100%"
    assert looked.wrong("load", "hit_ratio").value == 0


async def test_what_rtui_reads_is_no_hit(server: Server) -> None:
    """An analysis looks keys up; the ratio is that of the others all the same.

    What it adds is counted by batches, which may be a few look-ups of a thousand too few or too many.
    """
    with server.client() as client:
        client.mset({f"key:{at}": "x" for at in range(300)})
    read(server, "gone", 300)
    read(server, "key:1", 100)
    async with looking(server) as looked:
        await looked.look()
        await looked.analyse()
        read(server, "gone", 3_000)
        read(server, "key:1", 1_000)
        sample = await looked.look()
    assert sample.own.hits > 300
    line = looked.line("load", "hit_ratio")
    assert 0.245 < number(line) < 0.255, "with its own reads it would be above 0.4"
    assert 0.245 < number(looked.line("load", "hit_ratio_total")) < 0.255


async def test_connections_that_come_and_go(server: Server) -> None:
    async with looking(server) as looked:
        await looked.look()
        for _ in range(8):
            with raw_clients(server, 200) as clients:
                for one in clients:
                    one.recv(16)
        await looked.look()
    assert looked.broken == ["connection-churn"]
    assert number(looked.wrong("load", "new_connections")) >= 1_600 / 30


async def test_a_main_thread_without_time(server: Server) -> None:
    async with looking(server, {"cpu-saturated": {"share": 0.002}}) as looked:
        await looked.look()
        for _ in range(10):
            server.admin.eval(BUSY, 0)
        await looked.look()
    assert "cpu-saturated" in looked.broken
    assert number(looked.wrong("load", "cpu_main_thread")) >= 0.002
    assert any(text.startswith("EVAL: ") for text in looked.finding("cpu-saturated").evidence)
    assert looked.line("load", "io_threads").value == "1"


async def test_errors(server: Server) -> None:
    server.admin.lpush("list", 1)
    with server.client() as client:
        for times in (2, 3):
            async with looking(server) as looked:
                await looked.look()
                for _ in range(times):
                    with contextlib.suppress(redis.ResponseError):
                        client.get("list")
                await looked.look()
    assert ("WRONGTYPE", 5, 3) in looked.table("load", "errors").rows
    assert looked.line("load", "error_replies").value == 0.1


async def test_load_that_rises_while_keys_expire(valkey: Server) -> None:
    with valkey.client() as client:
        for at in range(400):
            client.set(f"shop:cache:{at}", "x", ex=3_600)
            client.set(f"shop:session:{at}", "x", ex=7_200 + 300 * at)
    async with looking(valkey, every_s=60.0) as looked:
        (cliff, *_) = (await looked.analyse()).summary.expiry.cliffs
        await looked.look(after_s=cliff.start_s - 150 - looked.now_s)
        for times in (100, 100, 900):
            read(valkey, "shop:session:1", times)
            await looked.look()
    assert looked.broken == ["expiry-cliff-load"]
    assert "commands per second while shop:cache: expires" in looked.finding("expiry-cliff-load").title
    assert looked.wrong("load", "cliffs_with_load").value == 1


async def test_a_hot_key_that_expires(lfu_server: Server) -> None:
    with lfu_server.client() as client:
        client.set("shop:home", "x", ex=600)
        client.mset({f"shop:page:{at}": "x" for at in range(20)})
    read(lfu_server, "shop:home", 300)
    async with looking(lfu_server) as looked:
        await looked.analyse()
        await looked.look()
        assert looked.line("load", "hot_keys_expiring").value == 0
        await looked.look(after_s=530)
        assert looked.finding("hot-key-expiry-near").title.startswith("Hot key shop:home expires in ")
        assert looked.wrong("load", "hot_keys_expiring").value == 1
        await looked.look(after_s=600)
        assert "hot-key-expiry-near" not in looked.broken


MIB: Final = 1 << 20
LIMITS: Final = "normal 0 0 0 replica 268435456 67108864 60 pubsub 2097152 1048576 60"
MANY: Final = 5_000
"""Connections, more than are listed."""


def row_of(looked: Looking, table_id: str, name: bytes) -> dict[str, object]:
    """The row of the client with this name, by the ids of the columns."""
    table = looked.table("clients", table_id)
    (row,) = [row for row in table.rows if row[table.column("name")] == name]
    return {column.id: cell for column, cell in zip(table.columns, row, strict=True)}


def unread(server: Server, name: str) -> int:
    found = [one for one in server.admin.client_list() if one["name"] == name]
    return int(found[0]["omem"]) if found else -1


async def test_blocked_clients(server: Server) -> None:
    with raw_clients(server, 1, b"CLIENT SETNAME worker\r\nBLPOP jobs 0\r\n"):
        await eventually(lambda: server.admin.info("clients")["blocked_clients"] == 1)
        async with looking(server) as looked:
            await looked.look()
    assert looked.broken == []
    assert looked.line("load", "blocked_clients").value == looked.line("clients", "blocked_clients").value == 1
    row = row_of(looked, "clients", b"worker")
    assert (row["class"], row["state"], row["last"]) == ("normal", "blocked", "BLPOP")


async def test_refused_clients(server: Server) -> None:
    async with looking(server) as looked:
        await looked.look()
        server.admin.config_set("maxclients", int(server.admin.info("clients")["connected_clients"]))
        with raw_clients(server, 3) as clients:
            assert all(client.recv(64).startswith(b"-ERR max") for client in clients)
        await looked.look()
    assert looked.broken == ["connections-refused", "clients-limit"]
    assert looked.finding("connections-refused").title.startswith("3 connections refused since ")
    assert looked.wrong("clients", "connections_refused", State.BAD).value == 3
    looked.wrong("load", "connected_clients")
    looked.wrong("clients", "connected_clients")
    assert looked.line("load", "rejected_connections").value == 0.1


async def test_a_subscriber_that_does_not_read(server: Server) -> None:
    server.admin.config_set("client-output-buffer-limit", LIMITS)
    with raw_clients(server, 1, b"CLIENT SETNAME lazy\r\nSUBSCRIBE news weather\r\n") as (client,):
        await eventually(lambda: server.admin.pubsub_numsub("news")[0][1] == 1)
        async with looking(server) as looked:
            await looked.look()
            assert looked.broken == []
            while 0 <= unread(server, "lazy") < 1.2 * MIB:
                server.admin.publish("news", "x" * 10_000)
            await looked.look()
            assert looked.broken == ["output-buffers"]
            told = looked.finding("output-buffers").evidence[0]
            assert "lazy" in told
            assert told.endswith("subscriber, closed at 2.00 MiB, or after 1m above 1.00 MiB")
            assert number(looked.wrong("clients", "largest_output")) > MIB
            assert row_of(looked, "subscribers", b"lazy")["subscriptions"] == 2
            assert row_of(looked, "clients", b"lazy")["class"] == "subscriber"
            assert ("subscriber", 2 * MIB, MIB, 60) in looked.table("clients", "buffer_limits").rows
            while unread(server, "lazy") >= 0:
                server.admin.publish("news", "x" * 100_000)
            await looked.look()
            closed = looked.line("clients", "client_output_buffer_limit_disconnections")
            if isinstance(closed.value, Unknown):
                assert looked.broken == [], "this version does not count those that it closes"
            else:
                assert looked.finding("clients-closed").evidence == ("1 for unread output",)
        with contextlib.suppress(ConnectionError):
            client.recv(1)


async def test_replies_that_a_client_does_not_read(server: Server) -> None:
    """Of values that are not large: Redis 8.6 keeps no copy of large ones for a reply, and does not count them."""
    server.admin.set("text", "x" * 1_000)
    given: Given = {"output-buffers": {"size": 8 * MIB}}
    with raw_clients(server, 1, b"CLIENT SETNAME lazy\r\n" + b"GET text\r\n" * 12_000):
        await eventually(lambda: unread(server, "lazy") > 10 * MIB)
        async with looking(server, given) as looked:
            await looked.look()
    assert looked.broken == ["output-buffers"]
    assert looked.table("clients", "clients").rows[0][1] == b"lazy", "the largest comes first"
    assert looked.finding("output-buffers").evidence[0].endswith("normal")


async def test_a_request_that_does_not_end(server: Server) -> None:
    server.admin.config_set("client-query-buffer-limit", MIB)
    request = b"CLIENT SETNAME slow\r\n*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$2000000\r\n" + b"x" * 700_000
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(server.socket)
        client.sendall(request)
        async with looking(server) as looked:
            await eventually(lambda: any(int(one["qbuf"]) >= 700_000 for one in server.admin.client_list()))
            await looked.look()
            assert looked.broken == ["query-buffers"]
            assert "slow" in looked.finding("query-buffers").evidence[0]
            assert number(looked.wrong("clients", "largest_query")) >= 700_000
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                client.sendall(b"x" * 900_000)
            await eventually(lambda: all(one["name"] != "slow" for one in server.admin.client_list()))
            await looked.look()
            closed = looked.line("clients", "client_query_buffer_limit_disconnections")
            assert looked.broken == ([] if isinstance(closed.value, Unknown) else ["clients-closed"])


async def test_who_has_sent_keys(server: Server) -> None:
    server.admin.config_set("slowlog-log-slower-than", -1)
    with server.client(client_name="nightly") as client:
        client.keys("shop:*")
        async with looking(server) as looked:
            await looked.look()
    assert row_of(looked, "keys_callers", b"nightly")["took"] is None
    assert row_of(looked, "clients", b"nightly")["last"] == "KEYS"


@pytest.mark.slow
async def test_thousands_of_clients(valkey: Server) -> None:
    with raw_clients(valkey, MANY):
        async with looking(valkey) as looked:
            await looked.look()
        assert "cmdstat_client|list" not in valkey.admin.info("commandstats")
    assert looked.broken == []
    assert number(looked.line("clients", "connected_clients")) > MANY
    line = looked.line("clients", "largest_output")
    assert isinstance(line.value, Unknown)
    assert (line.value.reason, line.state) == (Reason.TOO_LARGE, State.UNKNOWN)
    assert "5,00" in line.value.detail
    assert any("CLIENT LIST is not available: 5,00" in note for note in looked.panel("clients").notes)
    assert {one.rule for one in looked.health.found.unjudged} == {
        *("output-buffers", "query-buffers", "monitor-attached", "default-user-open", "version-outdated")
    }
