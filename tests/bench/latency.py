"""What another client notices: latencies of a probe without a load and under one in turns, in one run.

`python -m tests.bench.run latency`. The environment may set RTUI_BENCH_SERVER (valkey-9.1), RTUI_BENCH_ROUNDS (11),
RTUI_BENCH_WINDOW_S (2) and RTUI_BENCH_CURVE_WINDOW_S (1).
"""

from __future__ import annotations

import contextlib
import os
import statistics
import sys
from collections.abc import Iterable, Iterator, Mapping

from tests.bench.loads import again_and_again, own, redis_clis, under, with_count
from tests.bench.probe import Latencies, probe_apart
from tests.bench.row import Row
from tests.bench.seed import seeded
from tests.servers import Server

SERVER = os.environ.get("RTUI_BENCH_SERVER", "valkey-9.1")
"""The version that is measured."""

ROUNDS = int(os.environ.get("RTUI_BENCH_ROUNDS", "11"))
"""How often each load is measured; one after the other, so that a slow minute hits all of them."""

WINDOW_S = float(os.environ.get("RTUI_BENCH_WINDOW_S", "2"))
"""How long each load is measured in each round, and likewise the time without one before it."""

CURVE_WINDOW_S = float(os.environ.get("RTUI_BENCH_CURVE_WINDOW_S", "1"))
"""The same for each point of the curve."""

FOREMOST = -20
"""The niceness of the server, where permitted: what else runs on the machine is not to be measured."""

GOAL = 1.3
"""The ratio that a scan at the default pace has to stay under."""


COUNTS = (20, 50, 100, 200, 500, 1_000)
DUTIES = (0.05, 0.15, 0.25, 0.5, 1.0)

Rounds = dict[str, list[tuple[Latencies, Latencies]]]
"""Of each load, in the order of the rounds: a window without a load, and the one under it that follows."""


def conditions(port: int) -> dict[str, list[str]]:
    """Every load, as a command line."""
    found = {
        "rtui scan, gentle (default)": own("rtui", port, "gentle"),
        "rtui scan, normal": own("rtui", port, "normal"),
        "rtui scan, full": own("rtui", port, "full"),
    }
    plain = redis_clis()
    if plain:
        found["redis-cli --bigkeys"] = again_and_again([*plain[-1], "-p", str(port), "--bigkeys"])
    counting = with_count()
    if counting is not None:
        found["redis-cli --memkeys --count 1000"] = again_and_again(
            [*counting, "-p", str(port), "--memkeys", "--count", "1000"]
        )
    found["SCAN COUNT 10000"] = own("scan", port, 10_000, 1)
    found["SCAN COUNT 10000 + TYPE, PTTL, MEMORY of each key"] = own("facts", port, 10_000)
    return found


def measure(server: Server, loads: dict[str, list[str]], rounds: int, window_s: float) -> Rounds:
    """Measure each load once a round, and the time without one before it."""
    cpus = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(server.pid, {cpus[0]})
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, server.pid, FOREMOST)
    others = set(cpus[1:]) or set(cpus)
    results: Rounds = {name: [] for name in loads}
    for number in range(rounds):
        for name, command in loads.items():
            print(f"  round {number + 1} of {rounds}: {name}", file=sys.stderr)
            idle = probe_apart(server.port, window_s, others)
            with under(command, others):
                results[name].append((idle, probe_apart(server.port, window_s, others)))
    return results


def ratio(windows: list[tuple[Latencies, Latencies]]) -> float:
    """How the p99 compares with that of the window before, median over the rounds."""
    return statistics.median(under_load.p99 / idle.p99 for idle, under_load in windows)


def _figures(windows: Iterable[Latencies]) -> str:
    kept = list(windows)
    p50, p99, p999 = (statistics.median(getattr(window, which) for window in kept) for which in ("p50", "p99", "p999"))
    return f"{p50:,.0f} / {p99:,.0f} / {p999:,.0f} µs"


def rows() -> Iterator[Row]:
    """One row a load, the probe's p50 / p99 / p999 under it beside those without."""
    with seeded(SERVER) as server:
        results = measure(server, conditions(server.port), ROUNDS, WINDOW_S)
    yield from load_rows(results, SERVER, {"rtui scan, gentle (default)": GOAL})


def load_rows(results: Rounds, server: str, goals: Mapping[str, float]) -> Iterator[Row]:
    """One row for each load; `goals` are the ratios that the p99 has to stay under."""
    for name, windows in results.items():
        times, goal = ratio(windows), goals.get(name)
        yield Row(
            f"another client's latency, p50 / p99 / p999, under {name} ({server})",
            _figures(loaded for _, loaded in windows),
            f"{_figures(idle for idle, _ in windows)} without",
            f"{times:.2f} × p99",
            "" if goal is None else f"≤ {goal} ×",
            None if goal is None else times <= goal,
        )


def appendix() -> str:
    """The curve that the default was chosen from: p99 as a multiple of that without a load, by batch and duty."""
    with seeded(SERVER) as server:
        loads = {f"{count} {duty}": own("scan", server.port, count, duty) for count in COUNTS for duty in DUTIES}
        results = measure(server, loads, max(3, ROUNDS // 2), CURVE_WINDOW_S)
    lines = [
        f"Another client's p99 ({SERVER}) as a multiple of its p99 without a scan, by COUNT and share of the time:",
        "",
        f"| COUNT | {' | '.join(f'{duty:.0%}' for duty in DUTIES)} |",
        f"|---|{'---|' * len(DUTIES)}",
    ]
    for count in COUNTS:
        cells = " | ".join(f"{ratio(results[f'{count} {duty}']):.2f}" for duty in DUTIES)
        lines.append(f"| {count:,} | {cells} |")
    return "\n".join(lines)
