"""Feeds the engine of a scan with replies that were changed on the way: `python -m tests.server.engine.fuzz SECONDS`.

Replies of a model server are truncated, repeated, joined with others and changed byte by byte, in pieces of any length;
after each event the engine goes on or loses its connection. Whatever comes, it must not crash, each of its writes must
be made of requests that the closed list admits, and what it says of itself must hold together. Meant to be run with the
engine built for sanitizers: `make sanitize`.
"""

from __future__ import annotations

import sys
import time
from random import Random, SystemRandom
from typing import Final

from rtui.analysis.columns import EVERYTHING, SAMPLED_COLUMNS
from rtui.keyspace.slices import finish
from rtui.keyspace.slots import SLOTS
from rtui.server.engine._slot_filter import SlotFilter
from rtui.server.scan.compiled_scan import Event
from rtui.server.scan.cursor import Dialect, equal_ranges
from rtui.server.scan.ranges import CursorSpan, Ranges
from rtui.server.scan.slot_ledger import ACCEPT, ACCEPT_NEW, DROP
from rtui.server.wire.errors import RtuiError
from tests.server.engine.model_server import (
    REGISTRY,
    STARTED_S,
    Answers,
    CompiledRun,
    ModelServer,
    Setting,
    ask,
    findings_of,
    page,
)

TOKENS: Final = (
    *(b"\r\n", b"\n", b"\r", b"$", b"*", b":", b"+", b"-", b"_", b"%", b"~", b">", b"!", b"=", b"(", b",", b"#", b"|"),
    *(
        b"0", b"-1", b"9223372036854775807", b"9223372036854775808", b"18446744073709551615", b"536870912",
        b"1073741824",
    ),
    *(b"*1073741824\r\n", b"$536870912\r\n", b"*0\r\n", b"$-1\r\n", b":-2\r\n", b"+none\r\n", b"+string\r\n", b"_\r\n"),
    *(b">2\r\n+a\r\n+b\r\n", b"-LOADING x\r\n", b"-NOPERM x\r\n", b"-WRONGTYPE x\r\n", b"-ERR no such key\r\n"),
    *(b"-MOVED 1 :0\r\n", b"-ASK 1 :0\r\n", b"-CLUSTERDOWN Hash slot not served\r\n"),
    *(page(b"0", [b"{a}:1", b"", b"x" * 70_000]), page(b"1", [b"y"] * 300), page(b"9" * 19, [])),
)  # fmt: skip
STEPS: Final = 60
"""Pieces that are fed to one engine."""


def mutated(replies: bytes, rng: Random) -> bytes:
    """The same bytes with some changes, or none."""
    found = bytearray(replies)
    for _ in range(rng.choice((0, 0, 0, 1, 1, 2, 8))):
        at, end = sorted(rng.randint(0, len(found)) for _ in range(2))
        match rng.randrange(6):
            case 0:
                found[at : at + rng.randrange(4)] = rng.choice(TOKENS)
            case 1:
                del found[at : min(end, at + 40)]
            case 2:
                found[at:at] = found[at : min(end, at + 500)]
            case 3 if at < len(found):
                found[at] ^= 1 << rng.randrange(8)
            case 4:
                del found[at:]
            case 5:
                found[at:at] = rng.randbytes(rng.randrange(8))
    return bytes(found)


def ranges_of(rng: Random) -> Ranges:
    dialect = rng.choice((Dialect.OPAQUE, Dialect.STANDALONE, Dialect.SLOTTED))
    if dialect is Dialect.STANDALONE:
        return Ranges(dialect, [CursorSpan(start, end) for start, end in equal_ranges(rng.choice((1, 2, 8)))])
    return Ranges(dialect)


def disturb(run: CompiledRun, key_filter: SlotFilter, rng: Random) -> None:
    """Do what happens to a cluster's node: slots come and go, another pass begins, keys are asked about elsewhere."""
    slots = rng.sample(range(SLOTS), rng.choice((1, 100, SLOTS)))
    match rng.randrange(8):
        case 0:
            key_filter.set_slots(slots, rng.choice((DROP, ACCEPT, ACCEPT_NEW)))
        case 1:
            key_filter.set_slots(slots, ACCEPT_NEW)
            key_filter.know(key_filter.take(slots))
        case 2:
            key_filter.forget(slots)
        case 3 if not run.engine.is_awaiting:
            run.ranges = ranges_of(rng)
            run.engine.use_ranges(run.ranges)
        case 4 if not run.engine.is_awaiting:
            run.engine.take_waiting()


def fuzz(seed: int) -> None:
    rng = Random(seed)
    setting = Setting(
        columns=rng.choice((EVERYTHING, SAMPLED_COLUMNS)),
        top=rng.choice((0, 1, 100)),
        count=rng.choice((1, 10, 1000)),
        depth=rng.randint(1, 20),
        own_reads=frozenset((b"{a}:1", b"y")),
        registry=rng.choice((None, REGISTRY)),
    )
    pages = [[rng.randbytes(rng.randrange(40)) for _ in range(rng.randrange(60))] for _ in range(rng.randint(1, 6))]
    answers = Answers(seed, frozenset(("gone", "odd", "large")), rng.choice((2, 3)))
    server = ModelServer(pages, answers, scan=lambda cursor, _: (rng.getrandbits(64), pages[cursor % len(pages)]))
    key_filter, elsewhere = SlotFilter(rng.choice((0, 10, 10_000))), list[bytes]()
    key_filter.set_slots(range(SLOTS), ACCEPT)
    run = CompiledRun(setting, server, rng, ranges_of(rng), key_filter=key_filter, elsewhere=elsewhere)
    engine, incoming = run.engine, b""
    for _ in range(STEPS):
        run.queries.prepare()
        engine.set_pace(
            count=setting.count,
            portion=setting.count,
            most_under_way=setting.count * setting.depth,
            width=8,
            key_gap_us=0,
            idle_us=0,
        )
        while write := engine.next_write():
            incoming += mutated(ask(server, write)[0], rng)
        size = rng.choice((1, 100, 10**6))
        piece, incoming = incoming[:size], incoming[size:]
        try:
            event = engine.feed(piece, at_ms=int(STARTED_S * 1000))
        except RtuiError:
            event = engine.event
            assert event
        if event:
            assert isinstance(engine.odd_reply(), bytes)
            if rng.random() < 0.5:
                engine.resume()
            else:
                engine.drop()
                incoming = b""
        if event == Event.NOT_IN_ORDER:
            break  # the ranges can't go on
        if rng.random() < 0.3:
            run.take()
            disturb(run, key_filter, rng)
    run.take()
    _check(run)


def _check(run: CompiledRun) -> None:
    """Fail unless what the engine says holds together."""
    findings, (commands, answered, _, listed, delivered, keys, *_) = findings_of(run.pipeline), run.engine.progress()
    assert answered <= commands
    assert keys <= delivered <= listed
    summary = finish(findings.summary())
    assert sum(summary.slots.keys) == summary.root.stats.keys


def main(seconds: float, seed: int) -> None:
    until, count = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        try:
            fuzz(seed + count)
        except BaseException:
            sys.stderr.write(f"failed with seed {seed + count}\n")
            raise
        count += 1
    sys.stdout.write(f"{count:,} streams, from seed {seed}\n")


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else SystemRandom().getrandbits(32))
