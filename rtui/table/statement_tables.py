"""The tables that a statement is run on, as files, and its run, in a process that can be ended.

`write_tables` writes the columns that a statement needs, a chunk of rows a file. `serve` is the work of the process:
it reads requests as lines of JSON and answers each with one. It sees the checked statement and these files, and has a
bound on its memory (Linux only: other systems do not enforce it).
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import numpy as np
import polars as pl

from rtui.analysis.facts import NO_EXPIRY
from rtui.analysis.findings.finding import Found
from rtui.analysis.humanize import OTHER
from rtui.keyspace.text.display import display, quoted
from rtui.keyspace.text.identifiers import NodeKind, as_name
from rtui.keyspace.text.segments import Separators
from rtui.table.patterns import Patterns
from rtui.table.private_folder import PrivateFolder
from rtui.table.rows import KeptChunk
from rtui.table.schema import NEVER
from rtui.table.statement import Statement

_STRINGS: Final = ("key", "key_quoted", "pattern", "type", "encoding", "node")

KEYS: Final = {
    **dict.fromkeys(_STRINGS, pl.String()),
    **dict.fromkeys(("database", "slot", "ttl_ms"), pl.Int64()),
    "expires_at": pl.Datetime("ms"),
    **dict.fromkeys(("memory_bytes", "length", "idle_s", "frequency"), pl.Int64()),
}
FINDINGS: Final = {
    **dict.fromkeys(("severity", "rule", "place", "title"), pl.String()),
    **dict.fromkeys(("keys", "memory_bytes"), pl.Int64()),
    "query": pl.String(),
}

_SOURCES: Final[Mapping[str, tuple[str, ...]]] = {
    "key": ("name",), "key_quoted": ("name", "raw"), "pattern": ("name", "raw", "memory_bytes"),
    "ttl_ms": ("expires_ms",), "expires_at": ("expires_ms",),
}  # fmt: skip
"""The columns of the key table that a column is made of, unless it is the one of its name."""


class PatternsOfRows:
    """The pattern of each row, chunk by chunk, once all chunks have been looked at."""

    def __init__(self, separators: Separators) -> None:
        self._patterns = Patterns(separators)
        self._nodes: list[np.ndarray[Any, np.dtype[np.int32]]] = []

    def look_at(self, chunk: KeptChunk) -> None:
        self._nodes.append(self._patterns.place(chunk.columns(_SOURCES["pattern"])))

    def columns(self) -> list[pl.Series]:
        """Return the column of patterns of each chunk, in their order."""
        patterns, texts = self._patterns, [b""] * len(self._patterns)
        for node in patterns.live():
            if node:
                kind, name = patterns.kinds[node], patterns.segments[node]
                if kind is not NodeKind.PATTERN:
                    name = as_name(name) if kind is NodeKind.LITERAL else OTHER.encode()
                texts[node] = texts[patterns.parents[node]] + name + patterns.separators[node]
        shown = pl.Series("pattern", [display(text) for text in texts], dtype=pl.String)
        own = patterns.own()
        return [shown.gather(own[nodes].astype(np.uint32)) for nodes in self._nodes]


def keys_table(chunk: KeptChunk, columns: Sequence[str], now_ms: int, patterns: pl.Series | None) -> pl.DataFrame:
    """Return columns of `keys` of a chunk; times to live are as of `now_ms`."""
    needed = [one for name in columns if name != "pattern" for one in _SOURCES.get(name, (name,))]
    table = chunk.columns(dict.fromkeys(needed or ["name"]))
    expires, is_never = pl.col("expires_ms").cast(pl.Int64), pl.col("expires_ms") == NEVER
    made: dict[str, pl.Expr | pl.Series] = {
        "key": pl.col("name"),
        "ttl_ms": pl.when(is_never).then(pl.lit(NO_EXPIRY, pl.Int64)).otherwise((expires - now_ms).clip(0)),
        "expires_at": pl.when(is_never).then(None).otherwise(expires).cast(KEYS["expires_at"]),
    }
    if "key_quoted" in columns:
        made["key_quoted"] = pl.struct("name", "raw").map_batches(_quoted, pl.String(), is_elementwise=True)
    if patterns is not None:
        made["pattern"] = patterns
    return table.select(
        one.alias(name) if (one := made.get(name)) is not None else pl.col(name).cast(KEYS[name]) for name in columns
    )


def _quoted(names: pl.Series) -> pl.Series:
    keys = (name.encode() if raw is None else raw for name, raw in names.struct.unnest().iter_rows())
    return pl.Series([quoted(key) for key in keys], dtype=pl.String)


def findings_table(found: Found | None) -> pl.DataFrame:
    """Return the findings, in their order; amounts that are estimated or a bound are their value."""
    rows = [
        {
            "severity": one.severity.value, "rule": one.rule, "place": one.where, "title": one.title,
            "keys": None if one.keys is None else int(one.keys.value),
            "memory_bytes": None if one.memory is None else int(one.memory.value), "query": one.query,
        }
        for one in (() if found is None else found.findings)
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=FINDINGS)


class RowsAsked(NamedTuple):
    """The rows behind the tables."""

    chunks: Sequence[KeptChunk]
    found: Found | None
    separators: Separators
    now_ms: int
    """When times to live are counted from."""
    prefix: str = ""
    """Of the names of the files."""


def write_tables(
    statement: Statement, asked: RowsAsked, folder: PrivateFolder, is_wanted: Callable[[], bool] = lambda: True
) -> dict[str, list[str]]:
    """Write the tables of a statement into new files; return their paths. Raises OSError.

    Once it is not wanted any more, it ends after the chunk at hand.
    """
    files: dict[str, list[str]] = {name: [] for name in statement.tables}
    if "findings" in files:
        files["findings"].append(_written(findings_table(asked.found), folder, f"{asked.prefix}findings"))
    if files.keys() <= {"findings"}:
        return files
    columns = [name for name in KEYS if name in statement.columns] or ["slot"]
    patterns = PatternsOfRows(asked.separators) if "pattern" in columns else None
    of_chunks: Sequence[pl.Series | None] = [None] * len(asked.chunks)
    if patterns is not None:
        for chunk in asked.chunks:
            if is_wanted():
                patterns.look_at(chunk)
        of_chunks = patterns.columns() if is_wanted() else of_chunks
    files["keys"] = []
    for number, (chunk, found_patterns) in enumerate(zip(asked.chunks, of_chunks, strict=True)):
        if is_wanted():
            table = keys_table(chunk, columns, asked.now_ms, found_patterns)
            files["keys"].append(_written(table, folder, f"{asked.prefix}keys-{number:06}"))
    return files


def _written(table: pl.DataFrame, folder: PrivateFolder, name: str) -> str:
    path = folder.path / f"{name}.parquet"
    with folder.create(path.name) as file:
        table.write_parquet(file, compression="lz4", statistics=False)
    return str(path)


# in the process


def context(files: Mapping[str, Sequence[str]], statement_tables: Sequence[str]) -> pl.SQLContext[pl.LazyFrame]:
    """Return what a statement can see: the tables in these files, empty ones where there is no file."""
    keys = _table(files, "keys", KEYS)
    frames = {"keys": keys, "findings": _table(files, "findings", FINDINGS)}
    if "patterns" in statement_tables:
        known = keys.collect_schema().names()
        memory, ttl = (pl.col(name) if name in known else pl.lit(None, pl.Int64) for name in ("memory_bytes", "ttl_ms"))
        frames["patterns"] = keys.group_by("pattern").agg(
            pl.len().cast(pl.Int64).alias("keys"),
            pl.when(memory.count() > 0).then(memory.sum()).alias("memory_bytes"),
            memory.max().alias("max_memory_bytes"),
            pl.when(ttl.count() > 0).then((ttl == NO_EXPIRY).cast(pl.Int64).sum()).alias("without_ttl"),
        )
    return pl.SQLContext(frames={name: frames[name] for name in statement_tables})


def _table(files: Mapping[str, Sequence[str]], name: str, schema: Mapping[str, Any]) -> pl.LazyFrame:
    paths = files.get(name)
    return pl.scan_parquet(list(paths), glob=False) if paths else pl.LazyFrame(schema=dict(schema))


def result_of(sql: str, tables: Sequence[str], files: Mapping[str, Sequence[str]], most_rows: int) -> pl.DataFrame:
    """Run a checked statement; return its first rows, one more than `most_rows` where there are more.

    Raises errors of Polars, also PanicException, which is no Exception.
    """
    found = context(files, tables).execute(sql).head(most_rows + 1).collect(engine="streaming")
    return found.select(_plain(column) for column in found)


def _plain(column: pl.Series) -> pl.Series:
    """Return a column in a type that every format has: text, whole numbers, floats, truth, days, moments."""
    kind = column.dtype
    if kind.is_integer():
        return column.cast(pl.Int64)
    if kind.is_decimal() or kind.is_float():
        return column.cast(pl.Float64)
    if kind in (pl.Boolean, pl.Date):
        return column
    if isinstance(kind, pl.Datetime):
        return column.cast(pl.Datetime("ms"))
    if isinstance(kind, pl.Duration):
        return column.dt.total_milliseconds() / 1000
    return column.cast(pl.String)


def serve(source: BinaryIO, sink: BinaryIO) -> None:
    """Answer requests until there are no more.

    A request has `sql`, `tables`, `files` by table, and `limit`; with `path` the result is written there, without it
    the statement is only checked, on empty tables. The answer has `rows`, or `error`.
    """
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for line in source:
        request = json.loads(line)
        answer: dict[str, Any]
        try:
            limit_memory(request["memory_bytes"])
            table = result_of(request["sql"], request["tables"], request["files"], request["limit"])
            if (path := request["path"]) is not None:
                table.write_parquet(path, compression="lz4")
            answer = {"rows": table.height}
        except BaseException as error:  # noqa: BLE001 - Polars' PanicException is no Exception
            answer = {"error": str(error), "kind": type(error).__name__}
        sink.write(json.dumps(answer).encode() + b"\n")
        sink.flush()


def limit_memory(more_bytes: int) -> None:
    """Bound the memory of this process to `more_bytes` beyond what it has now; beyond that Polars ends it (SIGABRT)."""
    if sys.platform == "linux":
        status = Path("/proc/self/status").read_text()
        now = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmData"))
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (now * 1024 + more_bytes, hard))


def parquet_of(table: pl.DataFrame, about: Mapping[str, Any]) -> bytes:
    """Return a result as a Parquet file, with what it is `about` as JSON in its metadata, as `rtui`."""
    out = BytesIO()
    table.write_parquet(out, metadata={"rtui": json.dumps(about)})
    return out.getvalue()
