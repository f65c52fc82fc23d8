"""How fast everything is inspected over a link of 20 ms on one connection, beside a loop that keeps nothing.

`python -m tests.bench.run long_link`. The environment may set RTUI_BENCH_SERVER (valkey-9.1), RTUI_BENCH_KEYS
(400000), RTUI_BENCH_ROUNDS (3) and RTUI_BENCH_SEED (a fresh one). It needs a C compiler: the link and the loop are
programs in C, so that neither is what limits the rate.

The loop has two writes under way, of a thousand keys each: smaller ones would take it minutes, and these hold other
clients up for milliseconds. An analysis has as many small ones under way as the round trip needs.
"""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.bench.inspection import once as analysed_s
from tests.bench.peers import QUESTIONS, compiled, limit_loop
from tests.bench.row import Row
from tests.grammar import grown

SERVER = os.environ.get("RTUI_BENCH_SERVER", "valkey-9.1")
"""The version that is measured."""

KEYS = int(os.environ.get("RTUI_BENCH_KEYS", "400000"))

ROUNDS = int(os.environ.get("RTUI_BENCH_ROUNDS", "3"))
"""How often each is measured, in turns."""

SEED = int(os.environ.get("RTUI_BENCH_SEED") or random.randrange(1 << 32))
"""Of the keyspace."""

ONE_WAY_MS = 10
"""Half of the round trip."""

COUNT = 1_000
"""Keys of a page of the loop."""

GOAL = 100_000
"""Keys a second at normal pace."""

LFU = ("--maxmemory-policy", "allkeys-lfu")


@contextmanager
def long_link(port: int) -> Iterator[int]:
    """The port of a link to this one that adds the round trip; it serves as many connections as come."""
    command = [compiled("delay_link", "-pthread"), str(port), str(ONE_WAY_MS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as link:
        assert link.stdout is not None
        try:
            yield int(link.stdout.readline())
        finally:
            link.kill()


def looped_s(port: int) -> float:
    """Seconds of one pass of the loop."""
    command = [limit_loop(), str(port), str(COUNT), QUESTIONS.get(SERVER, "tpfmx")]
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return float(said.split()[1])


def rows() -> Iterator[Row]:
    """Normal and full pace, over the link and without it."""
    with grown(SERVER, KEYS, SEED, *LFU) as server, long_link(server.port) as link:
        found = {name: statistics.median(rates) for name, rates in measured(server.port, link).items()}
    what = (
        f"inspection of {KEYS:,} keys of the grammar (seed {SEED}) over a link of {2 * ONE_WAY_MS} ms, one connection"
    )
    for pace in ("normal", "full"):
        for peer in (f"{pace} without the link", "loop", "loop without the link"):
            times = found[pace] / found[peer]
            is_goal = pace == "normal" and peer == f"{pace} without the link"
            name = peer.replace("loop", f"loop in C, COUNT {COUNT}").replace(pace, f"rtui, {pace} pace")
            yield Row(
                f"{what}, {pace} pace ({SERVER})",
                f"{found[pace] / 1000:,.0f} k keys/s",
                f"{name}: {found[peer] / 1000:,.0f} k keys/s",
                f"{times:.2f} ×",
                f"≥ {GOAL // 1000} k keys/s" if is_goal else "",
                found[pace] >= GOAL if is_goal else None,
            )


def measured(near: int, far: int) -> dict[str, list[float]]:
    """Keys a second of each, round by round; `near` and `far` are the server's port and that of the link to it."""
    peers: dict[str, Callable[[], float]] = {}
    for where, port in (("", far), (" without the link", near)):
        for pace in ("normal", "full"):
            peers[f"{pace}{where}"] = lambda port=port, pace=pace: analysed_s("rtui", port, pace)  # type: ignore[misc]
        peers[f"loop{where}"] = lambda port=port: looped_s(port)  # type: ignore[misc]
    rates: dict[str, list[float]] = {name: [] for name in peers}
    for number in range(ROUNDS):
        for name, measure in peers.items():
            rates[name].append(KEYS / measure())
            print(f"  round {number + 1} of {ROUNDS}: {name}: {rates[name][-1]:,.0f} keys/s", file=sys.stderr)
    return rates
