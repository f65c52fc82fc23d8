"""A file of keys in Parquet, a row a key: written while a pass goes on, and read whoever has written it.

It has the columns of the key table, and `asked_ms`, when the facts of a key were asked, in milliseconds since the
epoch: null where only its name is known. The metadata under METADATA hold the head of the pass (`KeysHead`).

Nobody trusts a file that is read: columns must have their types, numbers must be within their bounds, and rows are
taken a slice at a time, so that a small file with very many rows in it takes no more memory than any other. Other
columns than these are left alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Final, TypeVar

import polars as pl

from rtui.analysis.formats.json import KeysHead, ReportFormatError, read_keys_head
from rtui.keyspace.slots import SLOTS
from rtui.keyspace.text.display import SafeText, display_text
from rtui.table.schema import LATEST_MS, NEVER, SCHEMA, names_of

T = TypeVar("T")

FAILURES: Final = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, OverflowError, MemoryError)
"""Errors of Polars for a file that is damaged, or can't be written; PanicException is no Exception."""

METADATA: Final = "rtui"

COLUMNS: Final = pl.Schema({**SCHEMA, "asked_ms": pl.Int64()})
"""All columns in their order."""

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
_KINDS: Final = {pl.String: (pl.String,), pl.Categorical: _TEXT, pl.Binary: (pl.Binary,), pl.Boolean: (pl.Boolean,)}

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
    columns: frozenset[str]

    def rows(self) -> pl.LazyFrame:
        """Return the rows with all columns; what the file lacks is null."""
        casts = (
            pl.col(name).cast(kind) if name in self.columns else pl.lit(None, kind).alias(name)
            for name, kind in COLUMNS.items()
        )
        return pl.scan_parquet(self.path, glob=False, hive_partitioning=False, use_statistics=False).select(casts)


@dataclass(slots=True)
class KeysFile:
    """A file of keys, or a folder of them that one pass has written."""

    path: Path
    parts: tuple[_Part, ...]
    head: KeysHead | None
    """What the pass says of the keys; None if the file does not hold it, as of another program."""
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
        return cls(path, tuple(part for part, _ in found), found[0][1])

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
    if "name" not in schema:
        raise KeysFileError(SafeText("It has no column name: it is no file of keys"))
    columns = set()
    for name, kind in COLUMNS.items():
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
    """Yield the rows, of which so many come at once that their names fit into memory."""
    sizes = table.select(pl.col("name").str.len_bytes().cast(pl.Int64), pl.col("raw").bin.size().cast(pl.Int64))
    total = sum(sizes.sum().row(0))
    if total <= NAME_BYTES or table.height == 1:
        yield table
        return
    middle = table.height // 2
    for half in (table[:middle], table[middle:]):
        yield from _in_portions(half)
