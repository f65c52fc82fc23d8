"""Running statements of SQL over rows that were kept, each in a process that can be ended.

Polars can't be interrupted: one call may join for hours and take all of the memory. So a statement runs in a process of
its own with bounds on rows, time and memory, and cancelling it kills the process.
"""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rtui.analysis import humanize
from rtui.analysis.columns import Asked, Columns, columns_for
from rtui.analysis.estimates import Estimate
from rtui.analysis.findings.finding import Found
from rtui.analysis.report.document import ColumnState, CoverageKind, Report
from rtui.keyspace.text.display import SafeText, display_text
from rtui.keyspace.text.segments import Separators
from rtui.server import wall_clock
from rtui.server.analysis.table_import import import_counting
from rtui.server.analysis.worker_process import ended, how_it_ended, started
from rtui.server.files import reason_of, rows_folder
from rtui.server.wire.errors import ExitCode, RtuiError

if TYPE_CHECKING:  # they import Polars
    import polars as pl

    from rtui.analysis.query.query import Problem
    from rtui.registry.registry import Registry
    from rtui.table.kept_rows import PassRows
    from rtui.table.private_folder import PrivateFolder
    from rtui.table.statement import Statement

MOST_ROWS: Final = 100_000
"""Rows of a result, unless another number is asked for."""

MOST_S: Final = 60.0
"""Seconds that a statement may take, unless another number is asked for."""

LEAST_MEMORY_BYTES: Final = 256 << 20
MOST_MEMORY_BYTES: Final = 2 << 30
"""Bounds on the memory that a statement may take: half of what is free."""

START_S: Final = 30.0
"""Seconds in which the process answers its first request: it imports Polars."""

FACTS: Final = {
    "ttl_ms": "ttl", "expires_at": "ttl", "memory_bytes": "memory", "idle_s": "idle", "frequency": "idle",
    "length": "length", "encoding": "encoding",
}  # fmt: skip
"""The fact of an analysis that a column of `keys` needs."""


class StatementFailed(RtuiError):  # noqa: N818 - an error by its base
    """A statement that Polars can't run, or that took too much."""

    exit_code = ExitCode.USAGE
    problem: Problem | None = None
    """Where in the statement it is, if that is known."""


@dataclass(frozen=True, slots=True)
class StatementResult:
    """The rows of a statement, and what there is to say about them."""

    rows: pl.DataFrame
    is_cut: bool
    """Whether there are more rows."""
    notes: tuple[SafeText, ...] = ()
    """Why it may not be about all keys, as sentences."""


def columns_of(statement: Statement) -> Columns | None:
    """Return the facts to ask of every key; with findings those of an analysis too, None for all of its own choice."""
    asked = {FACTS[name]: Asked.ALL for name in statement.columns if name in FACTS}
    if "findings" not in statement.tables:
        return Columns(**{name: asked.get(name, Asked.NONE) for name in dict.fromkeys(FACTS.values())})
    if not asked:
        return None
    chosen = columns_for(None, None)
    return Columns(**{name: asked.get(name, getattr(chosen, name)) for name in dict.fromkeys(FACTS.values())})


def notes_of(
    statement: Statement, report: Report, found: Found | None, *, may_repeat: bool = False
) -> tuple[SafeText, ...]:
    """Return why a result is not about all keys, or not about all of their facts; `found` are the findings asked."""
    coverage, notes = report.head.coverage, []
    if coverage.kind is not CoverageKind.EXACT:
        share = "" if coverage.fraction is None else f", {humanize.share(coverage.fraction)} of the keyspace"
        why = f": {coverage.reason}" if coverage.reason else ""
        notes.append(f"The result is over {humanize.keys(coverage.keys)}{share} only{why}.")
    amounts = [amount for one in (() if found is None else found.findings) for amount in (one.keys, one.memory)]
    if any(one is not None and (one.at_least or isinstance(one.figure, Estimate)) for one in amounts):
        notes.append("Some numbers of findings are estimates or lower bounds.")
    if statement.tables == {"findings"}:
        return tuple(map(SafeText, notes))
    if coverage.unread:
        notes.append(f"Left out: {humanize.keys(coverage.unread)} with a name too long to read.")
    if may_repeat:
        notes.append("Some keys may be there twice, since the server resized its table meanwhile.")
    for name in sorted(statement.columns & FACTS.keys()):
        states = [report.head.columns[one] for one in _COLUMNS_OF[name] if one in report.head.columns]
        if states and all(one.state is not ColumnState.COMPLETE for one in states):
            why = f": {states[0].reason}" if states[0].reason else f" ({states[0].state.value})"
            notes.append(f"{name} is not known of all keys{why}; unknown is null, and sums leave it out.")
    return tuple(map(SafeText, dict.fromkeys(notes)))


_COLUMNS_OF: Final = {
    "ttl_ms": ("ttl",), "expires_at": ("ttl",), "memory_bytes": ("memory",), "idle_s": ("idle",),
    "frequency": ("frequency", "idle"), "length": ("length",), "encoding": ("encoding",),
}  # fmt: skip
"""The columns of a report's head that say whether a column is known."""


def read(text: str) -> Statement:
    """Check a statement; raises StatementFailed with the place in it, and an RtuiError where sqlglot is missing."""
    try:
        from rtui.table.statement import StatementError, read_statement  # noqa: PLC0415 - imports sqlglot
    except ImportError as error:
        raise RtuiError("No SQL", f"sqlglot, which reads SQL, can't be imported: {error}.") from None
    try:
        return read_statement(text)
    except StatementError as error:
        failed = StatementFailed("The statement can't be run", error.problem.sentence)
        failed.problem = error.problem
        raise failed from None


async def answer(
    process: StatementProcess,
    statement: Statement,
    report: Report,
    rows: PassRows | None,
    *,
    registry: Registry | None = None,
    most_rows: int = MOST_ROWS,
    most_s: float = MOST_S,
) -> StatementResult:
    """Run a statement over the rows of a pass and its report; raises StatementFailed, or an RtuiError."""
    found = None
    if "findings" in statement.tables:
        from rtui.analysis.findings.contents import findings, with_registry  # noqa: PLC0415 - few need it

        levels = None if registry is None else registry.rules
        found = with_registry(await asyncio.to_thread(findings, report, levels), report, registry)
    notes = notes_of(statement, report, found, may_repeat=rows is not None and rows.rows.may_repeat)
    files = await process.write(statement, rows, found)
    table, is_cut = await process.run(statement, files, most_rows=most_rows, most_s=most_s)
    if is_cut:
        notes = (*notes, SafeText(f"There are more than {humanize.counted(most_rows, 'row')}: these are the first."))
    return StatementResult(table, is_cut, notes)


def keys_of_names(rows: PassRows, names: pl.Series) -> tuple[bytes, ...]:
    """Return the keys that a column `key` of a result means; of names that are not UTF-8, by the rows."""
    import polars as pl  # noqa: PLC0415 - imported by then

    odd = names.filter(names.str.contains("\\x", literal=True)).unique()
    known: dict[str, bytes] = {}
    for chunk in rows.rows.chunks() if len(odd) else ():
        found = chunk.columns(("name", "raw")).filter(pl.col("raw").is_not_null() & pl.col("name").is_in(odd.implode()))
        known.update(found.iter_rows())
    return tuple(known.get(name, (name or "").encode()) for name in names)


@asynccontextmanager
async def statement_process() -> AsyncIterator[StatementProcess]:
    """Give a process that runs statements, one after the other; it is killed at the end of the block."""
    from rtui.table.private_folder import PrivateFolder  # noqa: PLC0415 - few need it

    await asyncio.to_thread(import_counting)
    try:
        folder = PrivateFolder(rows_folder())
    except OSError as error:
        raise RtuiError("No place for rows", f"{rows_folder()}: {reason_of(error)}.") from error
    one = StatementProcess(folder)
    try:
        yield one
    finally:
        await one.close()
        folder.close()


class StatementProcess:
    """Runs statements; cancelling `check` or `run` ends the process, and the next call starts another one."""

    def __init__(self, folder: PrivateFolder) -> None:
        self._folder = folder
        self._process: asyncio.subprocess.Process | None = None
        self._tables: list[Path] = []
        self._numbers = count(1)

    async def check(self, statement: Statement) -> None:
        """Run a statement on empty tables: what Polars can't do is known before any key is asked.

        Raises StatementFailed.
        """
        await self._ask(statement, {}, None, 0, START_S)

    async def write(
        self, statement: Statement, rows: PassRows | None, found: Found | None
    ) -> Mapping[str, Sequence[str]]:
        """Write the tables of a statement; return their files, and remove those before. Raises an RtuiError."""
        from rtui.table.statement_tables import RowsAsked, write_tables  # noqa: PLC0415 - imports Polars

        chunks, separators = [], Separators((b":",))
        if rows is not None:
            if rows.rows.why_none:
                raise RtuiError("No rows to ask", f"The rows of the keys are not kept, since {rows.rows.why_none}.")
            chunks, separators = list(rows.rows.chunks()), Separators(rows.scope.separators)
        is_wanted = True
        ended_s = None if rows is None else rows.rows.ended_s
        now_ms = int((wall_clock.now_s() if ended_s is None else ended_s) * 1000)
        try:
            for path in self._tables:
                path.unlink(missing_ok=True)
            asked = RowsAsked(chunks, found, separators, now_ms, f"{next(self._numbers)}-")
            files = await asyncio.to_thread(write_tables, statement, asked, self._folder, lambda: is_wanted)
            self._tables = [Path(path) for paths in files.values() for path in paths]
            return files
        except OSError as error:
            raise RtuiError("The rows can't be written", f"{self._folder.path}: {reason_of(error)}.") from error
        finally:
            is_wanted = False

    async def run(
        self,
        statement: Statement,
        files: Mapping[str, Sequence[str]],
        *,
        most_rows: int = MOST_ROWS,
        most_s: float = MOST_S,
    ) -> tuple[pl.DataFrame, bool]:
        """Run a statement; return its first rows, and whether there are more. Raises StatementFailed."""
        import polars as pl  # noqa: PLC0415 - imported by then

        path = self._folder.path / f"result-{next(self._numbers)}.parquet"
        await self._ask(statement, files, path, most_rows, most_s)
        table = await asyncio.to_thread(pl.read_parquet, path, memory_map=False)
        path.unlink()
        return table.head(most_rows), table.height > most_rows

    async def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            await asyncio.shield(ended(process, kills=True))

    async def _ask(
        self, statement: Statement, files: Mapping[str, Sequence[str]], path: Path | None, most_rows: int, most_s: float
    ) -> None:
        from rtui.table.rows import free_memory  # noqa: PLC0415 - imports Polars
        from rtui.table.statement_tables import serve  # noqa: PLC0415

        memory_bytes = max(LEAST_MEMORY_BYTES, min(MOST_MEMORY_BYTES, free_memory() // 2))
        request = {
            "sql": statement.sql, "tables": sorted(statement.tables), "files": files, "limit": most_rows,
            "path": None if path is None else str(path), "memory_bytes": memory_bytes,
        }  # fmt: skip
        if self._process is None:
            self._process = await started(serve, is_quiet=True)
        process, is_answered = self._process, False
        assert process.stdin is not None and process.stdout is not None  # noqa: S101 - it was started with both
        try:
            async with asyncio.timeout(most_s):
                process.stdin.write(json.dumps(request).encode() + b"\n")
                line = await process.stdout.readline()
            is_answered = line.endswith(b"\n")
        except TimeoutError:
            said = f"It was ended after {most_s:g} s."
            raise StatementFailed("The statement takes too long", said, _SMALLER) from None
        finally:
            if not is_answered:
                await self.close()
        if not is_answered:
            raise _died(await process.wait(), memory_bytes)
        answer = json.loads(line)
        if (error := answer.get("error")) is not None:
            raise _failure(answer["kind"], error)


_SMALLER: Final = SafeText("A condition (WHERE), fewer joined rows or more time may help.")


def _died(code: int, memory_bytes: int) -> StatementFailed:
    """Return the error of a process that has ended: Polars aborts where it gets no memory."""
    if code in (-signal.SIGABRT, -signal.SIGKILL):
        said = f"It needs more than {humanize.size(memory_bytes)} of memory."
        return StatementFailed("The statement takes too much memory", said, _SMALLER)
    return StatementFailed("The statement can't be run", f"Its process {how_it_ended(code)}.")


def _failure(kind: str, error: str) -> StatementFailed:
    """Return the error that Polars has answered, its first line."""
    said = display_text(error.strip().partition("\n")[0], limit=240)
    if kind == "PanicException":
        said = SafeText(f"Polars failed: {said}")
    return StatementFailed("The statement can't be run", f"{said[:1].upper()}{said[1:].removesuffix('.')}.")
