"""Samples of servers every few seconds, and fleets: dead ones hold nobody up, all come back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.formats.fleet import FleetServer
from rtui.analysis.formats.samples import read_samples
from rtui.analysis.health.sample import LEAST_SAMPLES, ClientFigures, Sample, SampleHistory, Source
from rtui.keyspace.text.display import SafeText
from rtui.server.browsing.session import BrowsingSession
from rtui.server.deployment.nodes import Deployment
from rtui.server.guard.command import Secret
from rtui.server.health.fleet import AT_ONCE, KEPT, Fleet
from rtui.server.health.session import HealthSession, Trouble
from rtui.server.health.watch import HealthWatch
from rtui.server.wire.capability import Capabilities
from rtui.server.wire.command_log import Purpose
from rtui.server.wire.target import Target, parse_target
from tests.clusters import TestCluster, watched
from tests.conftest import known, require
from tests.monitor import Recorder
from tests.proxy import DelayProxy
from tests.server.browsing.test_session import browsing
from tests.server.targets import eventually, target_of, until
from tests.servers import Server, free_port, running
from tests.wire import Listener

CLIENT = ClientFigures(1, b"127.0.0.1:1")


@asynccontextmanager
async def watching(target: Target) -> AsyncIterator[tuple[HealthWatch, Deployment]]:
    deployment = Deployment(target)
    await deployment.open()
    try:
        yield HealthWatch(deployment), deployment
    finally:
        await deployment.close()


async def test_one_server_in_rounds(server: Server) -> None:
    heard: list[Sample] = []
    async with watching(target_of(server)) as (watch, _):
        watch.on_sample.append(heard.append)
        await watch.look()
        await watch.look()
    (node,) = watch.nodes
    assert [one.at_ms for one in node.samples] == [one.at_ms for one in heard]
    assert node.samples[0].node == f"127.0.0.1:{server.port}" == node.label
    assert not node.samples[0].clients
    assert node.samples[1].clients == heard[0].clients
    assert Source.CLIENTS not in heard[1].sources


async def test_rounds_go_on_by_themselves_and_at_once_when_asked_to(valkey: Server) -> None:
    async with watching(target_of(valkey)) as (watch, _):
        running = asyncio.create_task(watch.run())
        await eventually(lambda: watch.revision == 1)
        watch.ask_now()
        await eventually(lambda: watch.revision == 2)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    first, second = watch.nodes[0].samples
    assert set(second.sources) >= set(first.sources)


async def test_a_server_that_is_gone_and_comes_back(valkey: Server) -> None:
    async with watching(target_of(valkey)) as (watch, deployment):
        await watch.look()
        valkey.stop()
        await until(deployment.home, lambda: not deployment.home.is_online)
        await watch.look()
        (node,) = watch.nodes
        assert node.failure
        assert len(node.samples) == 1
        valkey.start()
        deployment.home.retry_now()
        await until(deployment.home, lambda: deployment.home.is_online)
        await watch.look()
        before, after = watch.nodes[0].samples
        assert not watch.nodes[0].failure
    assert before.info["run_id"] != after.info["run_id"]
    assert after.commands["INFO"].calls < 40


@pytest.mark.parametrize("cluster", ["valkey-9.1"], indirect=True)
async def test_all_nodes_of_a_cluster(cluster: TestCluster) -> None:
    async with watching(target_of(cluster.members[0].server)) as (watch, deployment):
        await watch.look()
        nodes = list(known(deployment.topology).nodes)
        assert {node.label for node in watch.nodes} == {node.label for node in nodes}
        for node in watch.nodes:
            (sample,) = node.samples
            assert sample.info["cluster_state"] == "ok"
            assert Source.CLUSTER_INFO in sample.sources
        connections = {node.id: await deployment.connection_of(node.id) for node in nodes}
        await watch.look()
        assert {node.id: await deployment.connection_of(node.id) for node in nodes} == connections


@pytest.mark.slow
async def test_a_service_of_sentinels_is_watched_over_a_failover() -> None:
    def is_at_replica() -> bool:
        deployment.home.retry_now()
        return deployment.home.target.port == replica.port and deployment.home.is_online

    with watched(require("valkey-9.1")) as service:
        primary, replica = service.servers
        async with watching(parse_target(service.url)) as (watch, deployment):
            await watch.look()
            primary.stop()
            async with asyncio.timeout(30):
                await eventually(is_at_replica)
            await watch.look()
        (node,) = watch.nodes
    assert node.failure is None
    assert [one.info["role"] for one in node.samples] == ["master", "master"]
    assert len({one.info["run_id"] for one in node.samples}) == 2
    assert {one.node for one in node.samples} == {node.label}


@given(st.integers(1, 200), st.integers(0, 60))
def test_a_history_is_bounded_and_keeps_its_ends(samples: int, most: int) -> None:
    history = SampleHistory(most)
    for at_ms in range(samples):
        history.add(Sample(at_ms, "a", clients=(CLIENT,)))
    kept = [one.at_ms for one in history.samples]
    assert kept == sorted(set(kept))
    assert (kept[0], kept[-1]) == (0, samples - 1)
    assert len(kept) <= max(LEAST_SAMPLES, most)
    assert len(kept) + history.left_out == samples
    assert kept[-5:] == list(range(max(0, samples - 5), samples))
    assert [bool(one.clients) for one in history.samples] == [False] * (len(kept) - 1) + [True]


@pytest.mark.parametrize(("every_s", "expected_s"), [(0.1, 1.0), (5.0, 5.0)])
async def test_no_server_is_asked_more_often_than_is_cheap(valkey: Server, every_s: float, expected_s: float) -> None:
    assert HealthWatch(Deployment(target_of(valkey)), every_s=every_s).pause_s == expected_s


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
            assert str(health.warning(node)).startswith("A different server since 2001-09-09")
            await health.close()
            await deployment.close()


@pytest.mark.parametrize("cluster", ["valkey-9.1"], indirect=True)
async def test_the_nodes_of_a_cluster(cluster: TestCluster, tmp_path: Path) -> None:
    async with browsing(target_of(cluster.members[0].server), tmp_path) as session:
        health = session.health
        health.begin()
        await eventually(lambda: len(health.nodes) == len(cluster.members))
        table = known(health.nodes_table)
        assert set(table.subjects) == set(health.nodes)
        roles = [row[table.column("role")] for row in table.rows]
        assert roles.count("primary") == sum(bool(one.slots) for one in cluster.members)
        for node in health.nodes:
            assert health.panels(node)


@asynccontextmanager
async def fleet_of(targets: Sequence[Target], **options: Any) -> AsyncIterator[Fleet]:
    fleet = Fleet(targets, **options)
    try:
        yield fleet
    finally:
        await fleet.close()


def by_address(fleet: Fleet) -> dict[str, FleetServer]:
    return {one.address: one for one in fleet.servers}


def labelled(target: Target, **labels: str) -> Target:
    return replace(target, labels=tuple((SafeText(name), SafeText(value)) for name, value in labels.items()))


async def silent(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    while await reader.read(1 << 16):
        pass


async def test_servers_that_hang_hold_nobody_up(server: Server) -> None:
    """More of them than are tried at once come first; the last one is asked before any of them is given up."""
    async with AsyncExitStack() as stack:
        hanging = [await stack.enter_async_context(Listener(silent)) for _ in range(AT_ONCE + 8)]
        refused = Target(port=free_port())
        targets = [*(one.target for one in hanging), refused, target_of(server)]
        fleet = await stack.enter_async_context(fleet_of(targets, limit_s=60))
        asking = asyncio.create_task(fleet.look())
        label = f"127.0.0.1:{server.port}"
        await eventually(lambda: by_address(fleet)[label].view is not None)
        assert {by_address(fleet)[one.target.label].state for one in hanging} == {"waiting"}
        await eventually(lambda: by_address(fleet)[refused.label].failure)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)


async def test_a_server_that_does_not_answer_is_named(valkey: Server) -> None:
    async with Listener(silent) as hanging, fleet_of([hanging.target, target_of(valkey)], limit_s=0.2) as fleet:
        await fleet.look()
        assert by_address(fleet)[hanging.target.label].failure
        while by_address(fleet)[f"127.0.0.1:{valkey.port}"].state != "ok":  # a busy machine may take longer to answer
            await fleet.look()
        assert by_address(fleet)[hanging.target.label].failure


@pytest.mark.slow
async def test_polls_go_on_and_find_a_server_that_is_back(valkey: Server, redis70: Server) -> None:
    targets = [labelled(target_of(valkey), zone="a"), target_of(redis70)]
    label = f"127.0.0.1:{valkey.port}"
    async with fleet_of(targets, every_s=0.05, limit_s=2) as fleet:
        running = asyncio.create_task(fleet.run())
        await eventually(lambda: len(fleet.servers) == 2 and all(one.view for one in fleet.servers))
        valkey.stop()
        await eventually(lambda: by_address(fleet)[label].failure)
        gone = by_address(fleet)[label]
        assert (gone.state, dict(gone.labels)) == ("down", {"zone": "a"})
        assert gone.view is not None, "the last samples stay"
        revision = fleet.revision
        await eventually(lambda: fleet.revision > revision + 3)
        assert by_address(fleet)[f"127.0.0.1:{redis70.port}"].failure is None
        valkey.start()
        valkey.wait_ready()
        fleet.ask_now()
        await eventually(lambda: by_address(fleet)[label].failure is None)
        assert all(one.view is not None and len(one.view.samples) <= KEPT for one in fleet.servers)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@pytest.mark.parametrize("cluster", ["valkey-9.1"], indirect=True)
async def test_a_cluster_is_asked_once_however_many_of_its_nodes_are_named(cluster: TestCluster) -> None:
    targets = [labelled(target_of(one.server), node=str(at), all="x") for at, one in enumerate(cluster.members)]
    async with fleet_of(targets) as fleet:
        await fleet.look()
        found = by_address(fleet)
        assert set(found) == {f"127.0.0.1:{one.server.port}" for one in cluster.members}
        for at, one in enumerate(cluster.members):
            assert dict(found[f"127.0.0.1:{one.server.port}"].labels) == {"node": str(at), "all": "x"}
        with Recorder(cluster.members[0].server) as recorder:
            await fleet.look()
        assert [one.argv for one in recorder.commands].count((b"INFO", b"memory")) == 1
        opened = known(fleet.target_of(SafeText(f"127.0.0.1:{cluster.members[1].server.port}")))
        assert opened.port == cluster.members[1].server.port


@pytest.mark.slow
async def test_the_services_of_sentinels() -> None:
    with watched(require("valkey-9.1")) as service:
        url = service.url.rpartition("/")[0]
        async with fleet_of([parse_target(f"{url}/*"), Target(port=free_port())], limit_s=2) as fleet:
            await fleet.look()
            found = {one.address: one.state for one in fleet.servers}
            assert {name.partition("@")[0]: state for name, state in found.items() if "@" in name} == {"mymaster": "ok"}
            assert len(found) == 2
    async with fleet_of([parse_target(f"sentinel://127.0.0.1:{free_port()}/*")], limit_s=2) as fleet:
        await fleet.look()
        (gone,) = fleet.servers
        assert gone.state == "down"
