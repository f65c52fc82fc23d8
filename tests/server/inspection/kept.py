"""Findings that keep all rows, scans that read into them, and what an independent client is told of the same keys."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import polars as pl
from msgspec import structs

from rtui.analysis.columns import EVERYTHING, Asked, Columns
from rtui.analysis.report.document import KeyRecord, Scope
from rtui.analysis.report.thresholds import preset
from rtui.keyspace.slots import key_slot
from rtui.server.inspection.engine_inspection import InspectingEngine
from rtui.server.inspection.pipeline import InspectionPipeline
from rtui.server.inspection.plan import InspectionPlan
from rtui.server.inspection.tables import InspectedBatch, TableFindings
from rtui.server.scan.cursor import Dialect, dialect_of
from rtui.server.scan.node import ScanNode
from rtui.server.scan.pace import Pace
from rtui.server.scan.run_control import RunControl
from rtui.server.scan.scan import Scan
from rtui.server.wire.capability import Capabilities
from rtui.server.wire.connection import Connection
from rtui.table.aggregates import with_moment
from rtui.table.schema import NEVER, SCHEMA, keys_of
from rtui.table.tops import TopKeys, records_of
from tests.oracles.counted import facts
from tests.server import every_type
from tests.servers import Server
from tests.table.naive import record_of

LATE_MS = 3_000
"""An expiry is known to within the time that an answer takes, which a busy machine makes long."""


class Kept:
    """All tables; `at` runs something once when so many rows have come."""

    def __init__(self) -> None:
        self.big = TopKeys(10)
        self.tables: list[pl.DataFrame] = []
        self.unread: list[bytes] = []
        self.vanished = 0
        self.notes: dict[bytes | None, str] = {}
        self._at = 0
        self._act: Callable[[], object] | None = None

    def add_rows(self, made: Callable[[], pl.DataFrame], rows: int, asked_at_s: float) -> None:
        table = made()
        assert table.schema == SCHEMA
        assert table.height == rows > 0
        assert abs(asked_at_s - time.time()) < 60
        self.tables.append(table)
        if self._act is not None and self.rows.height >= self._at:
            act, self._act = self._act, None
            act()

    def add_unread(self, keys: Sequence[bytes]) -> None:
        self.unread += keys

    def add_vanished(self, count: int) -> None:
        self.vanished += count

    def add_note(self, key_type: bytes | None, note: str) -> None:
        self.notes[key_type] = note

    def at(self, rows: int, act: Callable[[], object]) -> None:
        self._at, self._act = rows, act

    @property
    def rows(self) -> pl.DataFrame:
        return pl.concat(self.tables) if self.tables else pl.DataFrame(schema=SCHEMA)

    @property
    def by_key(self) -> dict[bytes, dict[str, Any]]:
        """The rows by key, each once."""
        rows = self.rows
        keys = keys_of(rows)
        assert len(set(keys)) == len(keys)
        return dict(zip(keys, rows.to_dicts(), strict=True))


async def reading(
    connection: Connection,
    found: Kept,
    *,
    columns: Columns = EVERYTHING,
    pace: Pace = Pace.FULL,
    dialect: Dialect | None = None,
    **options: Any,
) -> tuple[Scan, InspectionPipeline]:
    """A scan that reads all keys into tables, not yet run; where cursors are opaque Python asks."""
    capabilities = Capabilities()
    await capabilities.probe(connection)
    plan = InspectionPlan(capabilities, connection.server, connection.no_touch, columns)
    inspection = InspectionPipeline(plan, found, by_engine=InspectingEngine, **options)
    node = ScanNode(connection, dialect or dialect_of(connection.server), queries=inspection)
    return Scan([node], lambda keys: None, RunControl(pace)), inspection


def told(server: Server) -> Counter[tuple[Any, ...]]:
    """By a client that asks one key after the other: the rows without what depends on the moment."""
    has_lengths = every_type.has_no_touch(server)
    return Counter(
        (
            fact.key,
            fact.kind.decode(),
            None if fact.key in every_type.UNSTEADY_MEMORY else fact.memory_bytes,
            fact.length if has_lengths else None,
            fact.encoding.decode(),
            key_slot(fact.key),
        )
        for fact in facts(server.client()).values()
    )


def said(rows: pl.DataFrame) -> Counter[tuple[Any, ...]]:
    """The same of a table."""
    return Counter(
        (
            key,
            row["type"],
            None if key in every_type.UNSTEADY_MEMORY else row["memory_bytes"],
            row["length"],
            row["encoding"],
            row["slot"],
        )
        for key, row in zip(keys_of(rows), rows.to_dicts(), strict=True)
    )


def expiries_agree(server: Server, rows: pl.DataFrame) -> bool:
    """Whether each key expires when the server says, by its own clock."""
    client = server.client()
    seconds, micros = client.time()
    now_ms = seconds * 1000 + micros // 1000
    for key, expires_ms in zip(keys_of(rows), rows["expires_ms"].to_list(), strict=True):
        left = client.pttl(key)
        if (left == -1) != (expires_ms == NEVER) or (left >= 0 and abs(now_ms + left - expires_ms) > LATE_MS):
            return False
    return True


SAMPLED_LENGTHS = Columns(idle=Asked.SAMPLED, length=Asked.SAMPLED, encoding=Asked.SAMPLED)


SCOPE = Scope()


class Gathered:
    """Everything by key; `at` runs something once when so many keys have come in."""

    def __init__(self, scope: Scope = SCOPE) -> None:
        self.big = TopKeys(scope.top, preset(scope.preset))
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
        key = pl.coalesce("raw", pl.col("name").cast(pl.Binary)).alias("key")
        for record in records_of(with_moment(table.with_columns(key), round(asked_at_s * 1000))):
            note = self.notes.get(record.key_type, "") if record.memory_bytes is None else ""
            self._add(structs.replace(record, note=note, asked_at_s=asked_at_s))
        for part in table.filter(pl.col("encoding").is_not_null()).partition_by("type", maintain_order=True):
            found = [encoding.encode() for encoding in part["encoding"].to_list()]
            self.add_encodings((part["type"][0] or "").encode(), found)

    def add(self, batch: InspectedBatch, asked_at_s: float) -> None:
        for column in (batch.ttl_ms, batch.memory_bytes, batch.idle_s, batch.frequency, batch.lengths):
            assert column is None or len(column) == len(batch.keys)
        for index in range(len(batch.keys)):
            self._add(record_of(batch, index, asked_at_s))

    def _add(self, record: KeyRecord) -> None:
        self.times[record.key] += 1
        self.facts[record.key] = {
            "type": record.key_type,
            "note": record.note,
            "ttl": record.ttl_ms,
            "memory": record.memory_bytes,
            "idle": record.idle_s,
            "frequency": record.frequency,
            "length": record.length,
        }
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
        self._at, self._act = keys, act


async def inspecting(
    connection: Connection,
    found: TableFindings,
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
    pipeline = InspectionPipeline(plan, found, first_sampled=first_sampled)
    node = ScanNode(connection, Dialect.OPAQUE, queries=pipeline)
    return Scan([node], lambda keys: None, RunControl(pace), **options), pipeline
