"""Matching names with 200 registered patterns, naming rules, a pass by both: `python -m tests.bench.run registry`.

Patterns and names are of the grammar with a fresh seed, once as a team has them that separates by a colon, once with
all the separators that occur. Figures are of the processor, a key, over pages as a scan returns them. A pass inspects a
server at full pace, with a registry of up to 200 of its patterns and without, by turns. RTUI_BENCH_SEED repeats a
keyspace; RTUI_BENCH_KEYS (200,000) is its size.
"""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from rtui.keyspace.text.segments import Separators
from rtui.registry.expectations import Expectations, read_ttl
from rtui.registry.forms import FORMS, Values
from rtui.registry.matching import NO_PATTERN, Matcher
from rtui.registry.naming import NamingConfig, NamingRules
from rtui.registry.patterns import Pattern, PatternError, read_pattern
from rtui.registry.registry import Entry, Registry
from rtui.registry.rules import RuleLevels
from rtui.registry.words import Glossary, Style
from rtui.server.analysis_run import AnalysisRun
from rtui.server.engine import engine_name, is_compiled
from rtui.server.options import AnalysisOptions
from rtui.server.scan.pace import Pace
from rtui.server.wire.connection import Connection
from rtui.server.wire.target import Target
from tests.bench.row import Row
from tests.grammar import Grammar
from tests.grammar import Pattern as Drawn
from tests.servers import Server, binaries, running

SEED = int(os.environ.get("RTUI_BENCH_SEED", str(random.getrandbits(32))))
KEYS = int(os.environ.get("RTUI_BENCH_KEYS", "200000"))
PATTERNS: Final = 200
PAGE: Final = 50
ROUNDS: Final = 5
GOAL_US: Final = 3.0
COMPILED_GOAL_US: Final = 1.0
PASS_GOAL_US: Final = 1.5
PURE_PASS_GOAL_US: Final = 5.0

_TYPED: Final = ("int", "uuid", "ulid", "date", "ip", "email", "hash", "hex")


ANY: Final = (-(1 << 63), (1 << 63) - 1)


def registered(drawn: Drawn, separators: Sequence[bytes], rng: random.Random) -> Pattern | None:
    """Return a pattern as a registry has it; None for one that it can't be written as."""
    text, values = "", {}
    for at, part in enumerate(drawn.parts):
        if isinstance(part, str):
            text += part.replace("{", "{{").replace("}", "}}")
            continue
        samples = [part(rng).encode() for _ in range(20)]
        form = next((one for one in _TYPED if all(_is_of(one, sample) for sample in samples)), "any")
        if form == "any" and any(separator in sample for sample in samples for separator in separators):
            form = "any-depth"
        values[f"p{at}"] = Values(FORMS[form])
        text += f"{{p{at}}}"
    try:
        return read_pattern(text, values, separators)
    except PatternError:
        return None


def _is_of(form: str, sample: bytes) -> bool:
    return read_pattern("{x}", {"x": Values(FORMS[form])}, ()).matches(sample)


def rows() -> Iterator[Row]:
    """Matching with each kind of separators, and the rules."""
    for title, chosen in (("`:`", (b":",)), ("`: . / | _ -`", (b":", b".", b"/", b"|", b"_", b"-"))):
        yield from _rows(title, Separators(chosen).values)
    yield from pass_rows()


def pass_rows() -> Iterator[Row]:
    """Inspecting a keyspace of few and of many patterns, with and without a registry."""
    for patterns in (50, 5_000):
        grammar = Grammar(SEED, patterns)
        registry = _registry(grammar)
        with running(binaries()["valkey-9.1"]) as server:
            client = server.client()
            names = [raw(write[1]) for write in grammar.writes(KEYS) if write[0] != "PEXPIRE"]
            for start in range(0, len(names), 1_000):
                client.mset(dict.fromkeys(names[start : start + 1_000], b"value"))
            runs = [(_inspected(server, None), _inspected(server, registry)) for _ in range(ROUNDS)]
        without_s, with_s = (statistics.median(one[at][0] for one in runs) for at in (0, 1))
        spent = statistics.median(after - before for (_, before), (_, after) in runs) / len(names) * 1e6
        here, beside = (f"{len(names) / one / 1000:.0f} k keys/s" for one in (with_s, without_s))
        engine = engine_name()
        goal = PASS_GOAL_US if engine == "compiled" else PURE_PASS_GOAL_US
        what = f"pass over {len(names):,} keys of {patterns:,} patterns by a registry, {engine}"
        beside = f"without {beside}, {spent:+.2f} µs of the processor a key"
        yield Row(what, here, beside, f"{without_s / with_s:.2f} ×", f"≤ {goal} µs a key", spent <= goal)


def raw(name: bytes | str | int) -> bytes:
    return name if isinstance(name, bytes) else str(name).encode()


def _registry(grammar: Grammar) -> Registry:
    separators = (b":",)
    read = (registered(one, separators, grammar.rng) for one in grammar.patterns)
    found = [pattern for pattern in read if pattern is not None][:PATTERNS]
    config = NamingConfig(separators=separators, styles=Style.CAMEL, glossary=Glossary([(b"usr", b"user")]))
    entries = tuple(Entry(pattern, Expectations(ttl=read_ttl("none|1h"))) for pattern in found)
    rules = NamingRules(config, found)
    return Registry(None, "bench", separators, entries, Matcher(found, separators), rules, RuleLevels())


def _inspected(server: Server, registry: Registry | None) -> tuple[float, float]:
    """Inspect all keys; return the seconds that it took, and those of this process's processor time."""

    async def run() -> None:
        connection = Connection(Target(port=server.port))
        await connection.open()
        analysis = AnalysisRun(connection, AnalysisOptions(pace=Pace.FULL, registry=registry))
        await analysis.run(reports_meanwhile=False)
        assert analysis.report is not None
        assert (analysis.report.summary.registry is None) == (registry is None)
        await connection.close()

    began, spent = time.perf_counter(), time.process_time()
    asyncio.run(run())
    return time.perf_counter() - began, time.process_time() - spent


def _rows(title: str, separators: tuple[bytes, ...]) -> Iterator[Row]:
    grammar = Grammar(SEED, PATTERNS)
    rng = grammar.rng
    read = (registered(one, separators, rng) for one in grammar.patterns)
    found = [pattern for pattern in read if pattern is not None]
    names = [rng.choice(grammar.patterns).name(rng) for _ in range(KEYS)]
    began = time.process_time()
    matcher = Matcher(found, separators)
    made_ms = (time.process_time() - began) * 1000
    share = 1 - matcher.match_page(names).count(NO_PATTERN) / KEYS
    what = f"{len(found)} patterns, separated by {title}, {share:.0%} of the keys match; made in {made_ms:.0f} ms"
    yield _row(f"{what} (seed {SEED})", names, matcher.match_page, goal=GOAL_US)
    config = NamingConfig(separators=separators, styles=Style.CAMEL, glossary=Glossary([(b"usr", b"user")]))
    rules = NamingRules(config, found)
    indices = dict(zip(names, matcher.match_page(names), strict=True))
    without = [NO_PATTERN] * PAGE
    yield _row(
        "all naming rules, keys with their patterns",
        names,
        lambda page: rules.of_page(page, [indices[name] for name in page]),
    )
    if is_compiled(separators):
        from rtui.server.engine._registry import RegistryTable

        table = RegistryTable(
            matcher.tables(), rules.tables(), [(ANY,) * 3] * (len(found) + 1), [False] * (len(found) + 1), 0, 0
        )
        yield _row("the same, compiled", names, lambda page: table.judge([*page]), goal=COMPILED_GOAL_US)
    yield _row("all naming rules, keys without patterns", names, lambda page: rules.of_page(page, without[: len(page)]))


def _row(
    what: str, names: Sequence[bytes], work: Callable[[Sequence[bytes]], object], goal: float | None = None
) -> Row:
    """Measure work on pages; each round has names that none before it had."""
    times = []
    for at in range(ROUNDS):
        own = names[at::ROUNDS]
        pages = [own[start : start + PAGE] for start in range(0, len(own), PAGE)]
        began = time.process_time()
        for page in pages:
            work(page)
        times.append((time.process_time() - began) / len(own) * 1e6)
    median = statistics.median(times)
    here = f"{median:.2f} µs a key ({min(times):.2f} … {max(times):.2f})"
    if goal is None:
        return Row(what, here)
    return Row(what, here, "", "", f"≤ {goal} µs", median <= goal)
