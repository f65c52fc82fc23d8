"""What aggregating costs: CPU time a key with all columns, bytes held, and what a summary takes.

Run `python -m tests.bench.aggregates`. Times are of this process's CPU, so that other work on the machine says little.
"""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable, Iterator
from random import Random
from time import process_time

from rtui.analysis.aggregate.aggregates import Aggregates
from rtui.analysis.aggregate.pattern_counts import NewCounters, pure_counters
from rtui.analysis.aggregate.tally import InspectedBatch
from rtui.analysis.facts import NO_EXPIRY
from rtui.analysis.report.document import Scope
from rtui.keyspace.text.segments import Separators
from rtui.server.engine import is_built
from rtui.server.engine.counters import new_counters
from tests.bench.row import Row, in_ms
from tests.bench.seed import names
from tests.bench.store import resident_bytes
from tests.grammar import Grammar

STARTED_S = 1_790_000_000.0
"""When the made pass begins, in seconds since the epoch."""

PAGE = 500
"""Keys in a batch."""

ODD = 2_654_435_761
"""Multiplied with consecutive numbers modulo 2^32, gives each another one, all over the place."""

MIX = (
    (b"string", b"shop:session:%s:data", "uuid", 25),
    (b"hash", b"shop:user:%s:profile", "id", 15),
    (b"set", b"shop:user:%s:orders", "id", 10),
    (b"string", b"app:cache:user:detail:%s", "id", 20),
    (b"string", b"app:cache:prod:list:%s", "hash", 5),
    (b"string", b"app:rate:login:%s", "ip", 10),
    (b"list", b"queue:email:%s", "id", 5),
    (b"hash", b"{user:%s}:cart", "id", 5),
    (b"string", b"api:v2:token:%s", "id", 5),
)
"""Type, name, what fills its place, and how many of a hundred keys they are."""


def main() -> None:
    """Print a profile of the shapes."""
    for row in rows():
        print(f"{row.what:<60} {row.here:<40} {row.goal} {row.met}", flush=True)


def rows() -> Iterator[Row]:
    """What aggregating is to reach."""
    gc.disable()
    before = resident_bytes()
    sizes = []
    aggregates = fresh()
    for part in range(5):
        fill(aggregates, mix(1_000_000, part * 1_000_000))
        gc.collect()
        sizes.append((resident_bytes() - before) / 1e6)
    held = f"{sizes[0]:.0f} MB after 1,000,000 keys, {sizes[-1]:.0f} MB after 5,000,000"
    yield Row("aggregates: memory", held, "", "", "≤ 25 MB", sizes[-1] <= 25)
    for what, make in (("a shop, digits only", shop), ("a mix, a quarter uuids", mix)):
        runs = [added(make(200_000))[0] / 200_000 for _ in range(3)]
        each = statistics.median(runs)
        yield Row(f"aggregates: {what}, all columns", f"{each * 1e6:.2f} µs a key", "", "", "≤ 2.0 µs", each <= 2e-6)
    if is_built():
        batches = list(grammar(100_000))
        pure, compiled = (
            statistics.median(fill(fresh(counters), iter(batches)) / 100_000 for _ in range(3))
            for counters in (pure_counters, new_counters)
        )
        here, beside, ratio = f"{compiled * 1e6:.2f} µs a key", f"pure: {pure * 1e6:.2f} µs", f"{pure / compiled:.1f} ×"
        yield Row("aggregates: names of the grammar, compiled", here, beside, ratio, "≤ 2.0 µs", compiled <= 2e-6)
    for what, made in (("of the mix", aggregates), ("of 4,000 patterns", added(wide(200_000))[1])):
        total, longest = summarised(made)
        figures = f"{in_ms(total)}, longest slice {in_ms(longest)}"
        yield Row(f"aggregates: a summary {what}", figures, "", "", "≤ 60 ms", total <= 0.06)


def fresh(counters: NewCounters = pure_counters) -> Aggregates:
    """Aggregates of nothing yet."""
    return Aggregates(Separators(), scope=Scope(), started_at_s=STARTED_S, new_counters=counters)


def added(batches: Iterator[InspectedBatch]) -> tuple[float, Aggregates]:
    """Add to new aggregates: (CPU seconds, aggregates)."""
    aggregates = fresh()
    return fill(aggregates, batches), aggregates


def fill(aggregates: Aggregates, batches: Iterator[InspectedBatch]) -> float:
    """Add all batches; returns the CPU seconds that took, without making them."""
    seconds = 0.0
    for number, batch in enumerate(batches):
        start = process_time()
        aggregates.add(batch, STARTED_S + number / 100)
        seconds += process_time() - start
    return seconds


def summarised(aggregates: Aggregates) -> tuple[float, float]:
    """CPU seconds of a whole summary, and of its longest slice."""
    total = longest = 0.0
    slices = aggregates.summary()
    is_over = False
    while not is_over:
        start = process_time()
        try:
            elsewhere = next(slices)
            if elsewhere is not None:
                elsewhere()
        except StopIteration:
            is_over = True
        taken = process_time() - start
        total, longest = total + taken, max(longest, taken)
    return total, longest


def batch_of(kind: bytes, keys: list[bytes], random: Random) -> InspectedBatch:
    """A batch with all columns, spread as on a server that is in use."""
    number = random.random
    return InspectedBatch(
        kind,
        keys,
        ttl_ms=[NO_EXPIRY if number() < 0.3 else int(number() ** 3 * 604_800_000) for _ in keys],
        memory_bytes=[72 + 8 * int(number() ** 4 * 2_000) for _ in keys],
        idle_s=[int(number() ** 2 * 100_000) for _ in keys],
        lengths=[int(number() ** 4 * 16_000) for _ in keys],
    )


def grammar(keys: int) -> Iterator[InspectedBatch]:
    """Pages of a keyspace of the grammar, a batch for each type."""
    random, by_type = Random(3), dict[bytes, list[bytes]]()
    for command, name, *_ in Grammar(77).writes(keys):
        if isinstance(name, bytes) and command != "PEXPIRE":
            of_type = by_type.setdefault(str(command).encode(), [])
            of_type.append(name)
            if len(of_type) == PAGE:
                yield batch_of(str(command).encode(), of_type.copy(), random)
                of_type.clear()


def shop(keys: int) -> Iterator[InspectedBatch]:
    """The keyspace of the other measurements, in pages."""
    random = Random(1)
    for page in names(keys):
        for first in range(0, len(page), PAGE):
            yield batch_of(b"string", page[first : first + PAGE], random)


def mix(keys: int, start: int = 0) -> Iterator[InspectedBatch]:
    """Pages of mixed types, a batch for each type."""
    random = Random(2)
    shapes = [shape for shape in MIX for _ in range(shape[3])]
    shapes = [shapes[position * 37 % 100] for position in range(100)]
    for first in range(start, start + keys, PAGE):
        by_type: dict[bytes, list[bytes]] = {}
        for number in range(first, first + PAGE):
            kind, form, place, _ = shapes[number % 100]
            by_type.setdefault(kind, []).append(form % FILLED[place](number * ODD % 2**32))
        for kind, found in by_type.items():
            yield batch_of(kind, found, random)


def wide(keys: int) -> Iterator[InspectedBatch]:
    """As many patterns as are told apart: 60 namespaces of 60 of ids."""
    random = Random(3)
    letters = [bytes((97 + number // 26, 97 + number % 26)) for number in range(60)]
    for first in range(0, keys, PAGE):
        found = [
            b"%s:%s:%d" % (letters[number % 60], letters[number * 7 // 60 % 60], number)
            for number in range(first, first + PAGE)
        ]
        yield batch_of(b"string", found, random)


def _uuid(number: int) -> bytes:
    low = number * ODD % 2**48
    return b"%08x-%04x-4%03x-8%03x-%012x" % (number, low % 65536, number % 4096, low % 4096, low)


FILLED: dict[str, Callable[[int], bytes]] = {
    "id": lambda number: b"%d" % (number % 10_000_000),
    "uuid": _uuid,
    "hash": lambda number: b"%016x%016x" % (number * ODD, number),
    "ip": lambda number: b"10.%d.%d.%d" % (number >> 16 & 255, number >> 8 & 255, number & 255),
}
"""What fills the place of a name, by its form."""


if __name__ == "__main__":
    main()
