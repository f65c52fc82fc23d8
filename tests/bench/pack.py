"""How fast the batch packer is against hiredis packing each command: `python -m tests.bench.run pack`."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Final

import hiredis

from rtui.server import guard
from rtui.server.guard.command import Command, KeyCommand, build_batch
from rtui.server.guard.evidence import TypeEvidence
from tests.bench.row import Row

KEYS = [b"shop:session:%09d:datum" % number for number in range(1000)]
"""A page of keys of 28 bytes."""

MIXED = [b"shop:user:%d:%b" % (number * 7919, b"x" * (number % 40)) for number in range(1000)]
"""A page of keys of 50 lengths."""

STRINGS = TypeEvidence(b"string", "redis", (7, 0))
"""What is known of the keys."""

ROUNDS = 41
"""Measurements of each, taken in turns; the median counts."""


def by_hiredis(builds: list[KeyCommand], keys: list[bytes]) -> bytes:
    """What a client without a batch packer does."""
    words = [build.spec.words for build in builds]
    pack: Callable[[tuple[bytes, ...]], bytes] = hiredis.pack_command  # type: ignore[assignment]  # it takes any length
    return b"".join([pack((*word, key)) for key in keys for word in words])


def packed(builds: list[KeyCommand], keys: list[bytes]) -> Command:
    """What rtui does."""
    return build_batch(builds, keys, STRINGS)


def commands_per_s(
    pack: Callable[[list[KeyCommand], list[bytes]], bytes | Command], builds: list[KeyCommand], keys: list[bytes]
) -> float:
    """One measurement."""
    start = time.perf_counter()
    pack(builds, keys)
    return len(builds) * len(keys) / (time.perf_counter() - start)


CASES: Final = {
    "TYPE, names of one length": ([guard.key_type], KEYS),
    "TYPE, names of many lengths": ([guard.key_type], MIXED),
    "TYPE, PTTL, MEMORY USAGE, OBJECT IDLETIME, STRLEN": (
        [guard.key_type, guard.pttl, guard.memory_usage, guard.object_idletime, guard.strlen],
        MIXED,
    ),
}
"""What is packed for each of so many keys."""


def rows() -> Iterator[Row]:
    """A row a case."""
    for name, (builds, keys) in CASES.items():
        ours, theirs = [], []
        for _ in range(ROUNDS):
            ours.append(commands_per_s(packed, builds, keys))
            theirs.append(commands_per_s(by_hiredis, builds, keys))
        fast, slow = statistics.median(ours), statistics.median(theirs)
        yield Row(
            f"packing {name}",
            f"{fast / 1e6:.1f} M commands/s",
            f"hiredis.pack_command: {slow / 1e6:.1f} M",
            f"{fast / slow:.1f} ×",
            "> 1 ×",
            fast > slow,
        )
