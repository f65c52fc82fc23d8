"""One scan in a process of its own; prints the seconds it took once connected, those of its CPU, and its commands.

`python -m tests.bench.scan_once rtui PORT PACE KEYS` takes the keys into a store and checks that it got them,
`python -m tests.bench.scan_once bare PORT COUNT` sends one SCAN after the other and keeps nothing.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import time

from rtui.keyspace.store.store import NamespaceStore
from rtui.server.deployment.nodes import Deployment
from rtui.server.scan.cursor import dialect_of
from rtui.server.scan.node import ScanNode, SplitSink
from rtui.server.scan.pace import Pace
from rtui.server.scan.progress import ScanState
from rtui.server.scan.run_control import RunControl
from rtui.server.scan.scan import Scan
from rtui.server.wire.target import Target
from tests.bench.loads import Asking

Took = tuple[float, float, int]
"""Seconds, seconds of this process's CPU, commands that were sent."""


async def into_the_store(port: int, pace: str, keys: int) -> Took:
    """Scan everything once, as browsing does."""
    deployment = Deployment(Target(port=port))
    await deployment.open()
    nodes = [
        ScanNode(one.connection, dialect_of(one.connection.server), one.id or None, slots=one.slots, size=keys)
        for one in await deployment.scanned()
    ]
    store = NamespaceStore()
    gc.freeze()
    start, start_cpu = time.perf_counter(), time.process_time()
    split_sink = SplitSink(store.separators.values, store.add_split)
    scan = Scan(nodes, store.add, RunControl(Pace(pace)), split_sink=split_sink)
    await scan.run()
    took = time.perf_counter() - start, time.process_time() - start_cpu, scan.cost.commands
    await deployment.close()
    if scan.state is not ScanState.DONE or store.keys < keys:
        raise RuntimeError(f"{scan.state}, {store.keys} keys of {keys}")
    return took


def bare(port: int, count: int) -> Took:
    """Scan everything once and throw it away."""
    client, commands = Asking(port), 1
    start, start_cpu = time.perf_counter(), time.process_time()
    cursor, _ = client.page(b"0", count)
    while cursor != b"0":
        cursor, _ = client.page(cursor, count)
        commands += 1
    return time.perf_counter() - start, time.process_time() - start_cpu, commands


if __name__ == "__main__":
    if sys.argv[1] == "rtui":
        print(*asyncio.run(into_the_store(int(sys.argv[2]), sys.argv[3], int(sys.argv[4]))))
    else:
        print(*bare(int(sys.argv[2]), int(sys.argv[3])))
