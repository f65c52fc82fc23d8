"""What servers keep in strings and scores is computed as they do it."""

from __future__ import annotations

import time
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtui.values.server_encodings import DENSE_BYTES, HEADER_BYTES, Likeness, estimate, geo_likeness, longitude_latitude
from tests.servers import Server

PLACES = {
    "Palermo": (13.361389, 38.115556), "Montréal": (-73.567, 45.501), "New York": (-74.006, 40.713),
    "Nairobi": (36.817, -1.286), "Auckland": (174.763, -36.848), "Honolulu": (-157.858, 21.307),
    "Ushuaia": (-68.304, -54.801), "Longyearbyen": (15.635, 78.220), "Null Island": (0.0, 0.0),
    "a corner": (180.0, 85.05112878), "another": (-180.0, -85.05112878),
}  # fmt: skip


def test_places_are_those_of_the_server(server: Server) -> None:
    source = Random(5)
    places = PLACES | {str(at): (source.uniform(-180, 180), source.uniform(-85, 85)) for at in range(300)}
    with server.client() as client:
        client.geoadd("places", [part for name, place in places.items() for part in (*place, name)])
        scores = client.zrange("places", 0, -1, withscores=True)
        told = client.geopos("places", *(member for member, _ in scores))
    for (member, score), place in zip(scores, told, strict=True):
        assert longitude_latitude(score) == pytest.approx(place, abs=1e-12), member


@pytest.mark.parametrize("score", [-1, 0.5, (1 << 53) + 2, 1 << 54, float("inf"), float("nan"), float("-inf"), 1.5e300])
def test_other_scores_are_no_places(score: float) -> None:
    assert longitude_latitude(score) is None
    assert geo_likeness([score]) is Likeness.NO


NOW = time.time()


@pytest.mark.parametrize(
    "scores",
    [
        [], [0.0], [1.0, 2.0, 3.0], [NOW], [NOW * 1_000 // 1], [float(int(NOW)) * 1_000_000], [12.5, 1 << 50],
        [(1 << 51) + 1, -1.0], [(1 << 51) + 1, 7.0], [1 << 60, 1 << 61], [4e12],
        [float(int(NOW * 1_000)) * 1_000 + 1_000 * at for at in range(50)],
    ],
)  # fmt: skip
def test_what_other_sorted_sets_hold_is_no_geo_key(scores: list[float]) -> None:
    assert geo_likeness(scores) is Likeness.NO


def test_times_in_microseconds_are_possible_places_and_no_more() -> None:
    assert geo_likeness([1_790_000_000_123_457, 1_795_873_974_549_446]) is Likeness.POSSIBLE


def test_places_on_several_continents_are_a_geo_key(valkey: Server) -> None:
    with valkey.client() as client:
        client.geoadd("places", [part for name, place in list(PLACES.items())[:9] for part in (*place, name)])
        scores = [score for _, score in client.zrange("places", 0, -1, withscores=True)]
        client.geoadd("place", (13.361389, 38.115556, "Palermo"))
        alone = [score for _, score in client.zrange("place", 0, -1, withscores=True)]
    assert geo_likeness(scores) is Likeness.LIKELY
    assert geo_likeness(alone) is Likeness.LIKELY


@pytest.mark.parametrize("count", [0, 1, 2, 7, 100, 1_000, 5_000, 20_000])
def test_counts_are_those_of_the_server(server: Server, count: int) -> None:
    with server.client() as client:
        client.pfadd("h")
        for start in range(0, count, 1_000):
            client.pfadd("h", *(f"element {count}:{at}" for at in range(start, min(count, start + 1_000))))
        stale = client.get("h")
        assert isinstance(stale, bytes)
        assert estimate(stale) == client.pfcount("h")
        assert estimate(client.get("h")) == client.pfcount("h")


def test_both_ways_to_keep_registers_were_counted(valkey: Server) -> None:
    with valkey.client() as client:
        client.pfadd("sparse", *range(100))
        client.pfadd("dense", *range(5_000))
        sparse, dense = client.get("sparse"), client.get("dense")
    assert (sparse[4], dense[4], len(dense)) == (1, 0, DENSE_BYTES)


def test_registers_up_to_the_highest_value_are_counted(valkey: Server) -> None:
    """The server counts what is written into the registers, which no element would reach."""
    source = Random(11)
    for most in (1, 5, 20, 51):
        bits = sum(source.randint(0, most) << 6 * at for at in range(1 << 14))
        data = b"HYLL" + bytes(11) + b"\x80" + bits.to_bytes(DENSE_BYTES - HEADER_BYTES, "little")
        with valkey.client() as client:
            client.set("h", data)
            assert estimate(data) == client.pfcount("h")


@given(st.binary(max_size=100) | st.binary(max_size=100).map(lambda rest: b"HYLL\x01" + bytes(11) + rest))
def test_other_bytes_have_no_count(data: bytes) -> None:
    assert estimate(data) is None or len(data) > HEADER_BYTES


def test_a_part_has_no_count(valkey: Server) -> None:
    with valkey.client() as client:
        client.pfadd("sparse", *range(100))
        client.pfadd("dense", *range(5_000))
        for name in ("sparse", "dense"):
            data = client.get(name)
            assert estimate(data) is not None
            assert not any(estimate(data[:end]) for end in range(0, len(data), 37))
            assert estimate(data + b"\x80") is None
