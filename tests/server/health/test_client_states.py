"""Clients in each state, and found: blocked, refused, subscribed, with much unread or unfinished, and many of them."""

from __future__ import annotations

import contextlib
import socket
from typing import Final

import pytest

from rtui.analysis.facts import Reason, Unknown
from rtui.analysis.health.panel import State
from tests.server.health.driven import Given, Looking, looking, number, raw_clients
from tests.server.targets import eventually
from tests.servers import Server

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
    """How much a client has not read."""
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
            row = row_of(looked, "subscribers", b"lazy")
            assert row["subscriptions"] == 2
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
        *("output-buffers", "query-buffers", "monitor-attached", "default-user-open"),
    }
