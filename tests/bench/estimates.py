"""How soon an estimate of a million keys is there, and how far its shares are off.

`python -m tests.bench.run estimates`. The environment may set RTUI_BENCH_SERVER (valkey-9.1) and RTUI_BENCH_RUNS (7).
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from rtui.server.analysing import ESTIMATE_KEYS
from tests.bench.mixed import KEYS, seeded
from tests.bench.row import Row, time_row
from tests.bench.scan import apart

SERVER = os.environ.get("RTUI_BENCH_SERVER", "valkey-9.1")
"""The version that is measured."""

RUNS = int(os.environ.get("RTUI_BENCH_RUNS", "7"))
"""How often a sample is drawn."""

MOST_S = 1.0
"""Within so long the report has to be there."""

MOST_POINTS = 1.0
"""So many percentage points a share may be off."""


def rows() -> Iterator[Row]:
    """Time at the default pace, and the largest error of all namespaces of two levels."""
    with seeded(SERVER) as server, apart(server):
        taken: list[float] = []
        errors: dict[str, list[float]] = {"keys": [], "memory": []}
        truth = found("rtui", server.port, "full")["shares"]
        for number in range(RUNS):
            sampled = found("estimate", server.port, ESTIMATE_KEYS)
            print(f"  run {number + 1} of {RUNS}: {sampled['seconds']:.2f} s", file=sys.stderr)
            taken.append(sampled["seconds"])
            for kind, worst in errors.items():
                points = [
                    100 * abs(share - sampled["shares"].get(name, 0.0))
                    for name, share in truth.items()
                    if name.endswith(kind)
                ]
                worst.append(max(points))
    what = f"estimate of {KEYS:,} mixed keys by {ESTIMATE_KEYS:,} of them ({SERVER})"
    yield time_row(f"{what}, from the start to the report", taken, MOST_S)
    for kind, worst in errors.items():
        middle = statistics.median(worst)
        here = f"{middle:.2f} points, {max(worst):.2f} in the worst of {RUNS} runs"
        label = f"{what}, largest error of a namespace's share of {kind}"
        yield Row(label, here, "", "", f"≤ {MOST_POINTS:.0f} point", middle <= MOST_POINTS)


def found(*arguments: object) -> dict[str, Any]:
    """What an inspection in a process of its own has found."""
    command = [sys.executable, "-m", "tests.bench.inspect_once", *map(str, arguments)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result
