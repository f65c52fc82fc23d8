"""What memory the process of a report takes at most, for one million keys and for five.

`python -m tests.bench.run report_memory`. The environment may set RTUI_BENCH_SERVER (valkey-9.1).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from tests.bench.mixed import KEYS, seeded
from tests.bench.row import Row
from tests.bench.window import environment
from tests.servers import CHECKOUT

SERVER = os.environ.get("RTUI_BENCH_SERVER", "valkey-9.1")
"""The version that is measured."""

TIMES = 5
"""How many times as many keys there are in the second keyspace."""

MOST_BYTES = 120_000_000
"""The memory that the process may take."""

MOST_GROWTH = 1.3
"""How many times as much it may take for the second keyspace."""


def rows() -> Iterator[Row]:
    """A row a keyspace, and how they compare."""
    peaks = []
    for keys in (KEYS, TIMES * KEYS):
        with seeded(SERVER, keys) as server:
            peaks.append(peak_bytes(server.port))
        what = f"memory of `rtui report --format json` after {keys:,} mixed keys, at its peak ({SERVER})"
        here = f"{peaks[-1] / 1e6:.0f} MB"
        yield Row(what, here, "", "", f"≤ {MOST_BYTES / 1e6:.0f} MB", peaks[-1] <= MOST_BYTES)
    growth = peaks[1] / peaks[0]
    what = f"the same, for {TIMES * KEYS:,} keys beside {KEYS:,}"
    here, beside = (f"{peak / 1e6:.0f} MB" for peak in reversed(peaks))
    yield Row(what, here, beside, f"{growth:.2f} ×", f"≤ {MOST_GROWTH} ×", growth <= MOST_GROWTH)


def peak_bytes(port: int) -> int:
    """The largest resident memory of the process, as Linux counts it."""
    with tempfile.TemporaryDirectory(prefix="rtui-home-") as home:
        options = ["--format", "json", "-o", f"{home}/report.json", "--pace", "full", "-p", str(port)]
        process = subprocess.Popen(
            [sys.executable, "-m", "rtui", "report", *options], cwd=CHECKOUT, env=environment(home)
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError(f"the report ended with code {process.returncode}")
    return usage.ru_maxrss * 1024
