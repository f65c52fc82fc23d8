"""How soon an estimate of a million keys is there, how far its shares are off, and how both are with heavy tails.

`python -m tests.bench.run estimates`. The environment may set RTUI_BENCH_SERVER (valkey-9.1), RTUI_BENCH_RUNS (7) and
RTUI_BENCH_SEED, of which the keyspaces with heavy tails are made: without it they are new ones each time.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from random import Random
from secrets import randbits
from typing import Any

from rtui.analysis.estimates import Estimate
from rtui.server.analysis_run import ESTIMATE_KEYS
from tests.bench.inspect_once import value
from tests.bench.mixed import KEYS, seeded
from tests.bench.row import Row, time_row
from tests.bench.scan import apart
from tests.oracles import heavy_tails
from tests.oracles.analysed import report_on
from tests.oracles.test_estimates import figures
from tests.server.targets import target_of
from tests.servers import Server, binaries, running

SERVER = os.environ.get("RTUI_BENCH_SERVER", "valkey-9.1")
"""The version that is measured."""

RUNS = int(os.environ.get("RTUI_BENCH_RUNS", "7"))
"""How often a sample is drawn."""

MOST_S = 1.0
"""Within so long the report has to be there."""

MOST_POINTS = 1.0
"""So many percentage points a share may be off."""

SEED = int(os.environ.get("RTUI_BENCH_SEED") or randbits(48))
"""What the keyspaces with heavy tails are made of."""

KEYSPACES, HEAVY_KEYS, HEAVY_SAMPLE = 6, 20_000, 4_000

LEAST_COVERAGE = 0.93
"""So many of the intervals hold the truth at least."""


def rows() -> Iterator[Row]:
    """The million keys, and then the heavy tails."""
    yield from of_a_million()
    yield from of_heavy_tails()


def of_a_million() -> Iterator[Row]:
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


def of_heavy_tails() -> Iterator[Row]:
    """How many intervals hold the truth, and how far values are off, over keyspaces of a grammar of sizes."""
    random = Random(SEED)
    held: list[bool] = []
    off: dict[str, list[float]] = {"sum of memory": [], "share of memory": []}
    with running(binaries()[SERVER]) as server:
        for number in range(KEYSPACES):
            server.client().flushall()
            told = heavy_tails.plant(server.client(), random, HEAVY_KEYS)
            here, errors = asyncio.run(_held_against_the_truth(server))
            held += here
            for what, some in errors.items():
                off[what] += some
            print(f"  keyspace {number + 1}: {sum(here) / len(here):.1%} of {', '.join(told)}", file=sys.stderr)
    what = f"{KEYSPACES} keyspaces with heavy tails by {HEAVY_SAMPLE:,} of {HEAVY_KEYS:,} keys (seed {SEED})"
    part = sum(held) / len(held)
    goal = f"≥ {LEAST_COVERAGE:.0%}"
    yield Row(f"{what}, 95 % intervals that hold the truth", f"{part:.1%}", "", "", goal, part >= LEAST_COVERAGE)
    total = statistics.median(off["sum of memory"])
    yield Row(f"{what}, median error of the bytes of all keys", f"{total:.1%}")
    points = 100 * statistics.median(off["share of memory"])
    yield Row(f"{what}, median error of a namespace's share of memory", f"{points:.2f} points")


async def _held_against_the_truth(server: Server) -> tuple[list[bool], dict[str, list[float]]]:
    """Whether each interval of some samples holds the truth, and how far the bytes and shares are off."""
    truth = {(what, whose): exact for what, whose, exact in figures(await report_on(target_of(server)))}
    held, off = list[bool](), {"sum of memory": list[float](), "share of memory": list[float]()}
    for _ in range(RUNS):
        report = await report_on(target_of(server), estimate_keys=HEAVY_SAMPLE)
        for what, whose, said in figures(report):
            exact = truth.get((what, whose))
            if exact is None or not isinstance(said, Estimate):
                continue
            true = value(exact)
            held.append(said.low * 0.98 <= true <= said.high * 1.02)
            if what == "share of memory":
                off[what].append(abs(said.value - true))
            elif what == "sum of memory" and whose == "all":
                off[what].append(abs(said.value - true) / true)
    return held, off


def found(*arguments: object) -> dict[str, Any]:
    """What an inspection in a process of its own has found."""
    command = [sys.executable, "-m", "tests.bench.inspect_once", *map(str, arguments)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result
