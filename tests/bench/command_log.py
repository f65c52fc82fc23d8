"""What the command log costs: a report that keeps it, and one that also writes it, beside one without.

`python -m tests.bench.run command_log`. The environment may set RTUI_BENCH_SERVER (valkey-9.1), RTUI_BENCH_KEYS
(400000) and RTUI_BENCH_ROUNDS (5).
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rtui.server.analysis_run import AnalysisRun
from rtui.server.command_log_file import CommandLogFile
from rtui.server.engine import ENVIRONMENT
from rtui.server.options import AnalysisOptions
from rtui.server.scan.pace import Pace
from rtui.server.wire.command_log import CommandLog, LaneLog
from rtui.server.wire.connection import Connection
from rtui.server.wire.target import Target
from tests.bench.mixed import seeded
from tests.bench.row import Row
from tests.servers import CHECKOUT

SERVER: Final = os.environ.get("RTUI_BENCH_SERVER", "valkey-9.1")
KEYS: Final = int(os.environ.get("RTUI_BENCH_KEYS", "400000"))
ROUNDS: Final = int(os.environ.get("RTUI_BENCH_ROUNDS", "5"))

HOW: Final = {"none": "without", "memory": "kept in memory", "file": "and written to a file"}

LEAST_RATIO: Final = 0.99
"""How fast it has to be, beside a report without a log."""


def rows() -> Iterator[Row]:
    """A row for each engine and each way of keeping the log."""
    with seeded(SERVER, KEYS) as server:
        for engine in ("compiled", "pure"):
            took: dict[str, list[tuple[float, float]]] = defaultdict(list)
            for _ in range(ROUNDS):
                for how in HOW:
                    took[how].append(measured(server.port, how, engine))
            for how in ("memory", "file"):
                yield beside_none(engine, how, took[how], took["none"])


def beside_none(engine: str, how: str, here: list[tuple[float, float]], without: list[tuple[float, float]]) -> Row:
    """How fast reports with a log are beside those without, round by round; pairs of seconds and processor's time."""
    pairs = list(zip(here, without, strict=True))
    ratios = [other_s / one_s for (one_s, _), (other_s, _) in pairs]
    ratio, processor = statistics.median(ratios), statistics.median([one / other for (_, one), (_, other) in pairs])
    rate, other_rate = (KEYS / statistics.median([seconds for seconds, _ in found]) for found in (here, without))
    return Row(
        f"report of {KEYS:,} keys, {engine}, with its command log {HOW[how]} ({SERVER})",
        f"{rate:,.0f} keys/s",
        f"without: {other_rate:,.0f} keys/s; processor's time {processor:.3f} ×",
        f"{ratio:.3f} × ({min(ratios):.3f} … {max(ratios):.3f})",
        f"≥ {LEAST_RATIO} ×",
        ratio >= LEAST_RATIO,
    )


def measured(port: int, how: str, engine: str) -> tuple[float, float]:
    """The seconds of one analysis in a process of its own, and those of its processor."""
    command = [sys.executable, "-m", "tests.bench.command_log", how, str(port)]
    settings = os.environ | {ENVIRONMENT: engine}
    done = subprocess.run(command, cwd=CHECKOUT, env=settings, stdout=subprocess.PIPE, check=True)
    seconds, cpu_s = json.loads(done.stdout)
    return seconds, cpu_s


async def analysed(how: str, port: int, folder: Path) -> tuple[float, float]:
    """Analyse all keys."""
    if how == "none":
        for name in ("sent", "received", "answered", "worked", "ended"):
            setattr(LaneLog, name, lambda *_: None)
    log = CommandLog()
    file = CommandLogFile(log, folder / "log.jsonl") if how == "file" else None
    connection = Connection(Target(port=port), log=log)
    await connection.open()
    start, cpu_start = time.perf_counter(), time.process_time()
    await AnalysisRun(connection, AnalysisOptions(pace=Pace.FULL)).run(reports_meanwhile=False)
    took = time.perf_counter() - start, time.process_time() - cpu_start
    await connection.close()
    if file is not None:
        file.close()
        if log.failure is not None or not (folder / "log.jsonl").stat().st_size:
            raise RuntimeError("the log was not written")
    return took


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        print(json.dumps(asyncio.run(analysed(sys.argv[1], int(sys.argv[2]), Path(home)))))
