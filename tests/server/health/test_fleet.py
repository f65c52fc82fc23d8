"""Fleets of real servers: dead ones hold nobody up, clusters are asked once, services are found, all come back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from rtui.analysis.formats.fleet import FleetServer
from rtui.keyspace.text.display import SafeText
from rtui.server.health.fleet import AT_ONCE, KEPT, Fleet
from rtui.server.wire.target import Target, parse_target
from tests.clusters import TestCluster
from tests.conftest import require
from tests.monitor import Recorder
from tests.sentinels import watched
from tests.server.targets import eventually, target_of
from tests.servers import Server, free_port
from tests.wire import Listener


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
    """Read and never answer."""
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
        found = by_address(fleet)
        assert found[hanging.target.label].failure
        assert found[f"127.0.0.1:{valkey.port}"].state == "ok"


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
        opened = fleet.target_of(SafeText(f"127.0.0.1:{cluster.members[1].server.port}"))
        assert opened is not None
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
