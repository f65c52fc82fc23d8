"""What redis-cli finds out with its analysers, read back into numbers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field

import pytest

from tests.servers import Server

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
