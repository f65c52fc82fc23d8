"""A brute-force count by an independent client, and what redis-cli finds out, read back into numbers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
import redis

from rtui.analysis.report.document import Report
from rtui.analysis.report.members import TTL_EDGES_S
from rtui.server.analysis.run import AnalysisRun
from rtui.server.options import AnalysisOptions
from rtui.server.scan.pace import Pace
from rtui.server.wire.target import Target
from tests.oracles.keyspaces import Path
from tests.server.every_type import LENGTHS
from tests.server.targets import connected
from tests.servers import Server


@dataclass(frozen=True, slots=True)
class Fact:
    """What the server tells of one key."""

    key: bytes
    kind: bytes
    ttl_ms: int
    memory_bytes: int
    length: int | None
    """None for a type without a command that tells it."""
    encoding: bytes


@dataclass(slots=True)
class Total:
    """What a set of keys adds up to."""

    keys: int = 0
    memory_bytes: int = 0
    no_ttl_keys: int = 0
    no_ttl_memory_bytes: int = 0
    ttl: list[int] = field(default_factory=lambda: [0] * (len(TTL_EDGES_S) + 1))
    types: Counter[bytes] = field(default_factory=Counter)
    sizes: list[int] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)

    def add(self, fact: Fact) -> None:
        self.keys += 1
        self.memory_bytes += fact.memory_bytes
        self.sizes.append(fact.memory_bytes)
        self.types[fact.kind] += 1
        if fact.length is not None:
            self.lengths.append(fact.length)
        if fact.ttl_ms < 0:
            self.no_ttl_keys += 1
            self.no_ttl_memory_bytes += fact.memory_bytes
        else:
            self.ttl[bisect_right(TTL_EDGES_S, fact.ttl_ms / 1000)] += 1


def facts(client: redis.Redis) -> dict[bytes, Fact]:
    """Ask everything of every key. Asking lengths counts as an access."""
    keys: Any = client.keys("*")
    kinds = _asked(client, [("TYPE", key) for key in keys])
    lives = _asked(client, [("PTTL", key) for key in keys])
    sizes = _asked(client, [("MEMORY", "USAGE", key) for key in keys])
    encodings = _asked(client, [("OBJECT", "ENCODING", key) for key in keys])
    counted = [(LENGTHS[kind], key) for key, kind in zip(keys, kinds, strict=True) if kind in LENGTHS]
    lengths = dict(zip([key for _, key in counted], _asked(client, counted), strict=True))
    return {
        key: Fact(key, kind, ttl, size, lengths.get(key), encoding)
        for key, kind, ttl, size, encoding in zip(keys, kinds, lives, sizes, encodings, strict=True)
    }


def _asked(client: redis.Redis, commands: Iterable[tuple[str | bytes, ...]]) -> list[Any]:
    pipeline = client.pipeline(transaction=False)
    for command in commands:
        pipeline.execute_command(*command)
    return pipeline.execute()


def by_namespace(found: Iterable[Fact], paths: Mapping[bytes, Path]) -> dict[Path, Total]:
    """The sum of every namespace at every level, the empty path being all keys."""
    totals: dict[Path, Total] = {(): Total()}
    for fact in found:
        path = paths[fact.key]
        for depth in range(len(path) + 1):
            totals.setdefault(path[:depth], Total()).add(fact)
    return totals


def by_type(found: Iterable[Fact]) -> dict[bytes, Total]:
    totals: dict[bytes, Total] = {}
    for fact in found:
        totals.setdefault(fact.kind, Total()).add(fact)
    return totals


async def report_on(target: Target, *, pace: Pace = Pace.FULL, **options: Any) -> Report:
    """Analyse once; `options` are those of the analysis."""
    async with connected(target) as connection:
        analysing = AnalysisRun(connection, AnalysisOptions(pace=pace, **options))
        await analysing.run()
    assert analysing.report is not None
    return analysing.report


PLURAL = re.compile(rb"^(\d+) (.+)s with (\d+) (.+?) \([\d.]+% of keys", re.MULTILINE)
"""`2 lists with 10 items (25.00% of keys, avg size 5.00)`"""

BIGGEST = re.compile(rb"""^Biggest +(\S+) found '?"(.*)"'? has (\d+) \S+$""", re.MULTILINE)
"""`Biggest   list found '"l1"' has 5 items`"""

HOT = re.compile(rb'^hot key found with counter: (\d+)\tkeyname: "(.*)"$', re.MULTILINE)

SAMPLED = re.compile(rb"^Sampled (\d+) keys in the keyspace!$", re.MULTILINE)

ESCAPED = re.compile(rb"\\(x[0-9a-f]{2}|.)", re.DOTALL)

NAMED = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"a": b"\a", b"b": b"\b"}


@dataclass(slots=True)
class Told:
    """What one analyser told."""

    keys: int
    biggest: dict[bytes, tuple[bytes, int]] = field(default_factory=dict)
    """By type, a key that no other one surpasses, and its size."""
    totals: dict[bytes, tuple[int, int]] = field(default_factory=dict)
    """By type, how many keys there are and the sum of their sizes."""
    hot: list[tuple[bytes, int]] = field(default_factory=list)
    """Keys and their counters, hottest first: 16 at most."""


def told(server: Server, analyser: str) -> Told:
    """Run `redis-cli --bigkeys`, `--memkeys` or `--hotkeys`."""
    program = shutil.which("redis-cli")
    if program is None:
        missing = "redis-cli is missing: the Debian package redis-tools has it, which redis-server brings"
        if os.environ.get("CI"):
            pytest.fail(missing, pytrace=False)
        pytest.skip(missing)
    ran = subprocess.run([program, "-s", server.socket, analyser], capture_output=True, check=True, timeout=60)
    output = ran.stdout
    sampled = SAMPLED.search(output)
    assert sampled is not None, output
    return Told(
        int(sampled[1]),
        {kind: (unescaped(key), int(size)) for kind, key, size in BIGGEST.findall(output)},
        {kind: (int(keys), int(total)) for keys, kind, total, _ in PLURAL.findall(output) if int(keys)},
        [(unescaped(key), int(counter)) for counter, key in HOT.findall(output)],
    )


def unescaped(text: bytes) -> bytes:
    """The bytes of a name as redis-cli quotes it."""

    def one(found: re.Match[bytes]) -> bytes:
        letter = found[1]
        return bytes.fromhex(letter[1:].decode()) if len(letter) == 3 else NAMED.get(letter, letter)

    return ESCAPED.sub(one, text)
