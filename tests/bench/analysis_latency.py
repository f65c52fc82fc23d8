"""What another client notices of an analysis at each pace, and of redis-cli's analysers, on several servers.

`python -m tests.bench.run analysis_latency`. The environment may set RTUI_BENCH_LATENCY_SERVERS, RTUI_BENCH_KEYS
(1000000), RTUI_BENCH_SEED (a fresh one; it is printed), RTUI_BENCH_ROUNDS (11) and RTUI_BENCH_WINDOW_S (2).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from tests.bench.latency import ROUNDS, WINDOW_S, load_rows, measure
from tests.bench.loads import again_and_again, own, redis_clis
from tests.bench.peers import KEYS, SEED
from tests.bench.row import Row
from tests.grammar import grown

SERVERS = os.environ.get("RTUI_BENCH_LATENCY_SERVERS", "redis-6.2 redis-7.0 redis-8.10 valkey-8.1 valkey-9.1").split()
"""The versions that are measured."""

GOALS = {"gentle": 1.1, "normal": 1.5, "full": 3.0}
"""How many times the p99 without a load that under an analysis may be, by pace."""


def conditions(port: int) -> dict[str, list[str]]:
    """Every load, as a command line."""
    cli = (redis_clis() or [["redis-cli"]])[-1]
    return {
        **{_name(pace): own("analysis", port, pace) for pace in GOALS},
        **{
            f"redis-cli {analyser}": again_and_again([*cli, "-p", str(port), analyser])
            for analyser in ("--bigkeys", "--memkeys")
        },
    }


def _name(pace: str) -> str:
    return f"rtui analysis, {pace}"


def rows() -> Iterator[Row]:
    """One row a server and load."""
    for name in SERVERS:
        print(f"  {name}, seed {SEED}", file=sys.stderr)
        with grown(name, KEYS, SEED) as server:
            results = measure(server, conditions(server.port), ROUNDS, WINDOW_S)
        yield from load_rows(results, name, {_name(pace): goal for pace, goal in GOALS.items()})
