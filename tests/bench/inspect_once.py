"""One inspection of a whole keyspace in a process of its own; prints what it took once connected, as JSON.

`python -m tests.bench.inspect_once rtui PORT PACE [COLUMNS]` analyses everything, or these columns, `estimate
PORT KEYS` a sample of so many keys, `bare PORT COUNT` asks what an analysis asks, in the same way, and keeps nothing.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from typing import Any

import hiredis

from rtui.analysis.columns import parse_columns
from rtui.analysis.estimates import Estimate
from rtui.analysis.report.document import ColumnState, CoverageKind, Report
from rtui.analysis.report.members import Figure
from rtui.server import guard
from rtui.server.analysis_run import AnalysisRun
from rtui.server.facts.types import length_commands
from rtui.server.guard.command import Command, KeyCommand, build_batch
from rtui.server.guard.evidence import TypeEvidence
from rtui.server.options import AnalysisOptions
from rtui.server.scan.pace import Pace
from rtui.server.wire.connection import Connection
from rtui.server.wire.target import Target
from tests.bench.loads import Asking

ENCODING_EVERY = 16
"""An analysis asks every so many keys for their encoding."""


class Bare:
    """A plain loop: each write asks about the page before, measures the one before that, and lists the next.

    The bytes come from the same builders as those of an analysis; of each reply only the types are looked at.
    """

    def __init__(self, port: int) -> None:
        self._client = Asking(port)
        self._has_lengths = not isinstance(self._ask(b"CLIENT", b"NO-TOUCH", b"ON"), hiredis.ReplyError)
        policy = self._ask(b"INFO", b"memory")
        assert isinstance(policy, bytes)
        recency = guard.object_freq if b"maxmemory_policy:allkeys-lfu" in policy else guard.object_idletime
        self._look: tuple[KeyCommand, ...] = (guard.key_type, guard.pttl, recency)

    def _ask(self, *command: bytes) -> object:
        return self._client.run([command])[0]

    def scan(self, count: int) -> int:
        """Inspect everything once; returns how many keys that were."""
        keys: list[bytes] = []
        types: list[bytes] = []
        listed: list[bytes] = []
        cursor, inspected, is_over = 0, 0, False
        while not is_over or listed or keys:
            measures = self._measures(keys, types)
            looks = [build_batch(self._look, listed)] if listed else []
            scans = [] if is_over else [guard.scan(cursor, count=count)]
            commands = [*measures, *looks, *scans]
            replies = self._client.exchange(
                b"".join([command.packed for command in commands]), sum(command.replies for command in commands)
            )
            inspected += len(keys)
            page = replies.pop() if scans else None
            step = len(self._look)
            types = replies[len(replies) - step * len(listed) :: step] if listed else []
            keys, listed = listed, []
            if page is not None:
                cursor, listed = int(page[0]), page[1]
                is_over = cursor == 0
        return inspected

    def _measures(self, keys: Sequence[bytes], types: Sequence[bytes]) -> list[Command]:
        """Memory and, where it touches nothing, length by type; and some encodings."""
        by_type: dict[bytes, list[bytes]] = {}
        for key, kind in zip(keys, types, strict=True):
            if kind != b"none":  # it has expired meanwhile
                by_type.setdefault(kind, []).append(key)
        lengths = length_commands() if self._has_lengths else {}
        asks = {kind: tuple(filter(None, (guard.memory_usage, lengths.get(kind)))) for kind in by_type}
        found = [
            build_batch(asks[kind], named, TypeEvidence(kind, None, None, proved=len(named)))
            for kind, named in by_type.items()
        ]
        return [*found, build_batch(guard.object_encoding, keys[::ENCODING_EVERY])] if keys else found


def bare(port: int, count: int) -> dict[str, Any]:
    """Ask everything and keep nothing."""
    loop = Bare(port)
    start = time.perf_counter()
    keys = loop.scan(count)
    return {"seconds": time.perf_counter() - start, "keys": keys}


async def analysed(port: int, options: AnalysisOptions) -> dict[str, Any]:
    """Analyse as `rtui report` does."""
    connection = Connection(Target(port=port))
    await connection.open()
    start, cpu_start = time.perf_counter(), time.process_time()
    analysing = AnalysisRun(connection, options)
    await analysing.run()
    took, cpu = time.perf_counter() - start, time.process_time() - cpu_start
    await connection.close()
    report = analysing.report
    if report is None or report.head.coverage.kind is CoverageKind.PARTIAL:
        raise RuntimeError(f"{analysing.progress}")
    denied = [name for name, one in report.head.columns.items() if one.state is ColumnState.DENIED]
    if denied:
        raise RuntimeError(f"denied: {denied}")
    return {"seconds": took, "cpu_s": cpu, "keys": report.head.coverage.keys, "shares": shares(report)}


def shares(report: Report) -> dict[str, float]:
    """The shares of all namespaces of the first two levels: of the keys and of the memory."""
    found = {}
    for path in report.summary.root.walk():
        if 1 < len(path) < 4 and path[-1].separator:
            name = b"".join(node.name + node.separator for node in path).decode()
            stats = path[-1].stats
            found[f"{name} keys"] = value(stats.share_keys)
            if stats.share_memory is not None:
                found[f"{name} memory"] = value(stats.share_memory)
    return found


def value(figure: Figure) -> float:
    """A figure without its interval."""
    return figure.value if isinstance(figure, Estimate) else float(figure)


def main(kind: str, port: int, argument: str, columns: str = "all") -> dict[str, Any]:
    """Do one of the three."""
    if kind == "bare":
        return bare(port, int(argument))
    if kind == "rtui":
        return asyncio.run(analysed(port, AnalysisOptions(pace=Pace(argument), columns=parse_columns(columns))))
    return asyncio.run(analysed(port, AnalysisOptions(estimate_keys=int(argument))))


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])))
