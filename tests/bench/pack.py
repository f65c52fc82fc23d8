"""How fast the batch packer is against hiredis packing each command: `python -m tests.bench.pack`."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import hiredis

from rtui.server import guard
from rtui.server.guard import Command, each
from rtui.server.guard.batch import PerKey

KEYS = [b"shop:session:%09d:datum" % number for number in range(1000)]
"""A page of keys of 28 bytes."""

MIXED = [b"shop:user:%d:%b" % (number * 7919, b"x" * (number % 40)) for number in range(1000)]
"""A page of keys of 50 lengths."""

ROUNDS = 41
"""Measurements of each, taken in turns; the median counts."""


def by_hiredis(builds: list[PerKey], keys: list[bytes]) -> bytes:
    """What a client without a batch packer does."""
    words = [build.spec.words for build in builds]
    pack: Callable[[tuple[bytes, ...]], bytes] = hiredis.pack_command  # type: ignore[assignment]  # it takes any length
    return b"".join([pack((*word, key)) for key in keys for word in words])


def commands_per_s(
    pack: Callable[[list[PerKey], list[bytes]], bytes | Command], builds: list[PerKey], keys: list[bytes]
) -> float:
    """One measurement."""
    start = time.perf_counter()
    pack(builds, keys)
    return len(builds) * len(keys) / (time.perf_counter() - start)


def main() -> None:
    """Print a line a case: commands a second of both and the ratio."""
    cases = {
        "TYPE, one length": ([guard.key_type], KEYS),
        "TYPE, many lengths": ([guard.key_type], MIXED),
        "TYPE PTTL MEMORY USAGE": ([guard.key_type, guard.pttl, guard.memory_usage], MIXED),
        "… and OBJECT IDLETIME, STRLEN": (
            [guard.key_type, guard.pttl, guard.memory_usage, guard.object_idletime, guard.strlen],
            MIXED,
        ),
    }
    print(f"{'M commands/s':32} {'each':>8} {'hiredis':>8} {'ratio':>8}")
    for name, (builds, keys) in cases.items():
        ours, theirs = [], []
        for _ in range(ROUNDS):
            ours.append(commands_per_s(each, builds, keys))
            theirs.append(commands_per_s(by_hiredis, builds, keys))
        fast, slow = statistics.median(ours), statistics.median(theirs)
        print(f"{name:32} {fast / 1e6:8.2f} {slow / 1e6:8.2f} {fast / slow:8.1f}")


if __name__ == "__main__":
    main()
