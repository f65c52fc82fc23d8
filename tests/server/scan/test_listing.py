"""What becomes of a page of keys: what is new of it, which slots are listed, and where its keys move meanwhile."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from random import Random
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtui.keyspace.slots import SLOTS, key_slot
from rtui.server.scan.cursor import FIRST_KEYS, SLOT_BITS, Dialect
from rtui.server.scan.listing import OUT_OF_ORDER, STUCK_AFTER, Listing
from rtui.server.scan.node import FAR_S, ScanNode, width_for, with_slots
from rtui.server.scan.pace import Pace
from rtui.server.scan.page import BeginAgainError, ScanFilter
from rtui.server.scan.ranges import Slots
from rtui.server.scan.run_control import RunControl
from rtui.server.scan.scan import Scan
from rtui.server.scan.slot_ledger import ClusterSlots, SlotLedger, SlotView, read_slot_view
from rtui.server.wire.connection import Connection
from rtui.server.wire.errors import Reply, ScanRefusedError, ServerError
from rtui.server.wire.target import Target
from tests.conftest import examples
from tests.proxy import DelayProxy
from tests.server.targets import Seen, connected, numbered, plant, target_of
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
    assert slots_in(NODES.replace(b"myself,", b"").replace(b"slave", b"myself,slave")) == [(5463, 10922)]


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


TAGS = [b"{%d}" % number for number in range(12)]
SLOT_OF = {tag: key_slot(tag) for tag in TAGS}


@dataclass
class ModelNode:
    """A node: what it serves, what is being moved, its keys, and the order in which its cursors list them."""

    id: str
    owned: set[int]
    epoch: int
    seed: int
    keys: defaultdict[int, set[bytes]] = field(default_factory=lambda: defaultdict(set))
    moving: dict[int, str] = field(default_factory=dict)
    """Slots that it hands over or takes in, with the id of the node that is to have each."""
    is_up: bool = True
    lost: set[int] = field(default_factory=set)
    """Slots that it has lost or handed over partly since it was last viewed."""

    def view(self) -> SlotView:
        self.lost.clear()
        return SlotView(self.id, [(slot, slot) for slot in sorted(self.owned)], self.moving.copy(), self.epoch)

    def listed(self, is_by_slot: bool) -> list[tuple[tuple[int, int], bytes]]:
        """All keys with their positions, in the order of positions."""
        found = []
        for slot, keys in self.keys.items():
            for key in keys:
                position = crc32(key, self.seed)
                found.append(((slot, position) if is_by_slot else (0, position), key))
        return sorted(found)


class ModelScan:
    """The scan of one node, a step at a time, as `NodeScan` does it: passes, with views before, within and after."""

    def __init__(self, node: ModelNode, cluster: ModelCluster) -> None:
        self.node, self.cluster = node, cluster
        self.is_by_slot = cluster.is_by_slot
        self.filter = cluster.slots.add_node(node.id, is_by_slot=self.is_by_slot)
        self.visiting: frozenset[int] | None = None
        self.position = (-1, 0)

    def restarted(self) -> None:
        self.cluster.slots.begin_anew(self.node.id, is_by_slot=self.is_by_slot)
        self.visiting = None

    def visits(self, *, is_over: bool) -> tuple[set[int], set[int]]:
        """The slots whose visits have begun, and those whose visits have ended."""
        visiting = self.visiting or frozenset()
        if is_over:
            return set(visiting), set(visiting)
        if not self.is_by_slot:
            return (set(visiting) if self.position != (-1, 0) else set()), set()
        ended = {slot for slot in visiting if slot < self.position[0]}
        return ended | ({self.position[0]} & visiting), ended

    def observe(self, *, is_over: bool = False) -> None:
        begun, ended = self.visits(is_over=is_over)
        self.cluster.slots.observe(self.node.id, self.node.view(), begun=begun, ended=ended)

    def step(self, rng: Random) -> None:
        if not self.node.is_up:
            return
        if self.visiting is None:
            self.visiting = self.cluster.slots.begin_pass(self.node.id, self.node.view()) or None
            self.position = (-1, 0)
        elif rng.random() < 0.3:
            self.observe()
        else:
            ahead = [
                (position, key)
                for position, key in self.node.listed(self.is_by_slot)
                if position > self.position and (not self.is_by_slot or position[0] in self.visiting)
            ]
            page = ahead[: rng.randint(1, 6)]
            self.cluster.delivered.update(self.filter.accept([key for _, key in page]))
            if len(page) == len(ahead):
                self.observe(is_over=True)
                self.visiting = None
            else:
                self.position = page[-1][0]
                if self.is_by_slot and rng.random() < 0.2:  # the slot's table has shrunk: some of it comes again
                    self.position = self.position[0], min(position for (_, position), _ in page) - 1


class ModelCluster:
    """Nodes, keys that stay and keys that come and go, and one scan of all of it."""

    def __init__(self, rng: Random, *, is_by_slot: bool, most: int = 10**6) -> None:
        self.rng, self.is_by_slot = rng, is_by_slot
        self.slots = ClusterSlots(most)
        self.delivered: Counter[bytes] = Counter()
        self.epoch = 3
        self.nodes: list[ModelNode] = []
        for number in range(3):
            owned = {SLOT_OF[tag] for tag in TAGS[number::3]}
            self.nodes.append(ModelNode(f"node {number}", owned, number + 1, rng.getrandbits(32)))
        self.stable = {b"%b:%d" % (rng.choice(TAGS), number) for number in range(rng.randrange(200))}
        for key in self.stable:
            self.owner(key_slot(key)).keys[key_slot(key)].add(key)
        first = rng.sample(sorted(self.stable), min(len(self.stable), rng.randrange(20)))  # of a page before the scan
        self.slots.add_delivered(first)
        self.delivered.update(first)
        self.scans = [ModelScan(node, self) for node in self.nodes]

    def owner(self, slot: int) -> ModelNode:
        return next(node for node in self.nodes if slot in node.owned and node.is_up)

    def change(self) -> None:
        """Something that happens in a cluster."""
        rng = self.rng
        source, target = rng.sample([node for node in self.nodes if node.is_up], 2)
        match rng.randrange(8):
            case 0 | 1 if source.owned - self.moving_slots():  # CLUSTER SETSLOT … MIGRATING, IMPORTING
                slot = rng.choice(sorted(source.owned - self.moving_slots()))
                source.moving[slot] = target.moving[slot] = target.id
            case 2 | 3:
                self.move_keys()
            case 4:
                self.finish()
            case 5 if source.owned:  # atomic slot migration
                slot = rng.choice(sorted(source.owned))
                if slot not in self.moving_slots() and (self.is_by_slot or slot not in target.lost):
                    self.hand_over(slot, source, target)
            case 6 if rng.random() < 0.3 and not source.moving:  # its replica knows of no moves
                self.fail_over(source)
            case 7 if rng.random() < 0.3:  # restarted, with its keys
                source.seed = rng.getrandbits(32)
                self.scans[self.nodes.index(source)].restarted()

    def moving_slots(self) -> set[int]:
        return {slot for node in self.nodes for slot in node.moving}

    def migrations(self) -> list[tuple[int, ModelNode, ModelNode]]:
        """The slots that are being moved; the source may have been promoted since, and not know of it."""
        targets = [node for node in self.nodes if node.is_up]
        taken_in = [(slot, node) for node in targets for slot in sorted(node.moving) if node.moving[slot] == node.id]
        return [(slot, self.owner(slot), node) for slot, node in taken_in]

    def move_keys(self) -> None:
        for slot, source, target in self.migrations():
            if slot not in source.moving:
                continue
            for key in sorted(source.keys[slot])[: self.rng.randrange(4)]:
                source.keys[slot].discard(key)
                target.keys[slot].add(key)
            source.lost.add(slot)

    def finish(self) -> None:
        for slot, source, target in self.migrations()[:1]:
            if self.is_by_slot or slot not in target.lost:
                self.hand_over(slot, source, target)

    def hand_over(self, slot: int, source: ModelNode, target: ModelNode) -> None:
        target.keys[slot] |= source.keys.pop(slot, set())
        for node in self.nodes:
            node.moving.pop(slot, None)
        source.owned.discard(slot)
        source.lost.add(slot)
        target.owned.add(slot)
        if target.epoch < self.epoch:
            self.epoch += 1
            target.epoch = self.epoch

    def fail_over(self, dead: ModelNode) -> None:
        """A replica, which is another node, is promoted; sometimes the primary lives on for a while without knowing."""
        self.epoch += 1
        promoted = ModelNode(f"node {len(self.nodes)}", set(dead.owned), self.epoch, self.rng.getrandbits(32))
        promoted.keys.update({slot: set(keys) for slot, keys in dead.keys.items()})
        if self.rng.random() < 0.5:
            dead.is_up = False
            self.slots.ledger.lose(dead.id)
        else:  # it listens to clients still, but has nothing to say
            dead.owned, dead.moving, dead.keys = set(), {}, defaultdict(set)
        self.nodes.append(promoted)
        self.scans.append(ModelScan(promoted, self))

    def run(self, steps: int, changes: float) -> None:
        for _ in range(steps):
            if self.rng.random() < changes:
                self.change()
            self.rng.choice(self.scans).step(self.rng)

    def settle(self) -> None:
        """Let all migrations end, and scan on until nothing is left."""
        while self.migrations():
            for scan in self.scans:
                if scan.node.is_up:
                    scan.observe()
            self.finish()
        for node in self.nodes:
            node.moving.clear()
        for _ in range(3_000):
            if set(SLOT_OF.values()) <= self.slots.ledger.covered:
                return
            self.rng.choice(self.scans).step(self.rng)

    def check(self) -> None:
        """No key twice, and of covered slots all that were there throughout."""
        assert not [key for key, times in self.delivered.items() if times > 1]
        missing = self.stable - set(self.delivered)
        assert not {key_slot(key) for key in missing} & self.slots.ledger.covered


@given(st.integers(0, 2**64), st.booleans(), st.floats(0.0, 0.5), st.integers(0, 300))
@settings(max_examples=examples(400))
def test_each_key_once_whatever_moves(seed: int, is_by_slot: bool, changes: float, steps: int) -> None:
    cluster = ModelCluster(Random(seed), is_by_slot=is_by_slot)
    cluster.run(steps, changes)
    cluster.check()
    cluster.settle()
    cluster.check()
    assert set(SLOT_OF.values()) <= cluster.slots.ledger.covered
    assert set(cluster.delivered) == cluster.stable
    assert not cluster.slots.unsure


def test_a_slot_that_only_the_node_that_takes_it_in_knows_of_is_covered_with_a_note() -> None:
    """The node that serves it need not know: it may have been promoted in the middle."""
    ledger = SlotLedger()
    serving, taking = SlotView("a", [(0, 99)], epoch=1), SlotView("b", [(100, SLOTS - 1)], {5: "b"}, epoch=2)
    for view in (taking, serving):
        ledger.add_node(view.served_by, is_by_slot=True)
        ledger.observe(view.served_by, view)
    visited = ledger.wanted("a")
    assert ledger.observe("a", serving, begun=visited, ended=visited).covered == visited == frozenset(range(100))
    noted = [ledger.is_taking_in]
    for view in (replace(serving, moves={5: "b"}), serving, replace(taking, moves={})):
        ledger.observe(view.served_by, view)
        noted.append(ledger.is_taking_in)
    assert noted == [True, False, True, False]
