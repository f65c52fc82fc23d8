"""What becomes of a page of keys: what is new of it, when the server is given up, which slots are listed."""

from __future__ import annotations

import pytest

from rtui.server.scan.cursor import FIRST_KEYS, SLOT_BITS, Dialect
from rtui.server.scan.listing import OUT_OF_ORDER, STUCK_AFTER, Listing
from rtui.server.scan.node import FAR_S, ScanNode, width_for, with_slots
from rtui.server.scan.pace import Pace
from rtui.server.scan.page import BeginAgainError, ScanFilter
from rtui.server.scan.ranges import Slots
from rtui.server.scan.run_control import RunControl
from rtui.server.scan.scan import Scan
from rtui.server.scan.slot_ledger import read_slot_view
from rtui.server.wire.connection import Connection
from rtui.server.wire.errors import Reply, ScanRefusedError, ServerError
from rtui.server.wire.target import Target
from tests.proxy import DelayProxy
from tests.server.scanned import Seen, numbered, plant
from tests.server.targets import connected, target_of
from tests.servers import Server

STANDALONE_CURSORS = (0b100, 0b010, 0b110, 0b001)
"""Cursors of a table of eight buckets, in their order."""


def listing(dialect: Dialect, match: bytes | None = None) -> Listing:
    return Listing(ScanNode(Connection(Target()), dialect), ScanFilter(match))


def take(listed: Listing, cursor: int, keys: list[bytes]) -> list[bytes]:
    """Give a page to the range that is under way, and deliver what is new of it."""
    page: Reply = [b"%d" % cursor, [*keys]]
    fresh = listed.take_page(listed.ranges.under_way(1)[0], page)
    listed.delivered += len(fresh)
    return fresh


async def test_a_server_that_does_not_move_is_given_up() -> None:
    listed = listing(Dialect.OPAQUE)
    take(listed, 7, [])
    for _ in range(STUCK_AFTER - 1):
        take(listed, 7, [])
    with pytest.raises(ScanRefusedError, match="every SCAN cursor unchanged"):
        take(listed, 7, [])


@pytest.mark.parametrize("keys", [[b"a", 1], [None], [b"a", [b"b"]], [["x"]], b"", b"ab", 3, [ServerError("ERR no")]])
async def test_what_is_no_list_of_names_is_refused(keys: Reply) -> None:
    listed = listing(Dialect.STANDALONE)
    with pytest.raises(ScanRefusedError, match="its keys are not strings"):
        listed.take_page(listed.ranges.under_way(1)[0], [b"0", keys])


async def test_names_are_as_long_as_those_of_a_page_or_a_tenth_less_than_before() -> None:
    listed = listing(Dialect.STANDALONE)
    lengths = []
    for number, page in enumerate([[b"x" * 30, b""], [], [b"abc"], [b"y" * 40]]):
        take(listed, STANDALONE_CURSORS[number], page)
        lengths.append(listed.name_bytes)
    assert lengths == [15, 15, 13.5, 40]


async def test_a_server_that_begins_again_is_noticed_until_the_listing_does_so_too() -> None:
    first = [b"key:%d" % number for number in range(FIRST_KEYS)]
    listed = listing(Dialect.OPAQUE)
    assert take(listed, 7, first) == first
    with pytest.raises(BeginAgainError):
        take(listed, 8, first)
    listed.begin_anew(Dialect.OPAQUE)
    assert listed.delivered == 0
    assert take(listed, 7, first) == first


async def test_names_are_tested_where_the_server_gets_no_pattern() -> None:
    listed = listing(Dialect.OPAQUE, b"user:*")
    listed.matches = listed.only.names()
    assert take(listed, 0, [b"user:1", b"order:1"]) == [b"user:1"]
    assert (listed.keys, listed.delivered) == (2, 1)


async def test_slots_are_done_once_enough_keys_are_asked_about_that_were_listed_later() -> None:
    listed = listing(Dialect.SLOTTED)
    take(listed, 5, [b"key:1"])
    everything = listed.unlisted(1)
    assert {0, 4, 5} <= everything
    assert 4 not in listed.unlisted(0)
    take(listed, 9, [b"more:%d" % number for number in range(OUT_OF_ORDER)])
    assert listed.unlisted(OUT_OF_ORDER) == everything
    take(listed, 10 | 1 << SLOT_BITS, [b"last"])
    assert not {0, 4} & listed.unlisted(1)
    assert {5, 9, 10} <= listed.unlisted(1)


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
