"""Writes keys into files while a pass goes on: Parquet, a folder of it with a part a node, CSV, or lines of JSON.

Polars writes in the background, in row groups, and whoever appends rows waits while it is behind: no more than a few
tables are in memory. CSV and JSON have no metadata, and `raw` as hexadecimal digits. In CSV a name is safe to show in a
terminal and a spreadsheet, and where that changes it, `raw` has its bytes, too.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from queue import Full, Queue
from typing import Any, BinaryIO, Final

import polars as pl
from polars.io.plugins import register_io_source

from rtui.analysis.formats.csv_and_json import guarded
from rtui.analysis.formats.json import KeysHead, write_keys_head
from rtui.analysis.report.document import Report
from rtui.keyspace.text.display import display, display_text
from rtui.table.keys_file import COLUMNS, FAILURES, METADATA

ROW_GROUP: Final = 122_880
"""Rows of a row group: as many as DuckDB takes for one."""

TEXT_ROWS: Final = 8_192
"""Rows that become text at once."""

LOOK_S: Final = 0.1

KEYS_FORMATS: Final = ("parquet", "csv", "jsonl")

_ODD: Final = r"^[=+\-@\t\r＝＋－＠]|[\p{C}\p{Zl}\p{Zp}]"
"""Names that CSV does not have as they are."""


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
        self._report: Report | None = None
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

    def end(self, report: Report) -> None:
        """Write the end, and wait for it; raises OSError."""
        self._report = report
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
            yield from [table] if self._form == "parquet" else table.iter_slices(TEXT_ROWS)
        if self._is_given_up:
            raise OSError(0, "It was given up")

    def _metadata(self, _: object) -> dict[str, str]:
        report = self._report
        if report is None:
            return {}
        rest = report.hot, report.keysizes, report.cluster
        return {METADATA: write_keys_head(KeysHead("rtui keys", 1, self.height, self._began_at_s, report.head, *rest))}

    def _begin(self) -> None:
        """Begin to write: in the background, since Polars would take every Ctrl-C for itself where it is waited for."""
        self._clear()
        rows = register_io_source(self._rows, schema=COLUMNS)
        place = self._place
        if self._form == "csv":
            sink = rows.map_batches(_for_csv, schema=_TEXTS, streamable=True).sink_csv(place, lazy=True)
        elif self._form == "jsonl":
            sink = rows.with_columns(pl.col("raw").bin.encode("hex")).sink_ndjson(place, lazy=True)
        else:
            to = pl.PartitionBy(place, key="node", include_key=True) if isinstance(place, Path) else place
            how: dict[str, Any] = {"row_group_size": ROW_GROUP, "metadata": self._metadata, "mkdir": True}
            sink = rows.sink_parquet(to, **how, lazy=True)
        self._query = sink.collect(background=True, engine="streaming")

    def _clear(self) -> None:
        """Remove what an earlier writer has left behind that did not come to its end."""
        if isinstance(self._place, Path):
            for one in self._place.iterdir():
                shutil.rmtree(one, ignore_errors=True)
        elif self._place.seekable():
            self._place.seek(0)
            self._place.truncate()


_TEXTS: Final = pl.Schema({**COLUMNS, "raw": pl.String()})


def _for_csv(table: pl.DataFrame) -> pl.DataFrame:
    """Return rows with safe names, and the bytes of names in hexadecimal digits where these are not the same."""
    odd = table["name"].str.contains(_ODD)
    raw = pl.when(odd).then(pl.coalesce("raw", pl.col("name").cast(pl.Binary))).otherwise("raw")
    table = table.with_columns(raw.bin.encode("hex").alias("raw"))
    if odd.any():
        shown = [guarded(display(name.encode())) for name in table["name"].filter(odd).to_list()]
        table = table.with_columns(table["name"].scatter(odd.arg_true(), shown))
    return table
