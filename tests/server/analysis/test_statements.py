"""Statements run in a process of their own: their bounds, what cancelling does, and what is said of the rows."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator

import polars as pl
import pytest
from msgspec import structs

from rtui.analysis.columns import Asked, Columns
from rtui.analysis.report.document import CoverageKind, Scope
from rtui.server.analysis import statements
from rtui.server.analysis.statements import (
    StatementFailed,
    StatementProcess,
    columns_of,
    notes_of,
    statement_process,
)
from rtui.table.kept_rows import PassRows
from rtui.table.rows import KeptRows
from rtui.table.schema import NEVER, SCHEMA, names_of
from rtui.table.statement import read_statement
from tests.made_report import made_report
from tests.server.targets import eventually

EXPLODES = "SELECT count(*) FROM keys a, keys b, keys c WHERE a.memory_bytes + b.memory_bytes + c.memory_bytes = 1"
NEEDS_MEMORY = "SELECT a.key || b.key || c.key AS n, count(*) FROM keys a, keys b, keys c GROUP BY 1 ORDER BY 1"


def kept(count: int = 5_000) -> PassRows:
    keys = [b"odd:\xff", b"-1", *(b"user:%d:cart" % number for number in range(count - 2))]
    name, raw = names_of(keys)
    facts = {
        "type": "hash", "node": "a:1", "expires_ms": NEVER, "memory_bytes": 10, "database": 0, "slot": 1,
    }  # fmt: skip
    table = pl.DataFrame([name, raw]).with_columns(pl.lit(value).alias(column) for column, value in facts.items())
    missing = (pl.lit(None, SCHEMA[column]).alias(column) for column in SCHEMA if column not in table.columns)
    rows = KeptRows(1 << 30, 1 << 30)
    rows.append(table.with_columns(*missing).select(*SCHEMA).cast(SCHEMA))
    rows.finish(0.0, is_all=True)
    return PassRows(rows, Scope())


@pytest.fixture
async def process() -> AsyncIterator[StatementProcess]:
    async with statement_process() as one:
        yield one


async def run(process: StatementProcess, sql: str, **bounds: float) -> tuple[list[tuple[object, ...]], bool]:
    statement = read_statement(sql)
    files = await process.write(statement, kept(), None)
    table, is_cut = await process.run(statement, files, **bounds)  # type: ignore[arg-type]
    return table.rows(), is_cut


@pytest.mark.slow
async def test_a_process_runs_one_statement_after_the_other(process: StatementProcess) -> None:
    await process.check(read_statement("SELECT count(*) FROM keys"))
    counted = (
        "SELECT pattern, count(*), sum(memory_bytes), max(ttl_ms), max(length) FROM keys GROUP BY 1 ORDER BY 2 DESC"
    )
    rows, is_cut = await run(process, counted)
    assert rows[0] == ("user:<id>:cart", 4_998, 49_980, -1, None)
    assert {row[0] for row in rows} == {"user:<id>:cart", "odd:\\xff", "-1"}
    assert not is_cut
    rows, is_cut = await run(process, "SELECT key, key_quoted FROM keys WHERE key LIKE 'odd%'", most_rows=1)
    assert (rows, is_cut) == ([("odd:\\xff", '"odd:\\xff"')], False)
    rows, is_cut = await run(process, "SELECT key FROM keys ORDER BY key", most_rows=2)
    assert (rows, is_cut) == ([("-1",), ("odd:\\xff",)], True)
    rows, _ = await run(process, "SELECT keys, memory_bytes, without_ttl FROM patterns ORDER BY keys DESC LIMIT 1")
    assert rows == [(4_998, 49_980, 4_998)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "sql", ["SELECT key FROM keys WHERE slot > 'a'", "SELECT key, count(*) FROM keys GROUP BY type"]
)
async def test_what_polars_cannot_do_is_known_before_any_key_is_asked(process: StatementProcess, sql: str) -> None:
    with pytest.raises(StatementFailed) as failed:
        await process.check(read_statement(sql))
    assert "\n" not in failed.value.happened
    await process.check(read_statement("SELECT key FROM keys"))


@pytest.mark.slow
async def test_a_statement_that_takes_too_long_is_ended(process: StatementProcess) -> None:
    with pytest.raises(StatementFailed) as failed:
        await run(process, EXPLODES, most_s=1.5)
    assert failed.value.happened == "It was ended after 1.5 s."
    assert await run(process, "SELECT count(*) FROM keys") == ([(5_000,)], False), "another process goes on"


@pytest.mark.slow
async def test_a_statement_that_takes_too_much_memory_is_ended(
    process: StatementProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statements, "MOST_MEMORY_BYTES", statements.LEAST_MEMORY_BYTES)
    with pytest.raises(StatementFailed) as failed:
        await run(process, NEEDS_MEMORY)
    assert failed.value.happened == "It needs more than 256 MiB of memory."


@pytest.mark.slow
async def test_cancelling_ends_the_process(process: StatementProcess) -> None:
    await process.check(read_statement(EXPLODES))
    assert process._process is not None
    number = process._process.pid
    idle_s = _seconds_of(number)
    running = asyncio.create_task(run(process, EXPLODES))
    await eventually(lambda: _seconds_of(number) > idle_s + 0.3)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


def _seconds_of(process: int) -> float:
    with open(f"/proc/{process}/stat") as file:  # noqa: PTH123 - no path
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize(
    ("sql", "asked"),
    [
        ("SELECT count(*) FROM keys", []),
        ("SELECT sum(memory_bytes) FROM keys", ["memory"]),
        ("SELECT expires_at, frequency FROM keys", ["ttl", "idle"]),
        ("SELECT without_ttl FROM patterns", ["ttl"]),
        ("SELECT * FROM keys", ["ttl", "memory", "idle", "length", "encoding"]),
    ],
)
def test_a_statement_asks_only_what_it_needs(sql: str, asked: list[str]) -> None:
    names = ("ttl", "memory", "idle", "length", "encoding")
    expected = Columns(**{name: Asked.ALL if name in asked else Asked.NONE for name in names})
    assert columns_of(read_statement(sql)) == expected


def test_findings_need_what_an_analysis_asks() -> None:
    assert columns_of(read_statement("SELECT * FROM findings")) is None
    both = columns_of(read_statement("SELECT length, rule FROM keys CROSS JOIN findings"))
    assert both == Columns(length=Asked.ALL)


def test_a_result_says_what_it_is_not_over() -> None:
    report = made_report()
    coverage = structs.replace(
        report.head.coverage,
        kind=CoverageKind.PARTIAL,
        keys=1_204,
        fraction=0.49,
        reason="it was interrupted",
        unread=2,
    )
    partial = structs.replace(report, head=structs.replace(report.head, coverage=coverage))
    said = notes_of(read_statement("SELECT key FROM keys"), partial, None, may_repeat=True)
    assert said == (
        "The result is over 1,204 keys, 49% of the keyspace only: it was interrupted.",
        "Left out: 2 keys with a name too long to read.",
        "Some keys may be there twice, since the server resized its table meanwhile.",
    )
