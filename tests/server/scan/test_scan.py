"""Scans of real servers, whole, filtered, interrupted, and while the keyspace changes under them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from rtui.keyspace.slices import finish
from rtui.keyspace.store.store import NamespaceStore
from rtui.server import guard
from rtui.server.scan.cursor import Dialect, dialect_of
from rtui.server.scan.node import ScanNode
from rtui.server.scan.node_scan import PROVED_FROM
from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import ScanNote, ScanState
from rtui.server.scan.ranges import CursorSpan
from rtui.server.scan.run_control import RunControl
from rtui.server.scan.scan import Scan
from rtui.server.wire.connection import Connection, Lost
from tests.conftest import known
from tests.proxy import DelayProxy
from tests.server.targets import Seen, ask, connected, numbered, plant, table_bits, target_of, until, uproot
from tests.servers import Server

MANY = 30_000
"""Keys of a scan that has a middle."""


def make(connection: Connection, seen: Seen, dialect: Dialect | None = None, **options: Any) -> Scan:
    """A scan of the whole server, at full pace unless told otherwise."""
    found = dialect_of(connection.server)
    control = RunControl(options.pop("pace", Pace.FULL))
    scan = Scan([ScanNode(connection, dialect or found)], seen, control, **options)
    seen.scan = scan
    return scan


@pytest.mark.parametrize("count", [0, 1, 25, 3000])
async def test_every_key_once_on_every_version(server: Server, count: int) -> None:
    names = plant(server, numbered(count))
    seen = Seen()
    async with connected(target_of(server)) as connection:
        scan = make(connection, seen)
        await scan.run()
    assert set(seen.keys) == names
    assert not seen.repeated
    assert scan.state is ScanState.DONE
    assert scan.progress.fraction == 1.0
    assert scan.progress.keys == count
    assert scan.progress.notes == ()


@pytest.mark.parametrize("pace", list(Pace))
async def test_every_pace_and_its_cost(valkey: Server, pace: Pace) -> None:
    names = plant(valkey, numbered(MANY))
    seen = Seen()
    async with DelayProxy(valkey.port) as proxy, connected(target_of(valkey, port=proxy.port)) as connection:
        scan = make(connection, seen, pace=pace)
        await scan.run()
        sent = proxy.commands()
    assert set(seen.keys) == names
    assert not seen.repeated
    scans = [argv for argv in sent if argv[0] == b"SCAN"]
    counts = [int(argv[argv.index(b"COUNT") + 1]) for argv in scans]
    assert counts[counts.index(PROVED_FROM) + 1] == 20
    assert max(counts) <= 1000
    cost = scan.cost
    assert cost.is_measured
    assert 0 < cost.server_us < cost.elapsed_s * 1e6
    assert len(scans) <= cost.commands <= len(scans) + 20
    assert cost.keys >= MANY
    assert cost.bytes_in > sum(map(len, names))
    assert cost.bytes_out >= sum(len(arg) for argv in scans for arg in argv)


async def test_the_next_request_is_out_before_a_page_is_put_away(valkey: Server) -> None:
    plant(valkey, numbered(3000))
    ahead: list[int] = []
    async with connected(target_of(valkey)) as connection:

        def sink(keys: list[bytes]) -> None:
            ahead.append(scan.cost.commands - len(ahead))

        scan = Scan([ScanNode(connection, Dialect.OPAQUE)], sink, RunControl(Pace.FULL))
        await scan.run()
    assert len(ahead) > 3
    assert all(sent >= 2 for sent in ahead[:-1])


async def test_what_was_under_way_when_a_scan_is_stopped_is_delivered(valkey: Server) -> None:
    plant(valkey, numbered(MANY))
    seen = Seen()
    async with DelayProxy(valkey.port) as proxy, connected(target_of(valkey, port=proxy.port)) as connection:
        scan = make(connection, seen)
        seen.at(2_000, scan.control.stop)
        await scan.run()
    assert scan.state is ScanState.STOPPED
    assert len(seen.keys) == scan.progress.keys == scan.cost.keys >= 2_000


async def test_match_and_type(server: Server) -> None:
    plant(server, numbered(500, b"user:"))
    plant(server, numbered(500, b"us[r:"))
    server.client().rpush("user:list", b"x")
    async with connected(target_of(server)) as connection:
        seen = Seen()
        await make(connection, seen, match=b"us\\[r:*").run()
        assert set(seen.keys) == set(numbered(500, b"us[r:"))
        seen = Seen()
        await make(connection, seen, match=b"user:*", key_type=b"list").run()
        assert set(seen.keys) == {b"user:list"}


async def test_pause_resume_and_stop(valkey: Server) -> None:
    names = plant(valkey, numbered(MANY))
    seen = Seen()
    async with connected(target_of(valkey)) as connection:
        scan = make(connection, seen)
        paused = asyncio.Event()
        seen.at(MANY // 3, both(scan.control.pause, paused.set))
        running = asyncio.create_task(scan.run())
        await paused.wait()
        states = [scan.state]
        scan.control.resume()
        states.append(scan.state)
        seen.at(2 * MANY // 3, scan.control.stop)
        await running
        states.append(scan.state)
        assert states == [ScanState.PAUSED, ScanState.RUNNING, ScanState.STOPPED]
        assert MANY // 3 < seen.keys.total() < MANY
        left = [span for spans in scan.remaining() for span in spans]
        rest = Seen()
        again = Scan([ScanNode(connection, spans=tuple(left))], rest, RunControl(Pace.FULL))
        await again.run()
    assert set(seen.keys) | set(rest.keys) == names
    assert again.state is ScanState.DONE


async def test_a_scan_that_gives_way_takes_up_nothing_meanwhile(valkey: Server) -> None:
    names = plant(valkey, numbered(MANY))
    seen = Seen()
    async with connected(target_of(valkey)) as connection:
        scan = make(connection, seen)
        given = asyncio.Event()
        seen.at(MANY // 3, both(lambda: scan.control.yield_to_input(3600), given.set))
        running = asyncio.create_task(scan.run())
        await given.wait()
        pages = seen.pages
        for _ in range(20):
            await ask(connection, guard.ping())
        assert seen.pages == pages
        assert scan.state is ScanState.RUNNING
        scan.control.yield_to_input(0)
        await running
    assert set(seen.keys) == names
    assert not seen.repeated


async def test_a_scan_that_gives_way_can_be_stopped(valkey: Server) -> None:
    plant(valkey, numbered(MANY))
    seen = Seen()
    async with connected(target_of(valkey)) as connection:
        scan = make(connection, seen)
        seen.at(MANY // 3, both(lambda: scan.control.yield_to_input(3600), scan.control.stop))
        await scan.run()
    assert scan.state is ScanState.STOPPED


async def test_pace_changes_on_the_way(valkey: Server) -> None:
    names = plant(valkey, numbered(MANY))
    seen = Seen()
    async with connected(target_of(valkey)) as connection:
        scan = make(connection, seen, pace=Pace.GENTLE)

        def hurry() -> None:
            scan.control.pace = Pace.FULL

        seen.at(1000, hurry)
        await scan.run()
    assert scan.control.pace is Pace.FULL
    assert set(seen.keys) == names


async def test_a_cancelled_scan_can_be_gone_on_with(valkey: Server) -> None:
    names = plant(valkey, numbered(MANY))
    seen = Seen()
    async with connected(target_of(valkey)) as connection:
        scan = make(connection, seen)
        running = asyncio.create_task(scan.run())
        seen.at(MANY // 2, running.cancel)
        await asyncio.gather(running, return_exceptions=True)
        assert running.cancelled()
        assert scan.state is ScanState.STOPPED
        rest = Seen()
        spans = tuple(scan.remaining()[0])
        await Scan([ScanNode(connection, spans=spans)], rest, RunControl(Pace.FULL)).run()
    assert set(seen.keys) | set(rest.keys) == names


async def test_a_cut_connection_costs_nothing(server: Server) -> None:
    """Cut in the middle of a page: it goes on from its cursors, and each key is there once."""
    names = plant(server, numbered(MANY))
    seen = Seen()
    async with DelayProxy(server.port) as proxy, connected(target_of(server, port=proxy.port)) as connection:
        scan = make(connection, seen)
        seen.at(MANY // 3, lambda: proxy.cut_after(20_000))
        await scan.run()
        assert proxy.accepted >= 3
    assert scan.state is ScanState.DONE
    assert set(seen.keys) == names
    assert not seen.repeated
    assert scan.progress.notes == ()


async def test_it_waits_for_a_server_that_is_away(valkey: Server) -> None:
    names = plant(valkey, numbered(MANY))
    seen = Seen()
    async with DelayProxy(valkey.port) as proxy, connected(target_of(valkey, port=proxy.port)) as connection:
        scan = make(connection, seen)
        gone = asyncio.Event()

        def leave() -> None:
            refusing = asyncio.ensure_future(proxy.refuse())
            refusing.add_done_callback(lambda _: both(proxy.cut, gone.set)())

        seen.at(MANY // 3, leave)
        running = asyncio.create_task(scan.run())
        await gone.wait()
        await until(connection, lambda: isinstance(connection.state, Lost) and connection.state.attempt > 0)
        assert scan.state is ScanState.WAITING
        assert scan.progress.reason
        await proxy.resume()
        connection.retry_now()
        await running
    assert set(seen.keys) == names
    assert not seen.repeated


async def test_stopped_while_it_waits(valkey: Server) -> None:
    plant(valkey, numbered(MANY))
    seen = Seen()
    async with DelayProxy(valkey.port) as proxy, connected(target_of(valkey, port=proxy.port)) as connection:
        scan = make(connection, seen)
        running = asyncio.create_task(scan.run())
        seen.at(1000, lambda: asyncio.ensure_future(proxy.refuse()).add_done_callback(lambda _: proxy.cut()))
        await until(connection, lambda: isinstance(connection.state, Lost) and connection.state.attempt > 0)
        scan.control.stop()
        await running
        assert scan.state is ScanState.STOPPED


async def test_a_restarted_server_is_scanned_from_the_start(server: Server) -> None:
    plant(server, numbered(MANY))
    seen = Seen()
    notes = []

    def begin_again(note: ScanNote) -> None:
        notes.append(note)
        seen.keys.clear()

    async with connected(target_of(server)) as connection:
        scan = make(connection, seen, on_restart=begin_again)
        after: set[bytes] = set()

        def restart() -> None:
            server.restart()
            after.update(plant(server, numbered(2000, b"after:")))

        seen.at(MANY // 3, restart)
        await scan.run()
    assert notes == [ScanNote.RESTARTED]
    assert set(seen.keys) == after
    assert not seen.repeated
    assert scan.progress.notes == (ScanNote.RESTARTED,)


async def test_an_emptied_server(server: Server) -> None:
    plant(server, numbered(MANY))
    seen = Seen()
    async with connected(target_of(server)) as connection:
        scan = make(connection, seen)
        seen.at(MANY // 3, lambda: server.client().flushall())
        await scan.run()
    assert scan.state is ScanState.DONE
    assert ScanNote.EMPTIED in scan.progress.notes
    assert not seen.repeated


@pytest.mark.parametrize("version", ["redis70", "redis810", "valkey"])
async def test_a_table_that_shrinks_under_a_scan(version: str, request: pytest.FixtureRequest) -> None:
    """Nine of ten keys go in the middle: none of those that stay is missing, and the store counts none twice."""
    server: Server = request.getfixturevalue(version)
    server.admin.config_set("hz", 100)
    kept = plant(server, numbered(4000, b"kept:"))
    doomed = plant(server, numbered(60_000, b"doomed:"))
    seen = Seen()
    store = NamespaceStore()
    async with connected(target_of(server)) as connection:
        scan = make(connection, seen)
        paused = asyncio.Event()
        seen.at(30_000, both(scan.control.pause, paused.set))
        running = asyncio.create_task(scan.run())
        await paused.wait()
        uproot(server, doomed)
        while table_bits(server) > 13:
            server.client().mget(*numbered(200, b"nobody:"))
        scan.control.resume()
        await running
    assert kept <= set(seen.keys) <= kept | doomed
    assert scan.repeats_possible
    assert ScanNote.SHRANK in scan.progress.notes
    store.add(list(seen.keys.elements()))
    store.repeats_possible = scan.repeats_possible
    finish(store.settle())
    assert store.keys == len(seen.keys)


def both(one: Callable[[], object], other: Callable[[], object]) -> Callable[[], None]:
    def act() -> None:
        one()
        other()

    return act


async def test_keys_that_come_and_expire_do_no_harm(valkey: Server) -> None:
    stable = plant(valkey, numbered(MANY, b"stable:"))
    pipeline = valkey.client().pipeline(transaction=False)
    for name in numbered(5000, b"short:"):
        pipeline.set(name, b"v", px=1)
    pipeline.execute()
    seen = Seen()
    async with connected(target_of(valkey)) as connection:
        scan = make(connection, seen)
        seen.at(MANY // 2, lambda: plant(valkey, numbered(MANY, b"new:")))
        await scan.run()
    assert stable <= set(seen.keys)
    assert not seen.repeated


async def test_eviction_under_way(valkey: Server) -> None:
    plant(valkey, numbered(MANY))
    used = int(valkey.admin.info("memory")["used_memory"])
    valkey.admin.config_set("maxmemory-policy", "allkeys-random")
    valkey.admin.config_set("maxmemory", used + 200_000)
    seen = Seen()
    async with connected(target_of(valkey)) as connection:
        scan = make(connection, seen)
        seen.at(MANY // 2, lambda: plant(valkey, numbered(MANY, b"new:")))
        await scan.run()
    assert int(valkey.admin.info("stats")["evicted_keys"]) > 0
    assert scan.state is ScanState.DONE
    assert set(valkey.client().keys("key:*")) <= set(seen.keys)


async def test_a_refused_scan_says_so(valkey: Server) -> None:
    valkey.admin.execute_command("ACL", "SETUSER", "default", "-scan")
    seen = Seen()
    async with connected(target_of(valkey)) as connection:
        scan = make(connection, seen)
        await scan.run()
    assert scan.state is ScanState.FAILED
    assert "NOPERM" in known(scan.progress.reason)


async def test_refused_size_and_clock_cost_two_errors(valkey: Server) -> None:
    plant(valkey, numbered(MANY))
    seen = Seen()
    async with connected(target_of(valkey)) as connection:
        valkey.admin.execute_command("ACL", "SETUSER", "default", "-dbsize", "-info")
        scan = make(connection, seen)
        await scan.run()
    assert scan.state is ScanState.DONE
    assert not scan.cost.is_measured
    assert scan.cost.server_us > 0
    assert seen.keys.total() == MANY


async def test_a_slotted_keyspace(cluster_node: Server) -> None:
    names = plant_slots(cluster_node, 20_000)
    seen = Seen()
    fractions: list[float | None] = []
    async with connected(target_of(cluster_node)) as connection:
        scan = make(connection, seen)
        seen.at(10_000, lambda: fractions.append(scan.progress.fraction))
        await scan.run()
    assert set(seen.keys) == names
    assert not seen.repeated
    assert fractions[0] == pytest.approx(0.5, abs=0.1)


async def test_cursors_that_go_backwards_are_not_trusted(cluster_node: Server) -> None:
    """A server that counts otherwise than it was taken for is scanned again, plainly."""
    names = plant_slots(cluster_node, 5000)
    seen = Seen()
    notes = []

    def begin_again(note: ScanNote) -> None:
        notes.append(note)
        seen.keys.clear()

    async with connected(target_of(cluster_node)) as connection:
        scan = make(connection, seen, Dialect.STANDALONE, on_restart=begin_again)
        await scan.run()
    assert notes == [ScanNote.PLAIN]
    assert set(seen.keys) == names
    assert scan.repeats_possible


async def test_an_opaque_keyspace_goes_by_numbers(valkey: Server) -> None:
    names = plant(valkey, numbered(MANY))
    seen = Seen()
    fractions: list[float | None] = []
    async with connected(target_of(valkey)) as connection:
        scan = make(connection, seen, Dialect.OPAQUE)
        seen.at(MANY // 2, lambda: fractions.append(scan.progress.fraction))
        await scan.run()
    assert set(seen.keys) == names
    assert scan.progress.fraction == 1.0
    assert fractions[0] is None or fractions[0] == pytest.approx(0.5, abs=0.1)


async def test_two_nodes_side_by_side(valkey: Server, redis70: Server) -> None:
    names = plant(valkey, numbered(3000, b"a:")) | plant(redis70, numbered(5000, b"b:"))
    seen = Seen()
    async with connected(target_of(valkey)) as one, connected(target_of(redis70)) as other:
        scan = Scan([ScanNode(one), ScanNode(other)], seen, RunControl(Pace.NORMAL))
        await scan.run()
    assert set(seen.keys) == names
    assert not seen.repeated
    assert scan.progress.keys == 8000


async def test_a_node_that_fails_leaves_the_others_alone(valkey: Server, redis70: Server) -> None:
    names = plant(valkey, numbered(MANY, b"a:"))
    plant(redis70, numbered(MANY, b"b:"))
    redis70.admin.execute_command("ACL SETUSER reader on nopass +@connection +info ~*")
    seen = Seen()
    async with connected(target_of(valkey)) as one, connected(target_of(redis70, user="reader")) as other:
        scan = Scan([ScanNode(one, id="first"), ScanNode(other, id="second")], seen, RunControl(Pace.FULL))
        await scan.run()
    assert set(seen.keys) == names
    assert scan.state is ScanState.STOPPED
    assert f":{redis70.port}: SCAN was refused" in known(scan.progress.reason)
    first, second = scan.nodes
    assert (first.id, first.state, first.fraction, first.keys) == ("first", ScanState.DONE, 1.0, MANY)
    assert (second.id, second.state, second.keys) == ("second", ScanState.FAILED, 0)
    assert second.failure is not None
    assert first.cost.keys + second.cost.keys == scan.cost.keys
    assert first.cost.commands + second.cost.commands == scan.cost.commands


async def test_when_one_node_begins_again_all_do(cluster_node: Server, valkey: Server) -> None:
    """The store holds the keys of all nodes, so nothing less would be exact."""
    names = plant_slots(cluster_node, 5000) | plant(valkey, numbered(MANY, b"other:"))
    seen = Seen()
    async with connected(target_of(cluster_node)) as one, connected(target_of(valkey)) as other:
        nodes = [ScanNode(one, Dialect.STANDALONE), ScanNode(other)]
        scan = Scan(nodes, seen, RunControl(Pace.FULL), on_restart=lambda _: seen.keys.clear())
        await scan.run()
    assert scan.state is ScanState.DONE
    assert scan.progress.notes[0] is ScanNote.PLAIN
    assert set(seen.keys) == names
    assert not seen.repeated
    assert scan.progress.keys == seen.keys.total()


async def test_a_part_only(valkey: Server) -> None:
    plant(valkey, numbered(MANY))
    seen = Seen()
    async with connected(target_of(valkey)) as connection:
        scan = Scan([ScanNode(connection, spans=(CursorSpan(0, 1 << 62),))], seen, RunControl(Pace.FULL))
        await scan.run()
    assert 0.9 * MANY / 4 < seen.keys.total() < 1.1 * MANY / 4 + 1000


def plant_slots(server: Server, count: int) -> set[bytes]:
    """Write keys to a cluster's node, where each may be in another slot."""
    names = numbered(count)
    pipeline = server.client().pipeline(transaction=False)
    for name in names:
        pipeline.set(name, b"v")
    pipeline.execute()
    return set(names)
