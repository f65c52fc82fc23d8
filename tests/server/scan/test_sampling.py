"""Random places of real tables: the picture they give is right, and its intervals are honest."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.analysis.estimates import NamespaceTally
from rtui.keyspace.slices import Slices
from rtui.keyspace.slots import key_slot
from rtui.keyspace.text.segments import Segment, Separators
from rtui.server.scan.cursor import Dialect
from rtui.server.scan.pace import Pace
from rtui.server.scan.run_control import RunControl
from rtui.server.scan.sampling import MAX_BATCH, KeySample, SlotSample, can_sample, sample, sample_slots, wanted_keys
from tests.proxy import DelayProxy
from tests.server.scanned import numbered, plant
from tests.server.targets import connected, lane_to, target_of
from tests.servers import Server

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
    by_slot = Counter(map(key_slot, found))
    assert by_slot[key_slot(b"{cart}")] == pytest.approx(keys / 3, abs=2)


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
