"""Samples of servers and clusters in rounds: nodes that go and come back, failovers, and a history that is bounded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.health.sample import LEAST_SAMPLES, ClientFigures, Sample, SampleHistory, Source
from rtui.server.deployment.nodes import Deployment
from rtui.server.health.watch import HealthWatch
from rtui.server.wire.target import Target, parse_target
from tests.clusters import TestCluster
from tests.conftest import require
from tests.sentinels import watched
from tests.server.targets import eventually, target_of, until
from tests.servers import Server

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
        assert deployment.topology is not None
        nodes = list(deployment.topology.nodes)
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
    deployment = Deployment(target_of(valkey))
    assert HealthWatch(deployment, every_s=every_s).pause_s == expected_s
