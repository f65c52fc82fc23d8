"""Another client: an open-loop probe of GETs at a fixed rate, in a process of its own.

`python -m tests.bench.probe PORT SECONDS` prints the latencies in µs as one JSON list. Open loop: each request has its
moment, whether or not the one before was answered, and its latency counts from that moment.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import select
import socket
import subprocess
import sys
import time
from array import array
from dataclasses import dataclass

RATE_PER_S = 1_000
"""Requests a second."""

REQUEST = b"*2\r\n$3\r\nGET\r\n$5\r\nprobe\r\n"
"""What is asked; the key need not be there."""

REPLY_END = b"\r\n"
"""A missing key is answered with `$-1` and this."""

BLOCKED_S = 0.001
"""How long to listen before the next attempt, when the server takes nothing more."""

TIMER_SLACK_NS = 1
"""How late the kernel may wake the probe, where it may not run in real time."""


@dataclass(frozen=True, slots=True)
class Latencies:
    """Percentiles of one window, in µs."""

    p50: float
    p99: float
    p999: float

    @classmethod
    def of(cls, values: list[float]) -> Latencies:
        """From single latencies in µs."""
        ordered = sorted(values)

        def at(share: float) -> float:
            return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

        return cls(at(0.5), at(0.99), at(0.999))


def probe(port: int, seconds: float) -> list[float]:
    """Latencies in µs of all requests of a window."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setblocking(False)
        count = int(seconds * RATE_PER_S)
        latencies = array("d", bytes(8 * count))
        sent = answered = 0
        rest = b""
        start = time.perf_counter() + 0.01
        while answered < count:
            due = start + sent / RATE_PER_S if sent < count else float("inf")
            wait = due - time.perf_counter()
            if wait <= 0:
                with contextlib.suppress(BlockingIOError):
                    sent += connection.send(REQUEST) > 0
                    continue
                wait = BLOCKED_S
            ready, _, _ = select.select([connection], [], [], None if sent == count else wait)
            if ready:
                data = rest + connection.recv(65_536)
                now = time.perf_counter()
                replies = data.count(REPLY_END)
                rest = data[data.rfind(REPLY_END) + 2 :] if replies else data
                for number in range(answered, answered + replies):
                    latencies[number] = (now - start - number / RATE_PER_S) * 1e6
                answered += replies
        return latencies.tolist()


def probe_apart(port: int, seconds: float, cpus: set[int]) -> Latencies:
    """The percentiles of a window, measured by a process of its own on some of the processors."""
    command = [sys.executable, "-m", "tests.bench.probe", str(port), str(seconds), *map(str, cpus)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    return Latencies.of(json.loads(done.stdout))


def _prefer_me() -> None:
    """Run before everything else on the machine, if that is permitted, and wake on time."""
    gc.disable()
    with contextlib.suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
    if sys.platform == "linux":
        set_timer_slack = 29
        ctypes.CDLL(None).prctl(set_timer_slack, TIMER_SLACK_NS)


if __name__ == "__main__":
    _prefer_me()
    os.sched_setaffinity(0, map(int, sys.argv[3:]))
    print(json.dumps([round(value, 1) for value in probe(int(sys.argv[1]), float(sys.argv[2]))]))
