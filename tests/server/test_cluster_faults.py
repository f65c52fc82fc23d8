"""Trees and reports of clusters to which things happen at random moments, against the truth that their writer knows."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from rtui.analysis.report.document import CoverageKind
from rtui.keyspace.slots import key_slot
from rtui.keyspace.store.name_search import HeldNames
from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import ScanState
from tests.cluster_faults import FAULTS, FaultyCluster, faulty_cluster, stable_keys
from tests.conftest import examples, require
from tests.server.analysis.test_cluster_analysis import analysing
from tests.server.browsing.test_session import browsing
from tests.server.targets import eventually

KEYS = 8_000

MOST_FAULTS = 4

TLS_VERSION, TLS_SHARE = "redis-7.0", 0.5
"""Of so many clusters of this version, which was built with it, the nodes talk in TLS, to each other and to clients."""

LIMIT_S = 90.0
"""No scan takes so long, whatever happens."""


@dataclass(frozen=True, slots=True)
class Read:
    """What came of reading a cluster to its end."""

    times: Counter[bytes] | None
    """How often each key was delivered; None where only their number is known."""
    stable: int
    """How many keys were that begin with `stable:`."""
    uncovered: Sequence[tuple[int, int]]
    """Slots."""
    is_whole: bool
    reason: str
    may_repeat: bool

    def covers(self, key: bytes) -> bool:
        return not any(first <= key_slot(key) <= last for first, last in self.uncovered)


@asynccontextmanager
async def disturbed(faulty: FaultyCluster, keys: Callable[[], int], is_over: Callable[[], bool]) -> AsyncIterator[None]:
    """Have faults happen that are drawn, each once so many keys have been read if that moment comes; then settle."""

    async def happen(fault: str, moment: int) -> None:
        await eventually(lambda: keys() >= moment or is_over())
        if not is_over():
            await faulty.happen(fault)

    drawn = [
        (faulty.random.choice(FAULTS), faulty.random.randrange(KEYS))
        for _ in range(faulty.random.randint(1, MOST_FAULTS))
    ]
    faults = asyncio.gather(*(happen(*one) for one in drawn))
    settling = asyncio.create_task(faulty.settle(after=faults))
    yield
    await settling


async def read_tree(faulty: FaultyCluster, folder: Path, pace: Pace) -> Read:
    async with browsing(faulty.target(), folder, pace=pace) as session:
        shown = session.passes.shown
        async with disturbed(faulty, lambda: session.store.keys, lambda: shown.progress.state.is_over):
            await eventually(lambda: shown.progress.state.is_over)
        progress, scan = shown.progress, shown.scan
        assert scan is not None
        times = Counter(name for page in HeldNames(session.store).pages() for name in page)
        return Read(
            times,
            sum(count for name, count in times.items() if name.startswith(b"stable:")),
            [pair for one in scan.uncovered for pair in one.slots],
            progress.state is ScanState.DONE,
            progress.reason or "",
            scan.repeats_possible,
        )


async def read_report(faulty: FaultyCluster, _: Path, pace: Pace) -> Read:
    async with (
        analysing(faulty.target(), pace=pace) as analysis,
        disturbed(faulty, lambda: analysis.progress.keys, lambda: analysis.progress.state.is_over),
    ):
        await analysis.run()
    report = analysis.report
    assert report is not None
    assert report.cluster is not None
    coverage, stable = report.head.coverage, (one for one in report.summary.root.children if one.name == b"stable")
    return Read(
        None,
        sum(one.stats.keys for one in stable if isinstance(one.stats.keys, int)),
        [pair for one in report.cluster.uncovered for pair in one.slots],
        coverage.kind is CoverageKind.EXACT,
        coverage.reason,
        coverage.repeats_possible,
    )


@pytest.mark.slow
@pytest.mark.sampled("version", "seed", one_in=5)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("version", ["redis-7.0", "redis-8.10", "valkey-9.1"])
async def test_no_key_is_missing_or_counted_twice_or_its_slot_is_named(version: str, seed: int, tmp_path: Path) -> None:
    for at in range(examples(3)):
        random = Random(f"{version} {seed} {at}")
        tls = version == TLS_VERSION and random.random() < TLS_SHARE
        async with faulty_cluster(require(version), random, stable_keys(KEYS), tls=tls) as faulty:
            read_all, pace = random.choice((read_tree, read_report)), random.choice((Pace.GENTLE, Pace.NORMAL))
            async with asyncio.timeout(LIMIT_S):
                read = await read_all(faulty, tmp_path / str(at), pace)
            check(read, faulty, await faulty.held())


def check(read: Read, faulty: FaultyCluster, held: set[bytes]) -> None:
    """Each key that was there throughout is there once, but for those in slots that are named."""
    said = f"{faulty.happened}; {read.reason}"
    stable, written = faulty.stable, faulty.writer.names
    wanted = {key for key in stable & held if read.covers(key)}
    assert read.is_whole or (read.reason and read.uncovered), said
    assert len(wanted) <= read.stable, said
    assert read.may_repeat or read.stable <= len(stable), said
    if read.times is not None:
        missing = wanted - read.times.keys()
        assert not missing, f"{len(missing)} missing; {said}"
        repeated = [key for key, times in read.times.items() if times > 1]
        assert read.may_repeat or not repeated, f"{len(repeated)} twice; {said}"
        assert read.times.keys() <= stable | written, said
