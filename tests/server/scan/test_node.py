"""The slots that a node says it serves, and how many ranges its keys are cut into."""

from __future__ import annotations

import pytest

from rtui.server.scan.cursor import Dialect
from rtui.server.scan.node import FAR_S, ScanNode, width_for, with_slots
from rtui.server.scan.pace import Pace
from rtui.server.scan.ranges import Slots
from rtui.server.scan.run_control import RunControl
from rtui.server.scan.scan import Scan
from rtui.server.scan.slot_ledger import read_slot_view
from rtui.server.wire.errors import Reply, ServerError
from rtui.server.wire.target import Target
from tests.proxy import DelayProxy
from tests.server.scanned import Seen, numbered, plant
from tests.server.targets import connected, target_of
from tests.servers import Server

NODES = (
    b"aaa 10.0.0.1:7000@17000,host myself,master - 0 0 1 connected 0-5460 5462 [5461->-bbb]\n"
    b"bbb 10.0.0.2:7001@17001 master - 0 0 2 connected 5463-10922\n"
    b"ccc 10.0.0.3:7002@17002 slave bbb 0 0 3 connected\n"
)


def slots_in(reply: Reply) -> Slots | None:
    view = read_slot_view(reply)
    return None if view is None else view.slots


def test_a_primary_has_its_own() -> None:
    assert slots_in(NODES) == [(0, 5460), (5462, 5462)]


def test_a_replica_has_those_of_its_primary() -> None:
    moved = NODES.replace(b"myself,", b"").replace(b"slave", b"myself,slave")
    assert slots_in(moved) == [(5463, 10922)]


def test_nothing_is_known() -> None:
    assert slots_in(ServerError("NOPERM no")) is None
    assert slots_in(b"") is None
    assert slots_in(b"one two\nmyself") is None
    assert slots_in(b"aaa h:1@2 myself,master - 0 0 1 connected") == []
    assert slots_in([b"aaa"]) is None


def test_what_are_no_slots_is_left_out() -> None:
    line = b"aaa h:1@2 myself,master - 0 0 1 connected 9-5 16384 99999 5-16384 7-8 -3 1-2-3 [9->-bbb] 16383"
    assert slots_in(line) == [(7, 8), (16383, 16383)]


async def test_a_node_of_one_serves_all(cluster_node: Server) -> None:
    async with connected(target_of(cluster_node)) as connection:
        assert (await with_slots(ScanNode(connection, Dialect.SLOTTED))).slots == [(0, 16383)]
        assert (await with_slots(ScanNode(connection))).slots is None


async def test_a_server_of_its_own_serves_none(valkey: Server) -> None:
    async with connected(target_of(valkey)) as connection:
        assert (await with_slots(ScanNode(connection, Dialect.SLOTTED))).slots is None


@pytest.mark.parametrize(
    ("keys", "ranges"),
    [(0, 1), (7_999, 1), (8_000, 8), (63_999, 8), (64_000, 16), (300_000, 64), (5_000_000_000, 64), (None, 8)],
)
def test_larger_keyspaces_are_cut_into_more_ranges(keys: int | None, ranges: int) -> None:
    assert width_for(keys) == ranges


@pytest.mark.parametrize(
    ("keys", "ranges"), [(0, 1), (20, 1), (249, 1), (250, 2), (2_000, 16), (8_000, 64), (5_000_000_000, 64), (None, 8)]
)
def test_over_a_slow_link_small_keyspaces_are_cut_too(keys: int | None, ranges: int) -> None:
    assert width_for(keys, FAR_S) == ranges


@pytest.mark.parametrize("pace", [Pace.GENTLE, Pace.FULL])
async def test_a_small_keyspace_that_is_cut_is_delivered_once(valkey: Server, pace: Pace) -> None:
    planted = plant(valkey, numbered(3_000))
    seen = Seen()
    async with DelayProxy(valkey.port, FAR_S) as proxy, connected(Target(port=proxy.port)) as connection:
        assert connection.round_trip_s >= FAR_S
        scan = Scan([ScanNode(connection, size=len(planted))], seen, RunControl(pace))
        await scan.run()
    assert set(seen.keys) == planted
    assert seen.repeated == set()
    assert not scan.repeats_possible
