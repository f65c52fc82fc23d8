"""Rows of the key table, drawn and written out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import polars as pl
from hypothesis import strategies as st

from rtui.analysis.report.document import KeyRecord
from rtui.server.inspection.tables import InspectedBatch, TableFindings
from rtui.server.inspection.tables import table_of as table_of_batches
from rtui.table.schema import NEVER, SCHEMA, names_of

STARTED_MS = 1_790_000_000_000

_NAMES = st.sampled_from(b"user cart v2 42 7 page_1 page_2 2026-02-01 {a:1} {9} \xff { \1".split(b" ")) | st.just(b"")

ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "key": st.lists(_NAMES, min_size=1, max_size=4).map(b":".join),
            "type": st.sampled_from(("string", "hash", None)),
            "encoding": st.sampled_from((None, "raw", "int")),
            "expires_ms": st.none() | st.just(NEVER) | st.integers(STARTED_MS, STARTED_MS + 10**11),
            "memory_bytes": st.none() | st.integers(0, 200) | st.integers(0, 2**40) | st.just(2**62),
            "length": st.none() | st.integers(0, 100),
            "idle_s": st.none() | st.integers(0, 10**8),
            "frequency": st.none() | st.integers(0, 255),
            "sampled": st.booleans(),
        }
    ),
    max_size=25,
)
"""Rows whose keys are often alike."""


def table_of(rows: Iterable[dict[str, Any]]) -> pl.DataFrame:
    """Return these rows; what they don't say is not known."""
    found = [*rows]
    name, raw = names_of([row["key"] for row in found])
    columns = {column: [row.get(column) for row in found] for column in SCHEMA.names() if column not in ("name", "raw")}
    return pl.DataFrame({"name": name, "raw": raw, **columns}, SCHEMA)


def rows_of(batch: InspectedBatch, asked_at_s: float) -> pl.DataFrame:
    """Return the keys of a batch as rows."""
    return table_of_batches([(batch, asked_at_s)], "", 0)


def add_batch(found: TableFindings, batch: InspectedBatch, asked_at_s: float) -> None:
    """Add the keys of a batch as rows."""
    if batch.note:
        found.add_note(batch.key_type, batch.note)
    found.add_rows(partial(rows_of, batch, asked_at_s), len(batch.keys), asked_at_s)


def record_of(batch: InspectedBatch, index: int, asked_at_s: float) -> KeyRecord:
    """Return all that a batch says about one of its keys."""

    def value(column: Sequence[int] | None) -> int | None:
        return None if column is None else column[index]

    return KeyRecord(
        key=batch.keys[index],
        key_type=batch.key_type,
        memory_bytes=value(batch.memory_bytes),
        length=value(batch.lengths),
        ttl_ms=value(batch.ttl_ms),
        idle_s=value(batch.idle_s),
        frequency=value(batch.frequency),
        asked_at_s=asked_at_s,
        note=batch.note,
    )
