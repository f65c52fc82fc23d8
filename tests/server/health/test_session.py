"""The health of servers that are browsed: what is said anyway, and full samples while somebody looks."""

from __future__ import annotations

from pathlib import Path

import pytest

from rtui.analysis.formats.samples import read_samples
from rtui.analysis.health.sample import Source
from rtui.server.browsing.session import BrowsingSession
from rtui.server.deployment.nodes import Deployment
from rtui.server.health.session import HealthSession, Trouble
from rtui.server.wire.capability import Capabilities
from rtui.server.wire.command_log import Purpose
from rtui.server.wire.secret import Secret
from tests.clusters import TestCluster
from tests.proxy import DelayProxy
from tests.server.browsing.test_session import browsing
from tests.server.targets import eventually, target_of
from tests.servers import Server, running


@pytest.fixture(autouse=True)
def quick_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the server asked for what it says anyway as soon as it has answered."""
    monkeypatch.setattr("rtui.server.health.session.REFRESH_EVERY_S", 0.02)


def is_asked(session: BrowsingSession) -> bool:
    """Whether a full sample was asked for."""
    return any(entry.purpose is Purpose.HEALTH for entry in session.log.entries)


async def test_what_is_wrong_is_known_without_asking_anything_more(server: Server, tmp_path: Path) -> None:
    with server.client() as client:
        client.mset({f"key:{number}": "x" for number in range(2_000)})
        client.config_set("maxmemory", "100mb")
        client.config_set("maxmemory-policy", "volatile-lru")
    async with browsing(target_of(server), tmp_path) as session:
        await eventually(lambda: session.status.trouble is not None)
        assert session.status.trouble == Trouble("cannot evict", is_error=False)
        panels = session.health.panels(session.health.nodes[0])
        assert {panel.id for panel in panels} > {"memory", "load", "clients"}
        assert not is_asked(session)
        with server.client() as client:
            client.config_set("maxmemory-policy", "allkeys-lru")
        await eventually(lambda: session.status.trouble is None)


async def test_nothing_is_wrong_with_a_server_in_order(server: Server, tmp_path: Path) -> None:
    async with browsing(target_of(server), tmp_path) as session:
        await eventually(lambda: bool(session.health.nodes))
        assert session.status.trouble is None


async def test_full_samples_are_taken_while_somebody_looks(server: Server, tmp_path: Path) -> None:
    async with browsing(target_of(server), tmp_path) as session:
        health = session.health
        health.begin()
        await eventually(lambda: bool(health.nodes) and is_asked(session))
        (node,) = health.nodes
        await eventually(lambda: any(panel.id == "configuration" and panel.tables for panel in health.panels(node)))
        health.ask_now()
        await eventually(lambda: health.first_at_s(node) != health.asked_at_s(node))
        health.end()
        assert health.failure(node) is None
        file = read_samples(line.encode() for line in health.sample_lines())
        assert [one.at_ms for one in file.nodes[node]][-1] == round((health.asked_at_s(node) or 0) * 1000)
        assert health.denied(node) == ()
        assert health.nodes_table is None


async def test_a_user_without_rights_is_told_which(valkey: Server, tmp_path: Path) -> None:
    rights = ["+@read", "+scan", "+ping", "+hello", "+client", "-client|list", "+info", "+select"]
    with valkey.client() as client:
        client.execute_command("ACL", "SETUSER", "poor", "on", ">x", "~*", *rights)
    async with browsing(target_of(valkey, user="poor", password=Secret("x")), tmp_path) as session:
        session.health.begin()
        await eventually(lambda: bool(session.health.nodes) and is_asked(session))
        (node,) = session.health.nodes
        await eventually(lambda: Source.CLIENTS in session.health.denied(node))
        assert {Source.SLOW_LOG, Source.SETTINGS} <= set(session.health.denied(node))


async def test_a_restart_is_told(valkey: Server, tmp_path: Path) -> None:
    async with browsing(target_of(valkey), tmp_path) as session:
        await eventually(lambda: bool(session.health.nodes))
        (node,) = session.health.nodes
        assert session.health.warning(node) is None
        valkey.restart()
        await eventually(lambda: session.health.warning(node) is not None)
        assert "restarted" in str(session.health.warning(node))


@pytest.mark.slow
async def test_another_server_at_the_address_is_no_restart(valkey: Server) -> None:
    """As after a failover. The clock stands still, so the other one has run for longer than the time between."""

    def is_told() -> bool:
        deployment.home.retry_now()
        health.ask_now()
        return any(health.warning(node) is not None for node in health.nodes)

    with running(valkey.binary) as other:
        await eventually(lambda: other.admin.info("server")["uptime_in_seconds"] >= 3)
        async with DelayProxy(valkey.port) as proxy:
            deployment = Deployment(target_of(valkey, port=proxy.port))
            await deployment.open()
            health = HealthSession(deployment, Capabilities(), clock=lambda: 1e9, report=lambda: None, registry=None)
            health.begin()
            await eventually(lambda: bool(health.nodes))
            proxy.lead_to(other.port)
            proxy.cut()
            await eventually(is_told)
            (node,) = health.nodes
            assert str(health.warning(node)).startswith("Another server answers since 2001-09-09")
            await health.close()
            await deployment.close()


@pytest.mark.parametrize("cluster", ["valkey-9.1"], indirect=True)
async def test_the_nodes_of_a_cluster(cluster: TestCluster, tmp_path: Path) -> None:
    async with browsing(target_of(cluster.members[0].server), tmp_path) as session:
        health = session.health
        health.begin()
        await eventually(lambda: len(health.nodes) == len(cluster.members))
        table = health.nodes_table
        assert table is not None
        assert set(table.subjects) == set(health.nodes)
        roles = [row[table.column("role")] for row in table.rows]
        assert roles.count("primary") == sum(bool(one.slots) for one in cluster.members)
        for node in health.nodes:
            assert health.panels(node)
