"""Random places of real tables: the picture they give is right, and its intervals are honest."""

from __future__ import annotations

from random import Random

import pytest

from rtui.analysis.estimates import NamespaceTally
from rtui.keyspace.slices import Slices
from rtui.keyspace.text.segments import Segment, Separators
from rtui.server.scan.cursor import Dialect
from rtui.server.scan.pace import Pace
from rtui.server.scan.run_control import RunControl
from rtui.server.scan.sampling import MAX_BATCH, Sample, can_sample, sample
from tests.proxy import DelayProxy
from tests.server.scanned import numbered, plant
from tests.server.targets import lane_to, target_of
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
    runs = 120
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
    names = plant(server, numbered(2000))
    told: list[bytes] = []
    sofar: list[int] = []

    def note(part: Sample) -> Slices[None]:
        sofar.append(len(part.keys))
        yield

    async with lane_to(target_of(server)) as lane:
        before = (lane.traffic.bytes_in, lane.traffic.bytes_out)
        taken = await sample(lane, RunControl(Pace.FULL), keys=1000, on_keys=told.extend, on_more=note)
        bytes_in, bytes_out = lane.traffic.bytes_in - before[0], lane.traffic.bytes_out - before[1]
    assert len(set(taken.keys)) == len(taken.keys)
    assert set(told) == set(taken.keys) <= names
    assert len(told) == len(taken.keys)
    assert taken.calls == 100
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
