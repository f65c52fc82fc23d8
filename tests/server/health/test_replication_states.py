"""Primaries and replicas driven into states, and found: slow and broken links, short backlogs, resyncs, failovers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager

import pytest

from rtui.analysis.health.panel import State
from tests.proxy import DelayProxy
from tests.server.health.driven import Given, Looking, looking, number
from tests.server.targets import eventually
from tests.servers import Server, running

pytestmark = pytest.mark.slow
"""Each starts two servers."""

QUICKLY = ("--repl-diskless-sync-delay", "0", "--repl-backlog-size", "16kb")


def says(server: Server, name: str, value: object) -> bool:
    """Whether INFO replication has this value."""
    return bool(server.admin.info("replication").get(name) == value)


@asynccontextmanager
async def replicating(server: Server) -> AsyncIterator[tuple[Server, Server, DelayProxy]]:
    """A primary, and a replica of it that goes through a proxy; both are in step."""
    with ExitStack() as stack:
        primary = stack.enter_context(running(server.binary, *QUICKLY))
        async with DelayProxy(primary.port, records=False) as proxy:
            replica = stack.enter_context(running(server.binary, *QUICKLY))
            replica.admin.replicaof("127.0.0.1", proxy.port)
            await eventually(lambda: says(replica, "master_link_status", "up"))
            await in_step(primary)
            yield primary, replica, proxy


async def in_step(primary: Server) -> None:
    """Wait until the replica has acknowledged everything."""

    def acknowledged() -> bool:
        told = primary.admin.info("replication")
        one = told.get("slave0")
        return one is not None and one["state"] == "online" and one["offset"] == told["master_repl_offset"]

    await eventually(acknowledged)


def write(server: Server, count: int) -> None:
    with server.client() as client:
        pipeline = client.pipeline(transaction=False)
        for number in range(count):
            pipeline.set(f"key:{number}", "x" * 1_000)
        pipeline.execute()


def looks_like(looked: Looking, line_id: str) -> object:
    return looked.line("replication", line_id).value


async def test_a_replica_behind_a_slow_link(server: Server) -> None:
    """Its acknowledgements come, and what is written does not get to it."""
    async with replicating(server) as (primary, _, proxy), looking(primary) as looked:
        await looked.look()
        assert looked.broken == []
        proxy.hold_replies()
        write(primary, 200)
        await looked.look()
        assert "replica-lagging" not in looked.broken, "one sample may have met a burst"
        await looked.look()
        assert "replica-lagging" in looked.broken
        line = looked.wrong("replication", "replica_behind")
        assert number(line) > 190_000
        assert "at the current write rate" in line.said
        assert "% of the backlog" in looked.finding("replica-lagging").title
        assert looked.table("replication", "replicas").rows[0][2] == line.value
        proxy.release_replies()
        await in_step(primary)
        await looked.look()
        assert "replica-lagging" not in looked.broken


async def test_a_replica_that_acknowledges_nothing(server: Server) -> None:
    given: Given = {"replica-lagging": {"lag": 1_000}}
    async with replicating(server) as (primary, replica, _), looking(primary, given) as looked:
        replica.freeze()
        await eventually(lambda: primary.admin.info("replication")["slave0"]["lag"] >= 2)
        await looked.look()
        replica.thaw()
        assert looked.broken == ["replica-lagging"]
        assert number(looked.wrong("replication", "replica_lag")) >= 2


async def test_a_link_that_is_down_and_a_replica_that_is_lost(server: Server) -> None:
    async with replicating(server) as (primary, replica, proxy), looking(primary) as looked, looking(replica) as other:
        await looked.look()
        await other.look()
        assert (looked.broken, other.broken) == ([], [])
        assert other.line("replication", "master_link_status").state is State.NORMAL
        await proxy.refuse()
        proxy.cut()
        await eventually(lambda: says(replica, "master_link_status", "down"))
        await eventually(lambda: says(primary, "connected_slaves", 0))
        await looked.look()
        await other.look()
        assert looked.broken == ["replica-missing"]
        assert looked.wrong("replication", "connected_slaves").value == 0
        assert other.broken == ["replication-broken"]
        assert other.wrong("replication", "master_link_status", State.BAD).value == "down"
        assert other.line("replication", "role").value == "replica"
        assert other.line("replication", "primary").value == f"127.0.0.1:{proxy.port}"


async def test_resyncs_and_a_backlog_that_is_too_short(server: Server) -> None:
    async with replicating(server) as (primary, replica, proxy), looking(primary) as looked:
        proxy.cut()
        await eventually(lambda: primary.admin.info("stats")["sync_partial_ok"] >= 1)
        await in_step(primary)
        await looked.look()
        assert looks_like(looked, "sync_full") == 1
        assert looks_like(looked, "sync_partial_ok") == 1
        assert looks_like(looked, "backlog_seconds") is None
        write(primary, 100)
        await in_step(primary)
        await looked.look()
        assert looked.broken == ["backlog-short"]
        assert 1 < number(looked.wrong("replication", "backlog_seconds")) < 6
        refused = number(looked.line("replication", "sync_partial_err"))
        await proxy.refuse()
        proxy.cut()
        await eventually(lambda: says(replica, "master_link_status", "down"))
        write(primary, 100)
        await proxy.resume()
        await eventually(lambda: primary.admin.info("stats")["sync_full"] == 2)
        await in_step(primary)
        await looked.look()
        assert looks_like(looked, "sync_partial_err") == refused + 1
        assert "the backlog was too short" in looked.line("replication", "sync_partial_err").said


async def test_a_failover_that_is_seen(server: Server) -> None:
    with ExitStack() as stack:
        first = stack.enter_context(running(server.binary, *QUICKLY))
        second = stack.enter_context(running(server.binary, *QUICKLY))
        second.admin.replicaof("127.0.0.1", first.port)
        await eventually(lambda: says(second, "master_link_status", "up"))
        await in_step(first)
        async with looking(first) as old, looking(second) as new:
            await old.look()
            await new.look()
            first.admin.execute_command("FAILOVER")
            await eventually(lambda: says(second, "role", "master"))
            await eventually(lambda: says(first, "master_link_status", "up"))
            await old.look()
            await new.look()
            assert (old.broken, new.broken) == ([], [])
    assert looks_like(old, "role") == "replica"
    assert str(old.line("replication", "role").said).startswith("primary until ")
    assert looks_like(new, "role") == "primary"
    assert str(new.line("replication", "role").said).startswith("replica until ")
    assert looks_like(old, "primary") == f"127.0.0.1:{second.port}"


async def test_replicas_that_synchronise_in_full_again_and_again(redis810: Server) -> None:
    async with replicating(redis810) as (primary, replica, proxy), looking(primary) as looked:
        await looked.look()
        assert looked.broken == []
        for _ in range(5):
            replica.admin.replicaof("no", "one")
            write(replica, 1)  # data that the primary does not have
            replica.admin.replicaof("127.0.0.1", proxy.port)
            await eventually(lambda: says(replica, "master_link_status", "up"))
        await in_step(primary)
        async with looking(primary) as later:
            await later.look()
        await looked.look()
    assert looked.broken == later.broken == ["replication-flapping"]
    assert later.finding("replication-flapping").title.startswith("5 repeated full resynchronisations since ")
