"""The biggest keys, by memory or by length, of all types or of one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from rtui.analysis import words
from rtui.analysis.report import CoverageKind, KeyRecord, Report
from rtui.analysis.tables.cell_text import written_keys
from rtui.analysis.tables.cells import Cells, plain
from rtui.analysis.tables.table import Cell, Column, Table, Unit
from rtui.keyspace.display import display, display_text

KEY = Column("key", "key", Unit.NAME, 0)
KIND = Column("type", "type", Unit.NAME, 9)
MEMORY = Column("memory", "bytes", Unit.BYTES, 8, "MEMORY USAGE with its default samples")
LENGTH = Column("length", "length", Unit.COUNT, 11, "Bytes of a string, else the number of elements")
TTL = Column("ttl", "TTL", Unit.DURATION, 8, "What was left of its life when it was asked")
IDLE = Column("idle", "idle", Unit.DURATION, 8, "Since it was used last")
FREQUENCY = Column("frequency", "freq", Unit.COUNT, 5, "The access counter of the LFU policies, 0 … 255")
ENCODING = Column("encoding", "encoding", Unit.NAME, 10)
NOTE = Column("note", "note", Unit.TEXT, 20)

Measure = Literal["memory", "length"]
"""By what keys are big."""


def big_keys(report: Report, by: Measure = "memory", kind: bytes | None = None) -> Table:
    """Return the biggest keys, largest first: of all types, or of one."""
    big = report.summary.big
    if kind is None:
        records = big.by_memory if by == "memory" else big.by_length
    else:
        records = (big.by_type_memory if by == "memory" else big.by_type_length).get(kind, ())
    of = "" if kind is None else f" of type {display(kind, limit=64)}"
    table_id = f"big_keys_by_{by}"
    return record_table(report, table_id, f"Biggest keys{of} by {by}", records, _note(report))


def record_table(report: Report, table_id: str, title: str, records: Iterable[KeyRecord], note: str = "") -> Table:
    """Return keys with all that is known of each."""
    records = tuple(records)
    cells = Cells(report)
    use = FREQUENCY if any(record.frequency is not None for record in records) else IDLE
    columns: tuple[Column, ...] = (KEY, KIND, MEMORY, LENGTH, TTL, use, ENCODING)
    has_notes = any(record.note for record in records)
    if has_notes:
        columns = (*columns, NOTE)
    rows = tuple(
        (*record_cells(cells, record, use), *((record.note or None,) if has_notes else ())) for record in records
    )
    return Table(table_id, title, columns, rows, tuple(record.key for record in records), note)


def record_cells(cells: Cells, record: KeyRecord, use: Column) -> tuple[Cell, ...]:
    """Return the cells of one key: name, type, memory, length, TTL, use, encoding."""
    return (
        record.key,
        cells.fact(record.kind, "type"),
        cells.fact(record.memory_bytes, "memory"),
        cells.fact(record.length, "length"),
        cells.ttl(record),
        cells.fact(record.frequency if use is FREQUENCY else record.idle_s, use.id),
        cells.fact(record.encoding, "encoding"),
    )


def looked_at(report: Report) -> str:
    """Say of a list in an estimate how few keys it is of, in a sentence without a full stop; nothing of others."""
    coverage, keys = report.head.coverage, report.summary.root.stats.keys
    if coverage.kind is not CoverageKind.ESTIMATE:
        return ""
    return f"Only {words.count(coverage.keys)} of {written_keys(keys)} keys were looked at"


def _note(report: Report) -> str:
    """Return how many keys are above the thresholds in use, by type."""
    over = [(kind, count) for kind, count in report.summary.big.over.items() if plain(count) > 0]
    name = display_text(report.head.scope.preset, limit=64)
    of_sample = looked_at(report)
    unseen = f"{of_sample}: there may be larger ones among those that were not. " if of_sample else ""
    if not over:
        return (
            f"{unseen}None of them is above the thresholds of {name}."
            if unseen
            else f"No key is above the thresholds of {name}."
        )
    mark = words.Mark.AT_LEAST if Cells(report).is_partial else words.Mark.EXACT
    if Cells(report).is_estimate:
        mark = words.Mark.ABOUT
    told = ", ".join(f"{display(kind, limit=64)} {written_keys(count, mark)}" for kind, count in over)
    return f"{unseen}Keys above the thresholds of {name}: {told}."
