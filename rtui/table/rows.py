"""The rows of a pass, kept to be asked later: in memory within a budget, beyond it in private files or not at all.

Tables come as a pass finds them. Some hundred thousand rows at a time are packed into a chunk: columns that say the
same of every row are left out, numbers take as few bytes as the largest needs, and names are copied out of the buffers
of the pages that they came in, which would stay whole.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import polars as pl

from rtui.table.private_folder import PrivateFolder
from rtui.table.schema import SCHEMA

CHUNK_ROWS: Final = 1 << 18
"""Rows of a chunk; a question looks at one chunk after the other."""

ROW_BYTES: Final = 60
"""Most bytes of a row in memory, without its name."""

LEAST_FREE_BYTES: Final = 1 << 30

_SMALL: Final = {
    column: pl.Categorical(pl.Categories(f"kept {column}", "rtui", pl.UInt8())) for column in ("type", "encoding")
}
"""Categories whose codes fit into a byte, as long as there are no more than 255."""

_INTEGERS: Final = ((pl.Int8(), 1 << 7), (pl.Int16(), 1 << 15), (pl.Int32(), 1 << 31))


@dataclass(frozen=True, slots=True)
class KeptChunk:
    """Rows that lie together, with a few columns at a time."""

    height: int
    same: dict[str, Any]
    """Constant columns, left out of the rows, with their value."""
    read: Callable[[Sequence[str]], pl.DataFrame]
    """Returns some of the other columns."""

    def columns(self, names: Iterable[str]) -> pl.DataFrame:
        """Return columns of the key table, in which numbers may be narrower and categories others than there."""
        names = tuple(names)
        found = self.read([name for name in names if name not in self.same] or ["name"])
        left_out = (pl.lit(self.same[name], SCHEMA[name]).alias(name) for name in names if name in self.same)
        return found.with_columns(*left_out).select(names)

    def after(self, skipped: int) -> KeptChunk:
        """Return these rows without the first ones."""
        read = self.read
        return KeptChunk(self.height - skipped, self.same, lambda names: read(names)[skipped:]) if skipped else self


class KeptRows:
    """Rows of a pass, appended by one thread; another may call `chunks` meanwhile, and its result stays valid."""

    def __init__(self, budget_bytes: int, most_rows: int, *, folder: Path | None = None) -> None:
        """Keep up to `most_rows` in `budget_bytes` of memory; those beyond in files in a folder, else none at all."""
        self.ended_s: float | None = None
        """When the pass ended, in seconds since the epoch; None while it goes on."""
        self.height = 0
        self.may_repeat = False
        """Whether some keys may be repeated, since the server resized its table meanwhile."""
        self.why_none = ""
        """Why the rows are no longer kept, without a full stop; empty if they are."""
        self.known: set[str] = set()
        self._budget_bytes, self._most_rows, self._folder = budget_bytes, most_rows, folder
        self._parts: tuple[list[KeptChunk], list[pl.DataFrame]] = [], []
        """Packed chunks, and rows not yet packed; both are replaced at once, so that no row is in both."""
        self._open_rows = self._bytes = 0
        self._is_spilling = self._is_all = False
        self._files: PrivateFolder | None = None

    @property
    def is_whole(self) -> bool:
        """Whether these are the rows of all keys that were there from the beginning of the pass to its end."""
        return self._is_all and not self.why_none

    @property
    def may_use_files(self) -> bool:
        return self._folder is not None

    @property
    def is_spilled(self) -> bool:
        return self._files is not None

    def append(self, table: pl.DataFrame) -> None:
        """Keep the rows of a table with the columns of the schema, and maybe others."""
        if not table.height or self.why_none:
            return
        self.known |= {name for name in SCHEMA if table[name].null_count() < table.height}
        table = table.select(name for name in SCHEMA if name in self.known)
        more = int(table["name"].str.len_bytes().cast(pl.Int64).sum()) + ROW_BYTES * table.height
        is_over = self._bytes + more > self._budget_bytes or self.height + table.height > self._most_rows
        if is_over and not self._is_spilling:
            if self._folder is None:
                is_many = self.height + table.height > self._most_rows
                many = f"there are more than {self._most_rows:,} of them"
                self.close(many if is_many else "they would take more memory than rtui may use for them")
                return
            self._pack()
            self._is_spilling = True
        self._bytes += more
        self.height += table.height
        self._parts[1].append(table)
        self._open_rows += table.height
        if self._open_rows >= CHUNK_ROWS:
            self._pack()

    def finish(self, ended_s: float, *, is_all: bool, may_repeat: bool = False) -> None:
        """End the pass, which has found all keys or not, and some of them twice maybe."""
        self._pack()
        self.ended_s, self._is_all, self.may_repeat = ended_s, is_all, may_repeat

    def close(self, why: str = "they were dropped") -> None:
        """Drop all rows, including later ones, and remove their files."""
        self.why_none = why
        self._parts, self._open_rows, self.height = ([], []), 0, 0
        if self._files is not None:
            self._files.close()

    def chunks(self, seen: int = 0) -> Iterator[KeptChunk]:
        """Yield all rows kept by now, except for the first `seen`, in the order in which they came."""
        packed, opened = self._parts
        tables = [*opened]
        for chunk in (*packed, *([_in_memory(_joined(tables), {})] if tables else [])):
            if seen < chunk.height:
                yield chunk.after(seen)
            seen = max(0, seen - chunk.height)

    def _pack(self) -> None:
        packed, opened = self._parts
        if not opened:
            return
        table = _joined(opened)
        try:
            chunk = self._spilled(table, len(packed)) if self._is_spilling else _packed(table)
        except OSError as error:
            self.close(f"they can't be written: {error.strerror or type(error).__name__}")
            return
        if not self.why_none:
            self._parts, self._open_rows = ([*packed, chunk], []), 0

    def _spilled(self, table: pl.DataFrame, number: int) -> KeptChunk:
        """Write rows into a file; raises OSError."""
        assert self._folder is not None  # noqa: S101 - spilling
        if self._files is None:
            self._files = PrivateFolder(self._folder)
        if shutil.disk_usage(self._files.path).free < LEAST_FREE_BYTES + table.estimated_size():
            raise OSError(0, "the disk is nearly full")
        same = _same(table)
        path = self._files.path / f"{number:06}.parquet"
        with self._files.create(path.name) as file:
            table.drop(*same).write_parquet(file, compression="lz4", statistics=False)
        return KeptChunk(table.height, same, lambda columns: pl.read_parquet(path, columns=list(columns)))


def _joined(tables: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Return the rows of tables, of which each lacks the columns that were not known by then."""
    table = pl.concat(tables, how="diagonal")
    missing = (pl.lit(None, SCHEMA[name]).alias(name) for name in SCHEMA if name not in table.columns)
    return table.with_columns(*missing).select(*SCHEMA)


def free_memory() -> int:
    """Return the bytes of memory that are free, or that control groups still allow, whichever is less."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        free = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    return max(0, min(free, *_left_in_groups(Path("/proc/self/cgroup"), Path("/sys/fs/cgroup"))))


def _left_in_groups(of_process: Path, root: Path) -> list[int]:
    """Return the bytes of memory left in each control group above this process; at least one number."""
    left = [1 << 62]
    try:
        lines = of_process.read_text().splitlines()
    except OSError:
        return left
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        files = ("memory.max", "memory.current") if not controllers else _VERSION_1
        top = root / controllers
        inner = top / group.lstrip("/")
        for folder in (inner, *(one for one in inner.parents if one.is_relative_to(top))):
            try:
                most, used = ((folder / name).read_text().strip() for name in files)
            except OSError:
                continue
            if most.isdigit() and used.isdigit():
                left.append(int(most) - int(used))
    return left


_VERSION_1: Final = ("memory.limit_in_bytes", "memory.usage_in_bytes")


def _in_memory(table: pl.DataFrame, same: dict[str, Any]) -> KeptChunk:
    return KeptChunk(table.height, same, table.select)


def _same(table: pl.DataFrame) -> dict[str, Any]:
    """Return the columns that hold the same in every row, with that; names left out."""
    found: dict[str, Any] = {}
    for column in table.drop("name"):
        if column.null_count() == table.height:
            found[column.name] = None
        elif column.dtype == pl.Binary or column.null_count():
            continue
        elif (codes := column.to_physical()).min() == codes.max():
            found[column.name] = column[0]
    return found


def _packed(table: pl.DataFrame) -> KeptChunk:
    same = _same(table)
    columns = [_narrow(column) for column in table.drop(*same)]
    return _in_memory(pl.DataFrame(columns).rechunk(), same)


def _narrow(column: pl.Series) -> pl.Series:
    if column.dtype == pl.String:
        return column + ""  # a copy in buffers of its own
    if column.dtype == pl.Int64:
        low, high = column.min(), column.max()
        for narrower, end in _INTEGERS:
            if isinstance(low, int) and isinstance(high, int) and -end <= low and high < end:
                return column.cast(narrower)
    if column.name in _SMALL:
        try:
            return column.cast(_SMALL[column.name])
        except pl.exceptions.ComputeError:
            pass
    return column
