"""Names of a megabyte: what is held of them, and asked for at once, is bounded in bytes and not in keys."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from rtui.keyspace.store.store import NamespaceStore
from rtui.server import guard
from rtui.server.browsing.passes import KeyspacePass
from rtui.server.deployment.nodes import Deployment
from rtui.server.scan.node import ScanNode
from rtui.server.scan.pace import Pace
from rtui.server.scan.page import ScanFilter
from rtui.server.scan.progress import ScanState
from rtui.server.scan.ranges import HEAD_BYTES
from rtui.server.scan.run_control import RunControl
from rtui.server.scan.sampling import SAMPLE_BYTES, sample
from rtui.server.scan.savepoint import SaveFile
from rtui.server.scan.scan import Scan
from rtui.server.wire.errors import ConnectionLost
from tests.server.targets import connected, lane_to, plant, target_of
from tests.servers import Server

LONG = 1 << 20
COUNT = 300
FIRST_PAGE_KEYS = 50
"""What comes before it is known how long names are, with room for pages that go beyond COUNT."""


@pytest.fixture
def long_names(valkey: Server) -> Server:
    """A server with 300 MiB of names."""
    for number in range(0, COUNT, 20):
        plant(valkey, [b"%d:" % one + bytes(LONG) for one in range(number, number + 20)])
    return valkey


@contextmanager
def peak_bytes(most: int) -> Iterator[None]:
    """Hold that no more than this was allocated at any time."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()


@pytest.mark.slow
async def test_pages_become_small_where_names_are_long(long_names: Server) -> None:
    sizes: list[int] = []
    async with connected(target_of(long_names)) as connection:
        scan = Scan([ScanNode(connection, size=COUNT)], lambda keys: sizes.append(len(keys)), RunControl(Pace.FULL))
        with peak_bytes(FIRST_PAGE_KEYS * 2 * LONG + HEAD_BYTES):
            await scan.run()
    assert scan.state is ScanState.DONE
    assert sum(sizes) == COUNT
    assert max(sizes[5:]) <= 20


class Weighed(NamespaceStore):
    """A store that weighs what it is given first."""

    first: int | None = None

    def add(self, keys: Sequence[bytes]) -> None:
        self.first = sum(map(len, keys)) if self.first is None else self.first
        super().add(keys)


@pytest.mark.slow
async def test_the_first_rows_are_few_bytes(long_names: Server, tmp_path: Path) -> None:
    store = Weighed()
    async with connected(target_of(long_names)) as connection:
        file = SaveFile("long", 0, tmp_path)
        with peak_bytes(2 * FIRST_PAGE_KEYS * LONG):
            filling = KeyspacePass(
                Deployment.over(connection),
                store,
                file,
                control=RunControl(),
                only=ScanFilter(),
                is_filling=lambda: False,
            )
            filling.control.pause()
            filling.begin(resume=False)
            while store.first is None:
                assert not filling.progress.state.is_over
                await asyncio.sleep(0)
            await filling.end()
    assert 0 < store.first < FIRST_PAGE_KEYS * LONG


@pytest.mark.slow
async def test_a_sample_ends_with_its_bytes(long_names: Server) -> None:
    async with lane_to(target_of(long_names)) as lane:
        with peak_bytes(SAMPLE_BYTES + 2 * FIRST_PAGE_KEYS * LONG):
            taken = await sample(lane, RunControl(Pace.FULL), keys=20_000, rng=Random(1))
    assert SAMPLE_BYTES < sum(map(len, taken.keys)) < SAMPLE_BYTES + FIRST_PAGE_KEYS * LONG
    assert taken.total is not None
    reach = taken.total.high - taken.total.value
    assert abs(taken.total.value - COUNT) < 3 * reach, "which an interval of 95 % misses once in 10^8"


@pytest.mark.slow
async def test_an_answer_without_end_ends_the_connection(long_names: Server) -> None:
    async with lane_to(target_of(long_names), max_reply_bytes=8 << 20) as lane:
        assert await lane.run(guard.ping()) == [b"PONG"]
        with pytest.raises(ConnectionLost, match="more than 8 MiB"):
            await lane.run(guard.scan(0, count=100))
        assert not lane.is_open


async def test_many_answers_that_are_small_each_may_be_large_together(valkey: Server) -> None:
    valkey.admin.set("big", b"x" * 60_000)
    async with lane_to(target_of(valkey), max_reply_bytes=1 << 20) as lane:
        for _ in range(50):
            assert await lane.run(guard.getrange(b"big", 0, 59_999)) == [b"x" * 60_000]
