"""What reading a keyspace as tables takes, when the rows are counted and dropped.

`python -m tests.bench.source PORT [PACE] [COLUMNS] [profile]` prints keys, seconds, processor time for each key, and by
how much the event loop was late; with `profile` where that time goes.
"""

from __future__ import annotations

import asyncio
import cProfile
import json
import pstats
import sys
import time
from collections.abc import Callable, Sequence

import polars as pl

from rtui.analysis.columns import SAMPLED_COLUMNS, parse_columns
from rtui.server.inspection.engine_inspection import InspectingEngine
from rtui.server.inspection.pipeline import InspectionPipeline
from rtui.server.inspection.plan import InspectionPlan
from rtui.server.scan.cursor import dialect_of
from rtui.server.scan.node import ScanNode
from rtui.server.scan.pace import Pace
from rtui.server.scan.run_control import RunControl
from rtui.server.scan.scan import Scan
from rtui.server.wire.capability import Capabilities
from rtui.server.wire.connection import Connection
from rtui.server.wire.target import Target
from rtui.table.top_keys import TopKeys

TICK_S = 0.005
"""How often the event loop should take a turn, to see by how much it is late."""


class Dropped:
    """Findings that count rows."""

    def __init__(self) -> None:
        self.big = TopKeys(100)
        self.rows = self.tables = self.vanished = self.unread = 0

    def add_rows(self, table: Callable[[], pl.DataFrame], rows: int, asked_at_s: float) -> None:
        """Make the table, and count the rows."""
        self.rows += table().height
        self.tables += 1

    def add_note(self, key_type: bytes | None, note: str) -> None:
        """Forget it."""

    def add_unread(self, keys: Sequence[bytes]) -> None:
        """Count the keys."""
        self.unread += len(keys)

    def add_vanished(self, count: int) -> None:
        """Count them."""
        self.vanished += count


async def read(port: int, pace: str, columns: str) -> dict[str, object]:
    """Read everything once."""
    connection = Connection(Target(port=port))
    await connection.open()
    found, capabilities = Dropped(), Capabilities()
    await capabilities.probe(connection)
    wanted = parse_columns(columns) or SAMPLED_COLUMNS
    plan = InspectionPlan(capabilities, connection.server, connection.no_touch, wanted)
    node = ScanNode(
        connection, dialect_of(connection.server), queries=InspectionPipeline(plan, found, by_engine=InspectingEngine)
    )
    scan = Scan([node], lambda keys: None, RunControl(Pace(pace)))
    late: list[float] = []

    async def watch() -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(TICK_S)
            late.append(time.perf_counter() - before - TICK_S)

    watching = asyncio.create_task(watch())
    start, cpu = time.perf_counter(), time.process_time()
    await scan.run()
    seconds, cpu_s = time.perf_counter() - start, time.process_time() - cpu
    watching.cancel()
    await connection.close()
    late.sort()
    return {
        "state": scan.state.name + str(scan.progress.reason or ""),
        "rows": found.rows,
        "tables": found.tables,
        "vanished": found.vanished,
        "seconds": round(seconds, 2),
        "k_keys_s": round(found.rows / seconds / 1000, 1),
        "cpu_us_a_key": round(cpu_s / max(1, found.rows) * 1e6, 2),
        "late_p99_ms": round(late[int(len(late) * 0.99)] * 1000, 1),
        "server_us_a_key": round(scan.cost.server_us / max(1, found.rows), 2),
        "commands_a_key": round(scan.cost.commands / max(1, found.rows), 2),
        "writes": scan._nodes[0].pipeline.answers,
    }


def main(port: str, pace: str = "full", columns: str = "default", profile: str = "") -> None:
    """Read, and print what it took."""
    if not profile:
        print(json.dumps(asyncio.run(read(int(port), pace, columns))))
        return
    with cProfile.Profile(time.process_time) as profiler:
        print(json.dumps(asyncio.run(read(int(port), pace, columns))))
    pstats.Stats(profiler).sort_stats("tottime").print_stats(45)


if __name__ == "__main__":
    main(*sys.argv[1:])
