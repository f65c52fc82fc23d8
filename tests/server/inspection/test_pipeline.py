"""Every key inspected, on every version, beside what an independent client is told; and things that go wrong."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rtui.analysis.columns import ALL_COLUMNS
from rtui.server import guard
from rtui.server.guard.command import Secret
from rtui.server.inspection.pipeline import TOO_COSTLY_NOTE, InspectionPipeline
from rtui.server.inspection.plan import InspectionPlan
from rtui.server.inspection.tables import InspectedBatch
from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import ScanState
from rtui.server.scan.server_time import COSTLY_S, MAX_COSTLY
from rtui.server.wire.capability import Capabilities
from rtui.server.wire.connection import Lost
from rtui.server.wire.identity import NoTouch, ServerIdentity
from tests.proxy import DelayProxy
from tests.server import every_type
from tests.server.inspection.kept import Gathered, inspecting
from tests.server.targets import ask, connected, numbered, plant, target_of, until, uproot
from tests.servers import Server

MANY = 20_000


def asked(client: Any, key: bytes, *, lengths: bool) -> dict[str, Any]:
    """What an independent client is told of a key."""
    kind = client.type(key)
    length = every_type.LENGTHS.get(kind) if lengths else None
    return {
        "type": kind,
        "memory": client.memory_usage(key),
        "length": None if length is None else client.execute_command(length, key),
    }


async def test_every_type_as_another_client_sees_it(server: Server) -> None:
    client = server.client()
    types = every_type.fill(server, client)
    plant(server, numbered(300))
    has_lengths = every_type.has_no_touch(server)
    found = Gathered()
    async with connected(target_of(server)) as connection:
        scan, pipeline = await inspecting(connection, found)
        await scan.run()
    assert scan.state is ScanState.DONE
    assert pipeline.waiting == 0
    assert set(found.times.values()) == {1}
    assert {key: facts["type"] for key, facts in found.facts.items() if key in types} == types
    for key in types:
        facts, said = found.facts[key], asked(client, key, lengths=has_lengths)
        if key not in every_type.UNSTEADY_MEMORY:
            assert facts["memory"] == said["memory"], key
        assert facts["length"] == said["length"], key
        assert 0 <= facts["idle"] < 100
        assert facts["ttl"] == -1 or 0 < facts["ttl"] <= 1_000_000
    assert found.facts[b"string:expires"]["ttl"] > 0
    assert found.vanished == 0
    assert found.encodings.total() == len(found.facts)


def test_results_go_to_the_findings_that_were_named_last() -> None:
    first, second = Gathered(), Gathered()
    pipeline = InspectionPipeline(InspectionPlan(Capabilities(), ServerIdentity(), NoTouch.UNSUPPORTED), first)
    batch = InspectedBatch(b"string", [b"key"], memory_bytes=[60], lengths=[3])
    pipeline.go_on(batch)
    pipeline.tables.use(second)
    pipeline.add_page([b"key", b"l" * (64 * 1024 + 1)])
    pipeline.count_gone(2)
    assert pipeline.take_waiting()
    pipeline.last_stages.go_on(batch)
    pipeline.settle()
    assert (len(first.facts), len(first.unread_names), first.vanished) == (0, 0, 0)
    assert (len(second.facts), len(second.unread_names), second.vanished) == (1, 1, 2)


async def test_encodings_are_those_of_every_nth_key(valkey: Server) -> None:
    plant(valkey, numbered(3_200))
    found = Gathered()
    async with connected(target_of(valkey)) as connection:
        scan, _ = await inspecting(connection, found, columns=ALL_COLUMNS)
        await scan.run()
    assert found.encodings == {(b"string", b"embstr"): 200}


async def test_frequencies_where_the_policy_keeps_them(lfu_server: Server) -> None:
    client = lfu_server.client()
    names = plant(lfu_server, numbered(500))
    for _ in range(200):
        client.get("key:7")
    found = Gathered()
    async with connected(target_of(lfu_server)) as connection:
        scan, _ = await inspecting(connection, found)
        await scan.run()
    said = {key: client.execute_command("OBJECT", "FREQ", key) for key in names}
    assert {key: facts["frequency"] for key, facts in found.facts.items()} == said
    assert all(facts["idle"] is None for facts in found.facts.values())


async def test_inspecting_touches_nothing(server: Server) -> None:
    client = server.client()
    every_type.fill(server, client)
    before = {key: client.object("idletime", key) for key in client.keys("*")}
    found = Gathered()
    async with connected(target_of(server)) as connection:
        for _ in range(2):
            scan, _ = await inspecting(connection, found)
            await scan.run()
    assert all(client.object("idletime", key) >= idle for key, idle in before.items())


@pytest.mark.slow
async def test_the_next_scan_rides_with_the_questions(valkey: Server) -> None:
    plant(valkey, numbered(MANY))
    found = Gathered()
    async with DelayProxy(valkey.port) as proxy, connected(target_of(valkey, port=proxy.port)) as connection:
        scan, _ = await inspecting(connection, found)
        await scan.run()
        requests = [request.commands for request in proxy.requests]
    names = [argv[0] for commands in requests for argv in commands]
    assert len(found.facts) == MANY
    assert MANY <= names.count(b"TYPE") <= MANY + 1
    bulk = [argv[0] for argv in max(requests, key=len)]
    scans = [place for place, name in enumerate(bulk) if name == b"SCAN"]
    assert sum(bulk[place - 1] in {b"MEMORY", b"STRLEN", b"OBJECT", b"TYPE"} for place in scans) > len(scans) // 2


@pytest.mark.parametrize("pace", list(Pace))
async def test_the_server_is_asked_in_small_portions(valkey: Server, pace: Pace) -> None:
    plant(valkey, numbered(3_000))
    found = Gathered()
    async with connected(target_of(valkey)) as connection:
        scan, _ = await inspecting(connection, found, pace=pace)
        await scan.run()
    assert len(found.facts) == 3_000
    assert scan.cost.commands >= 5 * 3_000
    assert scan.cost.server_us > 0


async def test_keys_that_go_in_the_middle_are_counted_as_gone(valkey: Server) -> None:
    names = plant(valkey, numbered(MANY))
    found = Gathered()
    async with connected(target_of(valkey)) as connection:
        scan, _ = await inspecting(connection, found)
        found.at(MANY // 4, lambda: uproot(valkey, numbered(MANY)))
        await scan.run()
    assert scan.state is ScanState.DONE
    assert found.vanished > 0
    assert set(found.facts) < names
    assert set(found.times.values()) == {1}


@pytest.mark.slow
async def test_a_lost_connection_costs_no_key_and_repeats_none(valkey: Server) -> None:
    names = plant(valkey, numbered(MANY))
    found = Gathered()
    async with DelayProxy(valkey.port) as proxy, connected(target_of(valkey, port=proxy.port)) as connection:
        scan, _ = await inspecting(connection, found)
        found.at(MANY // 3, lambda: proxy.cut_after(50_000))
        await scan.run()
        assert proxy.accepted >= 3
    assert scan.state is ScanState.DONE
    assert set(found.facts) == names
    assert set(found.times.values()) == {1}


async def test_pausing_sends_nothing_and_going_on_completes_it(valkey: Server) -> None:
    names = plant(valkey, numbered(MANY))
    found = Gathered()
    async with connected(target_of(valkey)) as connection:
        scan, _ = await inspecting(connection, found)
        paused = asyncio.Event()

        def pause() -> None:
            scan.control.pause()
            paused.set()

        found.at(MANY // 3, pause)
        running = asyncio.create_task(scan.run())
        await paused.wait()
        lane = await connection.bulk()
        await ask(lane, guard.ping())  # behind everything that was under way
        commands = scan.cost.commands
        await connection.refresh()
        assert scan.cost.commands == commands
        assert scan.state is ScanState.PAUSED
        scan.control.resume()
        await running
    assert set(found.facts) == names


@pytest.mark.slow
async def test_waiting_for_a_server_that_is_away(valkey: Server) -> None:
    names = plant(valkey, numbered(MANY))
    found = Gathered()
    async with DelayProxy(valkey.port) as proxy, connected(target_of(valkey, port=proxy.port)) as connection:
        scan, _ = await inspecting(connection, found)

        def leave() -> None:
            asyncio.ensure_future(proxy.refuse()).add_done_callback(lambda _: proxy.cut())

        found.at(MANY // 3, leave)
        running = asyncio.create_task(scan.run())
        await until(connection, lambda: isinstance(connection.state, Lost) and connection.state.attempt > 0)
        await until(connection, lambda: scan.state is ScanState.WAITING)
        await proxy.resume()
        connection.retry_now()
        await running
    assert set(found.facts) == names


@pytest.mark.slow
async def test_a_restarted_server_is_inspected_anew(valkey: Server) -> None:
    names = plant(valkey, numbered(MANY))
    found = Gathered()
    async with connected(target_of(valkey)) as connection:

        def void(_: object) -> None:
            found.facts.clear()
            found.times.clear()

        scan, pipeline = await inspecting(connection, found, on_restart=void)

        def restart() -> None:
            valkey.restart()
            plant(valkey, numbered(MANY))

        found.at(MANY // 3, restart)
        await scan.run()
    assert scan.state is ScanState.DONE
    assert set(found.facts) == names
    assert set(found.times.values()) == {1}
    assert pipeline.waiting == 0


async def test_names_too_long_for_bulk_are_told(valkey: Server) -> None:
    long = b"l" * (64 * 1024 + 1)
    plant(valkey, [b"short", long])
    found = Gathered()
    async with connected(target_of(valkey)) as connection:
        scan, _ = await inspecting(connection, found)
        await scan.run()
    assert set(found.facts) == {b"short"}
    assert found.unread_names == [long]


async def test_streams_are_watched_where_their_size_takes_a_walk(server: Server) -> None:
    client = server.client()
    for number in range(30):
        client.xadd(f"stream:{number}", {"a": "1"})
    found = Gathered()
    async with DelayProxy(server.port) as proxy, connected(target_of(server, port=proxy.port)) as connection:
        scan, pipeline = await inspecting(connection, found)
        await scan.run()
        sent = [argv[0] for argv in proxy.commands()]
    assert all(facts["memory"] == client.memory_usage(key) for key, facts in found.facts.items())
    assert len(found.facts) == 30
    is_watched = server.product == "redis" and server.version < (8, 4)
    assert (pipeline.last_stages.cost_watch.most > 1) is is_watched
    assert sent.count(b"MEMORY") <= 31


async def test_streams_that_prove_dear_are_skipped_and_it_is_said(redis70: Server) -> None:
    client = redis70.client()
    for number in range(30):
        client.xadd(f"stream:{number}", {"a": "1"})
    found = Gathered()
    async with DelayProxy(redis70.port) as proxy, connected(target_of(redis70, port=proxy.port)) as connection:
        scan, pipeline = await inspecting(connection, found)
        for _ in range(MAX_COSTLY):
            pipeline.last_stages.cost_watch.observe(1, 2 * COSTLY_S)
        await scan.run()
        sent = proxy.commands()
    assert len(found.facts) == 30
    assert {facts["note"] for facts in found.facts.values()} == {TOO_COSTLY_NOTE}
    assert {facts["memory"] for facts in found.facts.values()} == {None}
    assert not [argv for argv in sent if argv[0] == b"MEMORY" and argv[2].startswith(b"stream:")]


DENIED = {"+type": "type", "+pttl": "ttl", "+memory|usage": "memory", "+object|idletime": "idle", "+strlen": "length"}


@pytest.mark.parametrize("right", list(DENIED))
async def test_a_denied_command_leaves_the_others_complete(valkey: Server, right: str) -> None:
    names = plant(valkey, numbered(1_000))
    valkey.client().execute_command("ACL", "SETUSER", "limited", "on", ">pw", "%R~*", "%R~", "+@all", f"-{right[1:]}")
    found = Gathered()
    async with DelayProxy(valkey.port) as proxy:
        async with connected(target_of(valkey, port=proxy.port, user="limited", password=Secret("pw"))) as connection:
            scan, _ = await inspecting(connection, found)
            await scan.run()
        sent = proxy.commands()
    assert set(found.facts) == names
    missing = {name for name, value in found.facts[b"key:7"].items() if value is None} - {"frequency"}
    expected = {DENIED[right]} if right != "+type" else {"type", "memory", "length"}
    assert missing == expected
    denied = right[1:].upper().encode().split(b"|")
    assert sum(argv[: len(denied)] == denied for argv in sent) == 1


async def test_keys_that_the_user_may_not_read_are_known_by_name_only(valkey: Server) -> None:
    plant(valkey, [*numbered(50, b"mine:"), *numbered(50, b"theirs:")])
    valkey.client().execute_command("ACL", "SETUSER", "limited", "on", ">pw", "%R~mine:*", "+@all")
    found = Gathered()
    async with connected(target_of(valkey, user="limited", password=Secret("pw"))) as connection:
        scan, _ = await inspecting(connection, found)
        await scan.run()
    assert len(found.facts) == 100
    assert {found.facts[key]["memory"] is None for key in numbered(50, b"theirs:")} == {True}
    assert {found.facts[key]["memory"] is None for key in numbered(50, b"mine:")} == {False}
