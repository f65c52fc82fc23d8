"""Findings that keep every key with all that was learnt of it, and scans that inspect into them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from rtui.analysis.aggregate.aggregates import Aggregates
from rtui.analysis.aggregate.table_aggregates import batches_of, with_moment
from rtui.analysis.aggregate.tally import InspectedBatch
from rtui.analysis.columns import EVERYTHING, Columns
from rtui.analysis.report.document import Scope
from rtui.keyspace.text.segments import Separators
from rtui.server.inspection.pipeline import InspectionPipeline
from rtui.server.inspection.plan import InspectionPlan
from rtui.server.scan.cursor import Dialect
from rtui.server.scan.node import ScanNode
from rtui.server.scan.pace import Pace
from rtui.server.scan.run_control import RunControl
from rtui.server.scan.scan import Scan
from rtui.server.source.inspection import TableInspection
from rtui.server.wire.capability import Capabilities
from rtui.server.wire.connection import Connection

SCOPE = Scope()


class Gathered(Aggregates):
    """Everything by key; `at` runs something once when so many keys have come in."""

    def __init__(self, scope: Scope = SCOPE) -> None:
        super().__init__(Separators(), scope=scope, started_at_s=0.0)
        self.facts: dict[bytes, dict[str, Any]] = {}
        self.times: Counter[bytes] = Counter()
        self.encodings: Counter[tuple[bytes, bytes]] = Counter()
        self.vanished = 0
        self.unread_names: list[bytes] = []
        self.notes: dict[bytes | None, str] = {}
        self._at = 0
        self._act: Callable[[], object] | None = None

    def add_note(self, key_type: bytes | None, note: str) -> None:
        self.notes[key_type] = note

    def add_rows(self, made: Callable[[], pl.DataFrame], rows: int, asked_at_s: float) -> None:
        table = made()
        assert table.height == rows
        for batch, _ in batches_of(with_moment(table, round(asked_at_s * 1000))):
            note = self.notes.get(batch.key_type, "") if batch.memory_bytes is None else ""
            self.add(replace(batch, note=note, asked_at_s=asked_at_s), asked_at_s)
        for part in table.filter(pl.col("encoding").is_not_null()).partition_by("type", maintain_order=True):
            found = [encoding.encode() for encoding in part["encoding"].to_list()]
            self.add_encodings((part["type"][0] or "").encode(), found)

    def add(self, batch: InspectedBatch, asked_at_s: float) -> None:
        columns = {
            "ttl": batch.ttl_ms,
            "memory": batch.memory_bytes,
            "idle": batch.idle_s,
            "frequency": batch.frequency,
            "length": batch.lengths,
        }
        for column in columns.values():
            assert column is None or len(column) == len(batch.keys)
        for index, key in enumerate(batch.keys):
            self.times[key] += 1
            self.facts[key] = {
                "type": batch.key_type,
                "note": batch.note,
                **{name: None if column is None else column[index] for name, column in columns.items()},
            }
        self.big.add(batch, asked_at_s)
        if self._act is not None and len(self.facts) >= self._at:
            act, self._act = self._act, None
            act()

    def add_encodings(self, key_type: bytes, encodings: Sequence[bytes]) -> None:
        self.encodings.update((key_type, encoding) for encoding in encodings)

    def add_vanished(self, count: int) -> None:
        self.vanished += count

    def add_unread(self, keys: Sequence[bytes]) -> None:
        self.unread_names.extend(keys)

    def at(self, keys: int, act: Callable[[], object]) -> None:
        """Do something in the middle."""
        self._at, self._act = keys, act


async def inspecting(
    connection: Connection,
    found: Aggregates,
    *,
    pace: Pace = Pace.FULL,
    columns: Columns = EVERYTHING,
    first_sampled: int | None = None,
    **options: Any,
) -> tuple[Scan, InspectionPipeline]:
    """A scan that inspects everything into `found`, not yet run; Python asks, since cursors are opaque."""
    capabilities = Capabilities()
    await capabilities.probe(connection)
    plan = InspectionPlan(capabilities, connection.server, connection.no_touch, columns)
    pipeline = TableInspection(plan, found, first_sampled=first_sampled)
    node = ScanNode(connection, Dialect.OPAQUE, queries=pipeline)
    return Scan([node], lambda keys: None, RunControl(pace), **options), pipeline
