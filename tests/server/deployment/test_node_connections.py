"""Connections to nodes: which node is asked on the home connection, and which connections stay open."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import pytest

from rtui.server.deployment.connections import MOST_IDLE, NodeConnections, connection_to
from rtui.server.deployment.topology import Node
from rtui.server.wire.connection import Closed, Lost, Online
from rtui.server.wire.errors import ConnectionLost
from tests.server.targets import connected, eventually, target_of
from tests.servers import Server, free_port


@asynccontextmanager
async def connections(
    server: Server, ids: Sequence[str], *, is_needed: Callable[[str], bool] = lambda _: False
) -> AsyncIterator[tuple[NodeConnections, dict[str, Node]]]:
    """Connections to nodes of these ids, which all are one server, and the nodes; `a` is the home connection's."""
    target = target_of(server)
    nodes = {one: Node(one, target.host, target.port) for one in ids}
    async with connected(target) as home:
        found = NodeConnections(home, connection_to, nodes.get, is_needed)
        found.know_home("a", home.generation)
        try:
            yield found, nodes
        finally:
            await found.close()


async def test_the_home_connection_serves_its_node_unless_a_scan_needs_one(valkey: Server) -> None:
    async with connections(valkey, "ab") as (nodes, _):
        home = await nodes.connection("a")
        assert nodes.link("a") is None
        other = await nodes.connection("b")
        assert other is not home
        assert await nodes.connection("b") is other
        assert isinstance(nodes.link("b"), Online)
        nodes.keep_open("a")
        own = await nodes.connection("a")
        assert own is not home
        assert own.is_online
        nodes.forget("a")
        assert await nodes.connection("a") is home
        await eventually(lambda: isinstance(own.state, Closed))


async def test_after_a_reconnect_nobody_knows_which_node_the_home_connection_leads_to(valkey: Server) -> None:
    async with connections(valkey, "a") as (nodes, known):
        home = await nodes.connection("a")
        assert nodes.target_of(known["a"]) is home.target
        nodes.know_home("a", home.generation - 1)
        assert await nodes.connection("a") is not home
        assert nodes.target_of(known["a"]) is not home.target


async def test_of_many_connections_those_stay_that_were_used_last_or_are_needed(valkey: Server) -> None:
    ids = [f"n{number}" for number in range(MOST_IDLE)]
    scanned, needed, more = ["s1", "s2"], ["r"], ["m1", "m2"]
    every = [*scanned, *needed, *ids, *more]
    async with connections(valkey, every, is_needed=needed.__contains__) as (nodes, _):
        for one in scanned:
            nodes.keep_open(one)
        opened = {one: await nodes.connection(one) for one in [*scanned, *needed, *ids]}
        assert not any(isinstance(one.state, Closed) for one in opened.values())
        assert await nodes.connection(ids[0]) is opened[ids[0]]  # so it is not the one that was used longest ago
        for one in more:
            opened[one] = await nodes.connection(one)
        gone = ids[1:3]
        await eventually(lambda: all(isinstance(opened[one].state, Closed) for one in gone))
        assert [one for one in every if nodes.link(one) is None] == gone
        assert await nodes.connection(gone[0]) is not opened[gone[0]]


async def test_a_node_that_is_gone_or_down(valkey: Server) -> None:
    async with connections(valkey, "a") as (nodes, known):
        with pytest.raises(ConnectionLost, match="not in the cluster any more"):
            await nodes.connection("b")
        known["b"] = Node("b", "127.0.0.1", free_port())
        down = await nodes.connection("b")
        assert isinstance(down.state, Lost)
        assert isinstance(nodes.link("b"), Lost)


async def test_closing_ends_all_but_the_home_connection(valkey: Server) -> None:
    async with connections(valkey, "abc") as (nodes, _):
        home, second, third = [await nodes.connection(one) for one in "abc"]
        nodes.forget("b")
        await nodes.close()
        assert isinstance(second.state, Closed)
        assert isinstance(third.state, Closed)
        assert home.is_online
