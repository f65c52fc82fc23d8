"""What a table of keys adds up to is what the same keys add up to when they are counted one by one."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import polars as pl
import pytest

from rtui.analysis.aggregate.aggregates import Aggregates
from rtui.analysis.aggregate.table_aggregates import TableAggregates, batches_of, with_moment
from rtui.analysis.aggregate.top_keys import TopKeys
from rtui.analysis.columns import ALL_COLUMNS, SAMPLED_COLUMNS, Columns
from rtui.analysis.report.document import Scope
from rtui.keyspace.slices import finish
from rtui.keyspace.text.segments import Separators
from rtui.server.analysis.run import AnalysisRun
from rtui.server.options import AnalysisOptions
from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import ScanState
from tests.analysis.aggregate.same import assert_same
from tests.conftest import Pool
from tests.grammar import Grammar, load
from tests.server.inspection.gathered import inspecting
from tests.server.targets import connected, target_of
from tests.servers import Server

KEYS = 6_000

STARTED_S = 1_700_000_000.0


class BothTops(TopKeys):
    """Tells other lists of keys that are left out."""

    def __init__(self, other: TopKeys) -> None:
        super().__init__(other.top)
        self._other = other

    def leave_out(self, key_type: bytes | None, most_length: int) -> None:
        super().leave_out(key_type, most_length)
        self._other.leave_out(key_type, most_length)


class Both(TableAggregates):
    """Adds all that comes one by one as well."""

    def __init__(self, scope: Scope) -> None:
        separators = Separators(scope.separators)
        super().__init__(separators, scope=scope, started_at_s=STARTED_S)
        self.others = Aggregates(separators, scope=scope, started_at_s=STARTED_S)
        self.big = BothTops(self.others.big)

    def add_rows(self, made: Callable[[], pl.DataFrame], rows: int, asked_at_s: float) -> None:
        table = made()
        super().add_rows(lambda: table, rows, asked_at_s)
        for batch, _ in batches_of(with_moment(table, int(asked_at_s * 1000))):
            self.others.add(batch, asked_at_s)
        for (key_type, encoding), alike in table.drop_nulls("encoding").group_by("type", "encoding"):
            self.others.add_encodings(str(key_type).encode(), [str(encoding).encode()] * alike.height)


def fill(server: Server, seed: int) -> None:
    """Write keys of the grammar."""
    with socket.socket(socket.AF_UNIX) as to_server:
        to_server.connect(server.socket)
        load(to_server, Grammar(seed), KEYS)


@pytest.mark.slow
@pytest.mark.parametrize("columns", [ALL_COLUMNS, SAMPLED_COLUMNS], ids=["all", "default"])
@pytest.mark.parametrize(("version", "seeds"), [("redis-7.0", (1, 2)), ("valkey-9.1", (3, 8))])
async def test_both_say_the_same(pool: Pool, version: str, seeds: tuple[int, ...], columns: Columns) -> None:
    server = pool.take(version, version)
    for seed in seeds:
        server.client().flushall()
        fill(server, seed)
        found = Both(Scope(columns=columns, top=20))
        async with connected(target_of(server)) as connection:
            scan, pipeline = await inspecting(connection, found, columns=columns)
            await scan.run()
            pipeline.settle()
        assert found.keys == KEYS
        assert_same(finish(found.others.summary()), finish(found.summary()))


async def test_an_analysis_adds_up_a_table(valkey: Server) -> None:
    client = valkey.client()
    client.mset({f"user:{number}:name": "x" * number for number in range(1, 200)})
    async with connected(target_of(valkey)) as connection:
        analysing = AnalysisRun(connection, AnalysisOptions(pace=Pace.FULL))
        await analysing.run()
    report = analysing.report
    assert report is not None
    assert report.head.coverage.keys == 199
    ((user,),) = (report.summary.root.children,)
    assert [(one.name, one.stats.keys, one.distinct) for one in user.children] == [(b"{id}", 199, 199)]


@pytest.mark.parametrize("step", ["rtui.table.partial.Partial.add", "rtui.analysis.aggregate.top_keys.TopKeys.rank"])
@pytest.mark.parametrize("error", [pl.exceptions.ComputeError("no"), pl.exceptions.PanicException("gone")])
async def test_whatever_fails_in_polars_ends_the_analysis_with_its_message(
    valkey: Server, error: BaseException, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the thread that folds, and on the event loop, which ranks what was folded."""

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(step, fail)
    valkey.client().mset({f"user:{number}": "x" for number in range(3_000)})
    async with connected(target_of(valkey)) as connection:
        analysing = AnalysisRun(connection, AnalysisOptions(pace=Pace.FULL))
        async with asyncio.timeout(20):
            await analysing.run()
    assert analysing.progress.state is ScanState.FAILED
    assert str(error) in (analysing.progress.reason or "")
