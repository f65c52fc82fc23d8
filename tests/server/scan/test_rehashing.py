"""Tables that are rehashed under a scan, and random places of real tables with honest intervals."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
import redis
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rtui.analysis.estimates import NamespaceTally
from rtui.keyspace.slices import Slices
from rtui.keyspace.slots import key_slot
from rtui.keyspace.store.store import NamespaceStore
from rtui.keyspace.text.segments import Segment, Separators
from rtui.server.scan.cursor import POSITION_END, Dialect, equal_ranges
from rtui.server.scan.node import ScanNode
from rtui.server.scan.pace import Pace
from rtui.server.scan.pipeline import TABLE_PROBES
from rtui.server.scan.ranges import CursorSpan, Ranges
from rtui.server.scan.run_control import RunControl
from rtui.server.scan.sampling import MAX_BATCH, KeySample, SlotSample, can_sample, sample, sample_slots, wanted_keys
from rtui.server.scan.scan import Scan
from tests.conftest import examples
from tests.proxy import DelayProxy
from tests.server.scan.table import Dict
from tests.server.targets import Seen, connected, lane_to, numbered, plant, table_bits, target_of, uproot
from tests.servers import Server

RANDOMS = st.integers(0, 1 << 32).map(Random)

CHANGES = st.sampled_from((0, 5, 60))
"""How often a table changes during a scan."""


def a_table(rng: Random, keys: int) -> Dict:
    """A table of so many keys with random hashes, of about the size that the server gives it."""
    hashes = {b"a:%d:%d" % (index % 7, index): rng.randrange(POSITION_END) for index in range(keys)}
    return Dict(hashes, max(1, keys.bit_length() + rng.randint(-2, 2)))


def change(table: Dict, rng: Random, number: int) -> None:
    """What clients and the server's own timer may do between two pages."""
    what = rng.randrange(6)
    if what == 0:
        table.put(b"new:%d" % number, rng.randrange(POSITION_END))
    elif what == 1:
        table.resize(rng.randint(1, 11))
    elif what < 4:
        table.rehash(rng.choice((1, 5, 100, 3000)))


def scanned(
    table: Dict, rng: Random, ranges: Ranges, *, count: int, changes: int, fleeting: list[bytes], first_cursor: int = 0
) -> tuple[Counter[bytes], bool]:
    """Scan as a node's scan does; returns how often each key was delivered, and whether repeats were possible."""
    seen: Counter[bytes] = Counter()
    watch = Ranges(Dialect.STANDALONE).table
    watch.observe(first_cursor)
    while not ranges.is_done:
        one = rng.choice(ranges.under_way(8))
        cursor, keys = table.scan(one.cursor, count)
        seen.update(ranges.advance(one, cursor, keys))
        watch.observe(cursor)
        if changes:
            changes -= 1
            change(table, rng, changes)
            if fleeting and rng.random() < 0.5:
                table.remove(fleeting.pop())
    if not watch.is_sure and watch.bits > 1:
        cursors = [Dialect.STANDALONE.cursor(rng.randrange(POSITION_END)) for _ in range(TABLE_PROBES)]
        watch.observe_random([table.scan(cursor, 1)[0] for cursor in cursors])
    return seen, ranges.repeats_possible or watch.has_shrunk


@pytest.mark.slow
@settings(deadline=None, max_examples=examples(200))
@given(RANDOMS, st.sampled_from((1, 2, 8, 64)), st.integers(1, 40), CHANGES)
@example(Random(316146), 8, 1, 5)  # a range begins in the middle of a bucket, and the table grows
@example(Random(1281), 8, 2, 60)  # the same, next to a range that was passed over
@example(Random(9231), 8, 2, 5)  # a bucket of several ranges
@example(Random(13533), 8, 1, 60)  # a page that runs over a range into the middle of the next one
@example(Random(18758), 8, 27, 60)  # a table that shrinks and grows again, of many keys
def test_every_key_that_stays_is_delivered_and_counted_once(rng: Random, width: int, count: int, changes: int) -> None:
    table = a_table(rng, rng.choice((3, 60, 400)))
    names = sorted(table.keys)
    staying = set(rng.sample(names, len(names) // 2))
    ranges = Ranges(Dialect.STANDALONE, [CursorSpan(*piece) for piece in equal_ranges(width)])
    fleeting = [name for name in names if name not in staying]
    seen, is_flagged = scanned(table, rng, ranges, count=count, changes=changes, fleeting=fleeting)
    assert staying <= set(seen)
    assert is_flagged or max(seen.values(), default=1) == 1
    store = NamespaceStore(Separators())
    store.add(list(seen.elements()))
    store.repeats_possible = is_flagged
    for _ in store.settle():
        pass
    assert store.root.count == len(seen)


@settings(deadline=None, max_examples=examples(100))
@given(st.integers(0, 1 << 32).map(Random), st.integers(2, 40))
def test_a_later_run_over_a_smaller_table_has_every_key(rng: Random, count: int) -> None:
    """Ranges that were cut where a larger table had its buckets begin in the middle of those of the smaller one."""
    table = a_table(rng, 300)
    cuts = sorted({rng.randrange(1, 1 << 11) << 53 for _ in range(rng.randint(1, 6))})
    table.resize(rng.randint(1, 6))
    table.rehash(5000)
    spans = [CursorSpan(start, end) for start, end in zip([0, *cuts], [*cuts, POSITION_END], strict=True)]
    rng.shuffle(spans)
    ranges = Ranges(Dialect.STANDALONE, spans)
    seen, is_flagged = scanned(table, rng, ranges, count=count, changes=0, fleeting=[])
    assert set(seen) == table.keys
    assert is_flagged or max(seen.values()) == 1


@pytest.mark.slow
@settings(deadline=None, max_examples=examples(200))
@given(RANDOMS, st.sampled_from((1, 8, 64)), st.integers(1, 40), CHANGES)
@example(Random(39), 1, 32, 0)
def test_a_first_page_that_was_taken_before(rng: Random, width: int, count: int, changes: int) -> None:
    """The table may shrink between that page and the next one, and then again hold keys of that page."""
    table = a_table(rng, rng.choice((60, 400)))
    names = table.keys
    cursor, keys = table.scan(0, 20)
    table.resize(rng.randint(1, 5))
    table.rehash(rng.choice((0, 5, 5000)))
    begin = Dialect.STANDALONE.position(cursor)
    spans = [CursorSpan(max(begin, start), end) for start, end in equal_ranges(width) if end > begin] if cursor else []
    ranges = Ranges(Dialect.STANDALONE, spans, first_keys=keys)
    seen, is_flagged = scanned(table, rng, ranges, count=count, changes=changes, fleeting=[], first_cursor=cursor)
    seen.update(keys)
    assert names <= set(seen)
    assert is_flagged or max(seen.values()) == 1


@settings(deadline=None)
@given(st.integers(0, 1 << 32).map(Random), st.integers(1, 40))
def test_a_table_that_only_grows_gives_nothing_twice(rng: Random, count: int) -> None:
    table = a_table(rng, 60)
    ranges = Ranges(Dialect.STANDALONE)
    seen: Counter[bytes] = Counter()
    bits = 9
    while not ranges.is_done:
        one = ranges.under_way(1)[0]
        cursor, keys = table.scan(one.cursor, count)
        seen.update(ranges.advance(one, cursor, keys))
        table.resize(bits)
        table.rehash(rng.randrange(50))
        bits += not table.is_rehashing and bits < 12
    assert seen == Counter(table.keys)
    assert not ranges.repeats_possible


@settings(deadline=None)
@given(st.integers(0, 1 << 32).map(Random), st.integers(1, 20), st.integers(1, 7))
def test_a_table_that_is_small_for_one_page_only(rng: Random, count: int, less: int) -> None:
    """Too short for the length of cursors to show it: the keys that come twice do."""
    table = a_table(rng, 300)
    names = sorted(table.keys)
    ranges = Ranges(Dialect.STANDALONE)
    seen: Counter[bytes] = Counter()
    watch = Ranges(Dialect.STANDALONE).table
    for page in range(5000):
        if ranges.is_done:
            break
        if page % 5 == 3:
            table.resize(8 - less)
            table.rehash(5000)
        one = ranges.under_way(1)[0]
        cursor, keys = table.scan(one.cursor, count)
        seen.update(ranges.advance(one, cursor, keys))
        watch.observe(cursor)
        table.resize(8)
        table.rehash(5000)
    assert set(seen) == set(names)
    assert ranges.repeats_possible or watch.has_shrunk or max(seen.values()) == 1


def asked(client: redis.Redis, cursor: int, count: int) -> tuple[int, list[bytes]]:
    reply: Any = client.scan(cursor, count=count)
    return int(reply[0]), list(reply[1])


@pytest.mark.parametrize(("version", "keys"), [("redis62", 3), ("redis70", 3), ("redis810", 3), ("valkey", 16)])
def test_ranges_of_a_server_whose_small_table_grows(version: str, keys: int, request: pytest.FixtureRequest) -> None:
    """Every second range begins in the middle of one of four buckets; after the table has grown, none does."""
    server: Server = request.getfixturevalue(version)
    client = server.client()
    repeated = 0
    for attempt in range(20):
        server.admin.flushall()
        names = plant(server, numbered(keys, b"%d:" % attempt))
        ranges = Ranges(Dialect.STANDALONE, [CursorSpan(*piece) for piece in equal_ranges(8)])
        seen: Counter[bytes] = Counter()
        for one in ranges.under_way(8)[1::2]:
            if not one.is_done:
                seen.update(ranges.advance(one, *asked(client, one.cursor, 1)))
        plant(server, numbered(400, b"more:"))
        while not ranges.is_done:
            one = ranges.under_way(1)[0]
            seen.update(ranges.advance(one, *asked(client, one.cursor, 1)))
        assert names <= set(seen)
        assert ranges.repeats_possible or max(seen.values()) == 1
        repeated += max(seen.values()) > 1
    assert repeated


@pytest.mark.parametrize("version", ["redis62", "redis70", "redis810"])
async def test_a_table_that_shrinks_after_the_first_page(version: str, request: pytest.FixtureRequest) -> None:
    """The keys of the first page come again with the second one, and the table was never larger in this scan."""
    server: Server = request.getfixturevalue(version)
    server.admin.config_set("hz", 100)
    client = server.client()
    names = plant(server, numbered(4000))
    cursor, first_keys = asked(client, 0, 20)
    while cursor.bit_length() < 12:
        more, keys = asked(client, cursor, 1)
        cursor, first_keys = more, first_keys + keys
    uproot(server, sorted(names - set(first_keys))[20:])
    while table_bits(server) > 6:
        client.mget(*numbered(200, b"nobody:"))
    seen = Seen()
    seen.keys.update(first_keys)
    async with connected(target_of(server)) as connection:
        scan = Scan([ScanNode(connection, first_cursor=cursor, first_keys=first_keys)], seen, RunControl(Pace.FULL))
        await scan.run()
    assert seen.repeated
    assert scan.repeats_possible


SHARES = {b"large": 0.62, b"middle": 0.3, b"small": 0.08}
TOTAL = 20_000


def plant_shares(server: Server) -> None:
    """Namespaces of known shares, planted so that the table has just grown and is half empty."""
    for name, share in SHARES.items():
        plant(server, numbered(round(TOTAL * share), name + b":"))


@pytest.mark.slow
@pytest.mark.parametrize("version", ["redis62", "redis810", "valkey"])
async def test_intervals_cover_the_truth_near_nominal(version: str, request: pytest.FixtureRequest) -> None:
    """Of many samples, about 95 in 100 intervals hold the share, and so do those of the total."""
    server: Server = request.getfixturevalue(version)
    plant_shares(server)
    hits = dict.fromkeys((*SHARES, b"total"), 0)
    runs = 300
    async with lane_to(target_of(server)) as lane:
        for seed in range(runs):
            tally = NamespaceTally(Separators())
            taken = await sample(lane, RunControl(Pace.FULL), keys=300, rng=Random(seed), on_keys=tally.add)
            shares = tally.shares(population=TOTAL)
            for name, share in SHARES.items():
                hits[name] += share in shares[(Segment(name, b":"),)]
            assert taken.total is not None
            hits[b"total"] += TOTAL in taken.total
    assert all(hit / runs >= 0.88 for hit in hits.values()), hits
    assert sum(hits.values()) / runs / len(hits) <= 0.995


async def test_keys_are_distinct_and_told_as_they_come(server: Server) -> None:
    names = plant(server, numbered(8000))
    told: list[bytes] = []
    sofar: list[int] = []

    def note(part: KeySample) -> Slices[None]:
        sofar.append(len(part.keys))
        yield

    async with lane_to(target_of(server)) as lane:
        before = (lane.traffic.bytes_in, lane.traffic.bytes_out)
        taken = await sample(lane, RunControl(Pace.FULL), keys=4000, on_keys=told.extend, on_more=note)
        bytes_in, bytes_out = lane.traffic.bytes_in - before[0], lane.traffic.bytes_out - before[1]
    assert len(set(taken.keys)) == len(taken.keys)
    assert set(told) == set(taken.keys) <= names
    assert len(told) == len(taken.keys)
    assert taken.calls == 400
    assert sofar == sorted(sofar)
    assert 0 < len(sofar) < 10
    assert bytes_in > bytes_out > 0


async def test_an_empty_database(valkey: Server) -> None:
    async with lane_to(target_of(valkey)) as lane:
        taken = await sample(lane, RunControl(), keys=100)
    assert not taken.keys
    assert taken.total is None


async def test_writes_are_small_and_never_ask_for_much(valkey: Server) -> None:
    plant(valkey, numbered(3000))
    async with DelayProxy(valkey.port, 0.002) as proxy, lane_to(target_of(valkey, port=proxy.port)) as lane:
        for pace in Pace:
            await sample(lane, RunControl(pace), keys=800)
        sent = proxy.commands()
    assert all(argv[0] == b"SCAN" and argv[2:] == [b"COUNT", b"10"] for argv in sent)
    assert len(sent) == 3 * 80
    assert MAX_BATCH <= 20


async def test_a_refusal_ends_it_with_nothing(valkey: Server) -> None:
    plant(valkey, numbered(100))
    valkey.admin.execute_command("ACL", "SETUSER", "default", "-scan")
    async with lane_to(target_of(valkey)) as lane:
        assert (await sample(lane, RunControl(), keys=1000)).keys == {}


def test_where_a_sample_would_be_unfair_there_is_none() -> None:
    assert can_sample(Dialect.STANDALONE)
    assert not can_sample(Dialect.SLOTTED)
    assert not can_sample(Dialect.OPAQUE)


@given(st.lists(st.integers(0, 10_000), max_size=60), st.integers(1, 500), st.integers(0, 2**32))
def test_every_slot_gives_its_part(sizes: list[int], keys: int, seed: int) -> None:
    wanted = wanted_keys(enumerate(sizes), keys, Random(seed))
    total = sum(sizes)
    most = {one.slot: one.most for one in wanted}
    for slot, size in enumerate(sizes):
        part = size * min(1.0, keys / total) if total else 0.0
        assert part - 1 < most.get(slot, 0) < part + 1
        assert most.get(slot, 0) <= size
    assert abs(sum(most.values()) - min(keys, total)) <= 1


async def drawn(server: Server, keys: int, seed: int) -> tuple[list[bytes], SlotSample]:
    found: list[bytes] = []
    async with connected(target_of(server)) as connection:
        taken = await sample_slots(
            *(await connection.bulk(), ((0, 16_383),), RunControl(Pace.FULL)),
            keys=keys,
            on_keys=found.extend,
            on_wait=lambda reason: None,
            rng=Random(seed),
        )
    return found, taken


@pytest.mark.parametrize("keys", [900, 2_500, 6_000, 8_900])
async def test_a_heavy_slot_gives_as_many_as_it_has(cluster_node: Server, keys: int) -> None:
    """One hash tag has a third of the keys; random cursors would hardly ever meet its slot."""
    tagged = [b"{cart}:%d" % number for number in range(3_000)]
    others = [b"page:%d" % number for number in range(6_000)]
    pipeline = cluster_node.client().pipeline(transaction=False)
    for name in (*tagged, *others):
        pipeline.set(name, b"x")
    pipeline.execute()
    found, taken = await drawn(cluster_node, keys, 7)
    assert taken.failure is None
    assert taken.total == 9_000
    assert len(found) == len(set(found))
    assert set(found) <= {*tagged, *others}
    assert abs(len(found) - keys) <= 1
    assert Counter(map(key_slot, found))[key_slot(b"{cart}")] == pytest.approx(keys / 3, abs=2)


async def test_what_is_denied_is_said(cluster_node: Server) -> None:
    cluster_node.client().set(b"a", b"x")
    cluster_node.admin.execute_command("ACL SETUSER default -cluster|countkeysinslot")
    try:
        found, taken = await drawn(cluster_node, 10, 1)
    finally:
        cluster_node.admin.execute_command("ACL SETUSER default +@all")
    assert found == []
    assert taken.failure is not None
    assert "CLUSTER COUNTKEYSINSLOT" in taken.failure.happened
