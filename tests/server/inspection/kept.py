"""Findings that keep all rows, scans that read into them, and what an independent client is told of the same keys."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import polars as pl

from rtui.analysis.columns import EVERYTHING, Asked, Columns
from rtui.keyspace.slots import key_slot
from rtui.server.inspection.engine_inspection import InspectingEngine
from rtui.server.inspection.pipeline import InspectionPipeline
from rtui.server.inspection.plan import InspectionPlan
from rtui.server.scan.cursor import Dialect, dialect_of
from rtui.server.scan.node import ScanNode
from rtui.server.scan.pace import Pace
from rtui.server.scan.run_control import RunControl
from rtui.server.scan.scan import Scan
from rtui.server.wire.capability import Capabilities
from rtui.server.wire.connection import Connection
from rtui.table.schema import NEVER, SCHEMA, keys_of
from rtui.table.tops import TopKeys
from tests.oracles.counted import facts
from tests.server import every_type
from tests.servers import Server

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
        """Do something in the middle."""
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
