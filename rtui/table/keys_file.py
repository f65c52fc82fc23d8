"""Files of keys, a row a key: written while a pass goes on, read whoever has written them, and compared.

A file of Parquet has the columns FIELDS, named as in results of `find` and SQL: `key` for `name`, and `ttl_ms` with
`expires_at` for `expires_ms` of the key table; `asked_ms`, when the facts of a key were asked, is null where only its
name is known. The metadata under METADATA hold the head of the pass (`KeysHead`). CSV and JSON have no metadata, and
`key_quoted` in place of `raw`. In CSV a name is safe to show in a terminal and a spreadsheet.

Nobody trusts a file that is read: columns must have their types, numbers must be within their bounds, and rows are
taken a slice at a time, so that a small file with very many rows in it takes no more memory than any other. Other
columns than these are left alone.

Polars writes in the background, in row groups, and whoever appends rows waits while it is behind: no more than a few
tables are in memory. Two files are joined by database and name, a part of all keys at a time, chosen by the hash of the
name: each part takes bounded memory, and is read anew from both files.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import chain, islice
from pathlib import Path
from queue import Full, Queue
from typing import Any, BinaryIO, Final, TypeVar

import polars as pl
from polars.io.plugins import register_io_source

from rtui.analysis.facts import NO_EXPIRY
from rtui.analysis.formats.comparison import KeyChange, KeyFate, KeyFates
from rtui.analysis.formats.csv_and_json import guarded
from rtui.analysis.formats.json import KeysHead, ReportFormatError, read_keys_head, write_keys_head
from rtui.analysis.report.document import CoverageKind, Head, Report
from rtui.keyspace.slots import SLOTS
from rtui.keyspace.text.display import SafeText, display, display_text, quoted
from rtui.table.schema import LATEST_MS, NEVER, SCHEMA, keys_of, names_of

T = TypeVar("T")

FAILURES: Final = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, OverflowError, MemoryError)
"""Errors of Polars for a file that is damaged, or can't be written; PanicException is no Exception."""

METADATA: Final = "rtui"

COLUMNS: Final = pl.Schema({**SCHEMA, "asked_ms": pl.Int64()})
"""All columns in their order."""

_NAMES: Final = {"name": ["key"], "expires_ms": ["ttl_ms", "expires_at"]}
"""The columns of a file for a column of the key table, unless it is the one of its name."""

FIELDS: Final = pl.Schema(
    {
        one: pl.Datetime("ms") if one == "expires_at" else kind
        for name, kind in COLUMNS.items()
        for one in _NAMES.get(name, [name])
    }
)
"""All columns of a file in their order."""

SLICE: Final = 1 << 17
"""Rows that are read at once."""

NAME_BYTES: Final = 64 << 20
"""Bytes of names that are handed on at once, or a single longer name."""

LONGEST_NAME: Final = 512 << 20
"""Bytes of the longest name that a server takes by default."""

MOST_FILES: Final = 10_000
"""Files of a folder that are read."""

MOST_WORDS: Final = 20_000
"""Different types, encodings or nodes of a file."""

MOST_METADATA: Final = 16 << 20
"""Characters of the metadata that are read."""

MOST_BYTES: Final = 1 << 45
"""Bytes of a key, its length, and its seconds without access: more makes no sense, and would not fit into sums."""

_TEXT: Final = (pl.String, pl.Categorical, pl.Enum)
_KINDS: Final[dict[Any, tuple[Any, ...]]] = {
    pl.Categorical: _TEXT,
    **{kind: (kind,) for kind in (pl.String, pl.Binary, pl.Boolean, pl.Datetime)},
}

_BOUNDS: Final = {
    "expires_ms": (NEVER, LATEST_MS),
    "memory_bytes": (0, MOST_BYTES),
    "length": (0, MOST_BYTES),
    "idle_s": (0, MOST_BYTES),
    "frequency": (0, 255),
    "database": (0, (1 << 31) - 1),
    "slot": (0, SLOTS - 1),
    "asked_ms": (0, LATEST_MS),
}


class KeysFileError(ValueError):
    """A file that can't be read as keys; the message is safe, a sentence without its full stop."""


@dataclass(frozen=True, slots=True)
class _Part:
    path: Path
    height: int
    fields: frozenset[str]

    @property
    def columns(self) -> Iterator[str]:
        """The columns of the key table that the file has."""
        return (name for name in COLUMNS if not self.fields.isdisjoint(_NAMES.get(name, [name])))

    def rows(self) -> pl.LazyFrame:
        """Return the rows with all columns of the key table; what the file lacks is null."""
        casts = (
            pl.lit(None, kind).alias(name)
            if name not in self.fields
            else pl.col(name).dt.cast_time_unit("ms")
            if name == "expires_at"
            else pl.col(name).cast(kind)
            for name, kind in FIELDS.items()
        )
        rows = pl.scan_parquet(self.path, glob=False, hive_partitioning=False, use_statistics=False).select(casts)
        ttl, asked = pl.col("ttl_ms"), pl.col("asked_ms")
        expires = pl.coalesce(
            pl.when(ttl == NO_EXPIRY).then(pl.lit(NEVER, pl.Int64)),
            pl.col("expires_at").cast(pl.Int64),
            pl.when((ttl >= 0) & (ttl <= LATEST_MS - asked)).then(asked + ttl),
        )
        made = {"name": pl.col("key"), "expires_ms": expires}
        return rows.select(made.get(name, pl.col(name)).alias(name) for name in COLUMNS)


@dataclass(slots=True)
class KeysFile:
    """A file of keys, or a folder of them that one pass has written."""

    path: Path
    parts: tuple[_Part, ...]
    head: KeysHead | None
    """What the pass says of the keys; None if the file does not hold it, as of another program."""
    heads: tuple[KeysHead | None, ...] = ()
    """Those of all parts, where they are not all of one pass."""
    _is_proven: bool = False
    """Whether all rows were read once."""

    @classmethod
    def open(cls, path: Path) -> KeysFile:
        """Read the columns, the number of rows and the head; raises KeysFileError."""
        try:
            patterns = ("*.parquet", "node=*/*.parquet") if path.is_dir() else ()
            paths = [*islice(chain.from_iterable(map(path.glob, patterns)), MOST_FILES + 1)]
            paths = sorted(paths) if patterns else [path]
            if not paths:
                raise KeysFileError(SafeText("It has no .parquet file in it"))
            if len(paths) > MOST_FILES:
                raise KeysFileError(SafeText(f"It has more than {MOST_FILES:,} files in it"))
            for one in paths:
                _check_frame(one)
            found = [_asked(partial(_part, one)) for one in paths]
        except OSError as error:
            raise KeysFileError(display_text(error.strerror or type(error).__name__)) from None
        parts, heads = zip(*found, strict=True)
        return cls(path, parts, heads[0], () if all(one == heads[0] for one in heads) else heads)

    @property
    def began_at_s(self) -> float:
        """When the first of its passes began, in seconds since the epoch; when it was written, if it does not say."""
        heads = [one for one in self.heads or (self.head,) if one is not None]
        written = (part.path.stat().st_mtime for part in self.parts)
        return min((one.began_at_s for one in heads), default=None) or max(written)

    def of_passes(self) -> list[KeysFile]:
        """Return the files of a folder that several passes have written, one a node; else this one."""
        if not self.heads:
            return [self]
        return [KeysFile(part.path, (part,), head) for part, head in zip(self.parts, self.heads, strict=True)]

    @property
    def height(self) -> int:
        return sum(part.height for part in self.parts)

    @property
    def columns(self) -> frozenset[str]:
        """The columns that a part has."""
        return frozenset().union(*(part.columns for part in self.parts))

    def lazy(self) -> pl.LazyFrame:
        """Return all rows with all columns, unchecked: Polars may raise FAILURES where they are collected."""
        return pl.concat([part.rows() for part in self.parts])

    def tables(self) -> Iterator[pl.DataFrame]:
        """Yield the rows in order, checked; raises KeysFileError."""
        words: dict[str, set[str | None]] = {name: set() for name in ("type", "encoding", "node")}
        total = 0
        for part in self.parts:
            rows = part.rows()
            for first in range(0, part.height, SLICE):
                wanted = min(SLICE, part.height - first)
                table = _asked(rows.slice(first, SLICE).collect, is_quiet=not self._is_proven)
                if table.height != wanted:
                    raise KeysFileError(SafeText(f"It says that it has {part.height:,} rows, and has fewer"))
                table = _checked(table)
                for name, seen in words.items():
                    seen.update(table[name].unique().to_list())
                    if len(seen) > MOST_WORDS:
                        raise KeysFileError(SafeText(f"Its column {name} has more than {MOST_WORDS:,} values"))
                total += int(table["memory_bytes"].sum()) + int(table["length"].sum())
                if total > LATEST_MS // 2:
                    raise KeysFileError(SafeText("Its sizes add up to more than any server has"))
                yield from map(_by_bytes, _in_portions(table))
        self._is_proven = True


def _asked(work: Callable[[], T], *, is_quiet: bool = True) -> T:
    """Let Polars read; raises KeysFileError."""
    try:
        if not is_quiet:
            return work()
        with _quiet():
            return work()
    except FAILURES as error:
        happened = display_text(" ".join(str(error).split()), limit=160).rstrip(". ")
        raise KeysFileError(SafeText(f"It is damaged, or no Parquet: {happened or type(error).__name__}")) from None


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep off standard error what Polars writes there itself when it panics."""
    kept, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nothing)


def _check_frame(path: Path) -> None:
    """Raise KeysFileError unless a file begins and ends as Parquet does: Polars would say less clearly why not."""
    with path.open("rb") as file:
        begins = file.read(4)
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 8))
        ends = file.read(8)
    if begins in (b"PARE",) or ends[-4:] == b"PARE":
        raise KeysFileError(SafeText("It is encrypted"))
    if begins != b"PAR1":
        raise KeysFileError(SafeText("It is no Parquet file"))
    if size < 12 or ends[-4:] != b"PAR1":
        raise KeysFileError(SafeText("Its end is missing"))
    if int.from_bytes(ends[:4], "little") > size - 12:
        raise KeysFileError(SafeText("It is damaged: its footer is longer than the file"))


def _part(path: Path) -> tuple[_Part, KeysHead | None]:
    schema = pl.read_parquet_schema(path)
    if "key" not in schema:
        raise KeysFileError(SafeText("It has no column key: it is no file of keys"))
    columns = set()
    for name, kind in FIELDS.items():
        given = schema.get(name, pl.Null())
        if isinstance(given, pl.Null):
            continue
        is_right = given.is_integer() if kind == pl.Int64 else isinstance(given, _KINDS[kind.base_type()])
        if not is_right:
            raise KeysFileError(display_text(f"Its column {name} is {given}, and should be {kind}", limit=200))
        columns.add(name)
    height = pl.scan_parquet(path, glob=False, hive_partitioning=False).select(pl.len()).collect().item()
    text = pl.read_parquet_metadata(path).get(METADATA)
    if text is None:
        return _Part(path, height, frozenset(columns)), None
    if len(text) > MOST_METADATA:
        raise KeysFileError(SafeText("Its metadata are larger than any that rtui writes"))
    try:
        return _Part(path, height, frozenset(columns)), read_keys_head(text)
    except ReportFormatError as error:
        raise KeysFileError(SafeText(f"Its metadata are damaged: {error}")) from None


def _checked(table: pl.DataFrame) -> pl.DataFrame:
    """Return rows whose values are within their bounds; raises KeysFileError."""
    if table["name"].null_count():
        raise KeysFileError(SafeText("A key in it has no name"))
    for name, (low, high) in _BOUNDS.items():
        column = table[name]
        least, most = column.min(), column.max()
        if isinstance(least, int) and isinstance(most, int) and not low <= least <= most <= high:
            wrong = least if least < low else most
            raise KeysFileError(SafeText(f"Its column {name} has {wrong:,}, which is not from {low:,} to {high:,}"))
    if (table["name"].str.len_bytes() > LONGEST_NAME).any() or (table["raw"].bin.size() > LONGEST_NAME).any():
        raise KeysFileError(SafeText("A name in it is longer than 512 MiB"))
    return table


def _by_bytes(table: pl.DataFrame) -> pl.DataFrame:
    """Return rows in which `raw`, where it is given, says the name."""
    if table["raw"].null_count() == table.height:
        return table
    is_odd = table["raw"].is_not_null()
    at = is_odd.arg_true()
    names, raw = names_of(table["raw"].filter(is_odd).to_list())
    odd = pl.DataFrame({"at": at, "raw": raw}, schema={"at": pl.UInt32(), "raw": pl.Binary()})
    table = table.with_columns(table["name"].scatter(at, names), pl.int_range(pl.len(), dtype=pl.UInt32()).alias("at"))
    return table.drop("raw").join(odd, on="at", how="left", maintain_order="left").select(COLUMNS.names())


def _in_portions(table: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield the rows in portions whose names fit into memory."""
    sizes = table.select(pl.col("name").str.len_bytes().cast(pl.Int64), pl.col("raw").bin.size().cast(pl.Int64))
    total = sum(sizes.sum().row(0))
    if total <= NAME_BYTES or table.height == 1:
        yield table
        return
    middle = table.height // 2
    for half in (table[:middle], table[middle:]):
        yield from _in_portions(half)


ROW_GROUP: Final = 122_880
"""Rows of a row group: as many as DuckDB takes for one."""

TEXT_ROWS: Final = 8_192
"""Rows that become text at once."""

LOOK_S: Final = 0.1

_ODD: Final = r"^[=+\-@\t\r＝＋－＠]|[\p{C}\p{Zl}\p{Zp}]"
"""Names that CSV does not have as they are."""

_PLAIN: Final = r"^[ !#-\[\]-~]*$"
"""Names that stand in quotes as they are."""

_LAST_MOMENT: Final = datetime(9999, 12, 31, 23, 59, 59, 999_000)


class KeysWriter:
    """Writes one file, or one folder."""

    def __init__(
        self, place: BinaryIO | Path, form: str, began_at_s: float, failed: Callable[[], object] = lambda: None
    ) -> None:
        """Write over an open file, or into a folder that is there; `failed` is called in another thread.

        The pass began at `began_at_s`, in seconds since the epoch.
        """
        self.height = 0
        self._began_at_s = began_at_s
        self._told: Report | Head | None = None
        self._failure: BaseException | None = None
        self._place, self._form, self._failed = place, form, failed
        self._tables: Queue[pl.DataFrame | None] = Queue(maxsize=1)
        self._is_given_up = False
        self._query: pl.lazyframe.in_process.InProcessQuery | None = None
        """The work that writes; None before it has begun, and once it is over."""

    def append(self, table: pl.DataFrame) -> None:
        """Write rows of the key table with a column `asked_ms`."""
        if table.height and self._failure is None:
            if not self.height:
                self._begin()
            self.height += table.height
            self._put(table.select(COLUMNS.names()))

    def end(self, told: Report | Head) -> None:
        """Write the end, and wait for it; raises OSError. `told` is what the pass says of the keys."""
        self._told = told
        if not self.height:
            self._begin()
        self._put(None)
        self._wait()
        if self._failure is not None:
            raise OSError(0, display_text(" ".join(str(self._failure).split()), limit=200)) from self._failure

    def close(self) -> None:
        """Leave off: the file is not whole."""
        self._is_given_up = True
        self._put(None)
        self._wait()

    def _put(self, table: pl.DataFrame | None) -> None:
        while self._is_writing():
            with suppress(Full):
                self._tables.put(table, timeout=LOOK_S)
                return

    def _wait(self) -> None:
        while self._is_writing():
            time.sleep(LOOK_S / 10)

    def _is_writing(self) -> bool:
        """Return whether it goes on; keeps the failure with which it has ended."""
        try:
            if self._query is not None and self._query.fetch() is not None:
                self._query = None
        except FAILURES as error:
            self._failure, self._query = error, None
            if not self._is_given_up:
                self._failed()
        return self._query is not None

    def _rows(
        self, columns: list[str] | None, predicate: pl.Expr | None, most: int | None, size: int | None
    ) -> Iterator[pl.DataFrame]:
        while (table := self._tables.get()) is not None:
            table = _with_fields(table)
            yield from [table] if self._form == "parquet" else table.iter_slices(TEXT_ROWS)
        if self._is_given_up:
            raise OSError(0, "It was given up")

    def _metadata(self, _: object) -> dict[str, str]:
        told = self._told
        if told is None:
            return {}
        said = (told.head, told.hot, told.keysizes, told.cluster) if isinstance(told, Report) else (told,)
        return {METADATA: write_keys_head(KeysHead("rtui keys", 1, self.height, self._began_at_s, *said))}

    def _begin(self) -> None:
        """Begin to write: in the background, since Polars would take every Ctrl-C for itself where it is waited for."""
        self._clear()
        rows = register_io_source(self._rows, schema=FIELDS)
        place = self._place
        if self._form == "parquet":
            to = pl.PartitionBy(place, key="node", include_key=True) if isinstance(place, Path) else place
            how: dict[str, Any] = {"row_group_size": ROW_GROUP, "metadata": self._metadata, "mkdir": True}
            sink = rows.sink_parquet(to, **how, lazy=True)
        else:
            made = partial(_for_text, is_csv=self._form == "csv")
            text = rows.map_batches(made, schema=_TEXTS, streamable=True)
            sink = text.sink_csv(place, lazy=True) if self._form == "csv" else text.sink_ndjson(place, lazy=True)
        self._query = sink.collect(background=True, engine="streaming")

    def _clear(self) -> None:
        """Remove what an earlier writer has left behind that did not come to its end."""
        if isinstance(self._place, Path):
            for one in self._place.iterdir():
                shutil.rmtree(one, ignore_errors=True)
        elif self._place.seekable():
            self._place.seek(0)
            self._place.truncate()


def _with_fields(table: pl.DataFrame) -> pl.DataFrame:
    """Return rows of the key table with the columns of a file."""
    expires, is_never = pl.col("expires_ms"), pl.col("expires_ms") == NEVER
    ttl = pl.when(is_never).then(pl.lit(NO_EXPIRY, pl.Int64)).otherwise((expires - pl.col("asked_ms")).clip(0))
    moment = pl.when(~is_never).then(expires).cast(FIELDS["expires_at"])
    made = pl.col("name").alias("key"), ttl.alias("ttl_ms"), moment.alias("expires_at")
    return table.with_columns(made).select(FIELDS.names())


_TEXTS: Final = pl.Schema(
    {
        "key_quoted" if name == "raw" else name: pl.String() if name in ("raw", "expires_at") else kind
        for name, kind in FIELDS.items()
    }
)


def _for_text(table: pl.DataFrame, *, is_csv: bool) -> pl.DataFrame:
    """Return rows as CSV or lines of JSON have them; moments after the year 9999 become its end."""
    keys, plain = table["key"], table["key"].str.contains(_PLAIN)
    names = pl.col("key").alias("name"), "raw"
    others = keys_of(table.filter(~plain).select(names))
    in_quotes = ('"' + keys + '"').scatter((~plain).arg_true(), [quoted(key) for key in others])
    expires = table["expires_at"].clip(upper_bound=_LAST_MOMENT).dt.strftime("%Y-%m-%dT%H:%M:%S%.3fZ")
    if not is_csv:
        keys = keys.zip_with(table["raw"].is_null(), pl.Series([None], dtype=pl.String))
    elif (odd := keys.str.contains(_ODD)).any():
        keys = keys.scatter(odd.arg_true(), [guarded(display(key)) for key in keys_of(table.filter(odd).select(names))])
    return table.with_columns(keys.alias("key"), in_quotes.alias("key_quoted"), expires).select(_TEXTS.names())


PART_ROWS: Final = 1_000_000
"""Rows of the larger file that are joined at once, about."""

_BY: Final = ("database", "key")
_FACTS: Final = ("memory_bytes", "expires_ms")
_BEFORE, _AFTER = pl.col("is_before"), pl.col("is_after")
_GROWTH: Final = pl.col("memory_bytes_after") - pl.col("memory_bytes")

_FATES: Final = {
    KeyFate.CAME: (_BEFORE.is_null(), pl.col("memory_bytes_after")),
    KeyFate.WENT: (_AFTER.is_null(), pl.col("memory_bytes")),
    KeyFate.GREW: (_GROWTH > 0, _GROWTH),
    KeyFate.LASTING: (
        (pl.col("expires_ms") != NEVER) & (pl.col("expires_ms_after") == NEVER),
        pl.col("memory_bytes_after"),
    ),
}
"""Which keys of a join have a fate, and by what they are listed, most first."""


def compare_keys(before: KeysFile, after: KeysFile, top: int) -> KeyFates:
    """Return how many keys came, went, grew and lost their TTL, and the `top` first of each; raises KeysFileError.

    A key that is not in a file can only have come or gone where the file has all keys.
    """
    parts = max(1, -(-max(before.height, after.height) // PART_ROWS))
    counts, bytes_of = dict.fromkeys(KeyFate, 0), dict.fromkeys(KeyFate, 0)
    listed = {fate: pl.DataFrame(schema=_LISTED) for fate in KeyFate}
    for part in range(parts):
        old = _keys_of_part(before, part, parts).with_columns(is_before=True)
        new = _keys_of_part(after, part, parts).with_columns(is_after=True)
        joined = old.join(new, on=_BY, how="full", coalesce=True, nulls_equal=True, suffix="_after")
        for fate, (passes, weight) in _FATES.items():
            found = joined.filter(passes).with_columns(weight.alias("weight"))
            counts[fate] += found.height
            bytes_of[fate] += int(found["weight"].sum())
            some = pl.concat([listed[fate], found.select(_LISTED.names())])
            listed[fate] = some.sort("weight", "key", descending=[True, False], nulls_last=True).head(top)
    doubts = {
        fate: "" if _is_whole(file) else f"the {word} file does not have all keys"
        for fate, file, word in ((KeyFate.CAME, before, "earlier"), (KeyFate.WENT, after, "later"))
    }
    rows = {fate: table.drop("weight").iter_rows() for fate, table in listed.items()}
    changes = {fate: tuple(KeyChange(*row) for row in some) for fate, some in rows.items()}
    return KeyFates(counts, bytes_of, changes, {fate: why for fate, why in doubts.items() if why})


_LISTED: Final = pl.Schema(
    {
        "database": pl.Int64(),
        "key": pl.Binary(),
        "memory_bytes": pl.Int64(),
        "memory_bytes_after": pl.Int64(),
        "weight": pl.Int64(),
    }
)


def _is_whole(file: KeysFile) -> bool:
    head = file.head
    return head is not None and head.head.coverage.kind is CoverageKind.EXACT and head.rows == file.height


def _keys_of_part(file: KeysFile, part: int, parts: int) -> pl.DataFrame:
    """Return the rows of a file whose names are in a part; of a key that is there twice, the later one."""
    key = pl.coalesce("raw", pl.col("name").cast(pl.Binary)).alias("key")

    def chosen() -> Iterator[pl.DataFrame]:
        for table in file.tables():
            rows = table.select("database", key, *_FACTS)
            yield rows.filter(pl.col("key").hash(seed=7) % parts == part) if parts > 1 else rows

    schema = {"database": pl.Int64(), "key": pl.Binary(), **dict.fromkeys(_FACTS, pl.Int64())}
    return pl.concat([pl.DataFrame(schema=schema), *chosen()]).unique(_BY, keep="last")
