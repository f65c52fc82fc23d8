"""What the namespace store costs: CPU time and bytes a key, and how long it takes, and holds, to list wide namespaces.

Where the engine was built, keys of three keyspaces come split and packed, too, beside what hiredis needs for their
pages alone: names of the grammar with a fresh seed, flat names, and namespaces of one key each.

Run `python -m tests.bench.store [SEED]`. Times are of this process's CPU, so that other work on the machine says
little.
"""

from __future__ import annotations

import gc
import statistics
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random, SystemRandom
from time import process_time

import hiredis

from rtui.keyspace.rows.ordering import Sort
from rtui.keyspace.rows.rows import VisibleRows
from rtui.keyspace.slices import Slices
from rtui.keyspace.store.filtered import FilteredStore
from rtui.keyspace.store.store import NamespaceStore
from rtui.server.engine import is_built
from tests.bench.row import Row, in_ms
from tests.grammar import Grammar

KEYS = 1_000_000
"""Keys in each case."""

BATCH = 500
"""Keys in a batch, about what a few pages of SCAN bring."""

RUNS = 3
"""How often keys are added."""

SPLIT_KEYS = 300_000
"""Keys in a keyspace that comes split."""

PAGE = 1000
"""Keys in a page of SCAN."""

DRAINED = 20_000
"""Keys that are drained at once: what comes in a tenth of a second or less."""

ODD = 2_654_435_761
"""Multiplied with consecutive numbers modulo 2^32, gives each another one, all over the place."""


@dataclass(frozen=True, slots=True)
class Work:
    """What sliced work took, in seconds of CPU."""

    total_s: float
    longest_s: float

    def __str__(self) -> str:
        return f"{self.total_s:8.3f} s, longest slice {self.longest_s * 1000:5.1f} ms"


@dataclass(frozen=True, slots=True)
class Costs:
    """What the ways of keeping keys cost, in seconds of CPU a key."""

    added_s: float
    """`NamespaceStore.add`."""
    split_s: float
    """Splitting, draining, and `NamespaceStore.add_split`."""
    parsed_s: float
    """Parsing the pages with hiredis, which makes an object of each key."""
    longest_s: float
    """The longest time in one go of draining and adding."""

    def __str__(self) -> str:
        return (
            f"added {in_us(self.added_s)}, split {in_us(self.split_s)}, hiredis alone {in_us(self.parsed_s)}, "
            f"longest {in_ms(self.longest_s)}"
        )


def main() -> None:
    """Print one line a figure."""
    gc.disable()
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else SystemRandom().getrandbits(32)
    if is_built():
        for what, keys in keyspaces(seed):
            say(f"{SPLIT_KEYS:,} {what}", costs(keys))
    seconds, size_bytes, store = browsed()
    say("add 1,000,000 keys of 28 bytes", f"{seconds:8.3f} s, {size_bytes / KEYS:.1f} bytes a key resident")
    rows = VisibleRows(store)
    say("expand 600,000 of them", drive(rows.expand(rows.row(0).namespace), rows))
    say("filter them, 1 in 256 matches", drive(FilteredStore(store, b"ab:").work()))
    store.repeats_possible = True
    say("look for repeats among them", drive(store.settle()))
    rows = leaves()
    cache = rows.row(0).namespace
    say("expand 1,000,000 keys of one namespace", drive(rows.expand(cache), rows))
    say("jump to the last of them", drive(rows.find_sibling(rows.row(1), leaf(KEYS - 1))))
    say("sort them by name", drive(rows.sort(Sort.NAME), rows))
    rows = ids()
    before = resident_bytes()
    session = rows.row(0).namespace
    say("expand 1,000,000 namespaces of one key", drive(rows.expand(session), rows))
    say("  for which it holds, besides their suffixes", f"{(resident_bytes() - before) / KEYS:8.1f} bytes a key")
    say("sort them by name", drive(rows.sort(Sort.NAME), rows))
    seconds = fill(session_store := rows.store, (b"session:%08x:data" % (2**31 + number) for number in range(100_000)))
    say("add 100,000 keys to them", f"{seconds:8.3f} s, {session_store.keys} keys")


def rows() -> Iterator[Row]:
    """What the store is to reach."""
    gc.disable()
    runs = [browsed()[:2] for _ in range(RUNS)]
    seconds = statistics.median(seconds for seconds, _ in runs)
    size_mb = statistics.median(size_bytes for _, size_bytes in runs) / 1e6
    yield Row("store: add 1,000,000 keys of 28 bytes", in_ms(seconds), "", "", "≤ 450 ms", seconds <= 0.45)
    yield Row("store: memory of them", f"{size_mb:.0f} MB", "", "", "≤ 32 MB", size_mb <= 32)
    if is_built():
        what, keys = next(keyspaces(SystemRandom().getrandbits(32)))
        runs_of_it = [costs(keys) for _ in range(RUNS)]
        split, added, parsed = (
            statistics.median(getattr(one, name) for one in runs_of_it) for name in ("split_s", "added_s", "parsed_s")
        )
        beside, ratio = f"from a list: {in_us(added)}; hiredis alone: {in_us(parsed)}", f"{added / split:.1f} ×"
        yield Row(f"store: {what}, compiled", f"{in_us(split)} a key", beside, ratio, "≤ 0.4 µs", split <= 0.4e-6)
    for what, listed in (("keys", leaves()), ("namespaces", ids())):
        work = drive(listed.expand(listed.row(0).namespace), listed)
        longest = f"longest slice {in_ms(work.longest_s)}"
        goal, met = ("≤ 500 ms", work.total_s <= 0.5) if what == "keys" else ("longest ≤ 10 ms", work.longest_s <= 0.01)
        yield Row(
            f"store: list 1,000,000 {what} of one namespace", f"{in_ms(work.total_s)}, {longest}", "", "", goal, met
        )


def keyspaces(seed: int) -> Iterator[tuple[str, list[bytes]]]:
    """Keys in the order of no keyspace, and what they are."""
    random = Random(seed)
    drawn = {write[1] for write in Grammar(seed).writes(SPLIT_KEYS) if isinstance(write[1], bytes)}
    flat = {b"user%d" % random.getrandbits(40) for _ in range(SPLIT_KEYS)}
    one_key = {b"%x:state" % random.getrandbits(40) for _ in range(SPLIT_KEYS)}
    for what, keys in ((f"keys of grammar {seed}", drawn), ("flat names", flat), ("namespaces of one key", one_key)):
        yield what, random.sample(sorted(keys), len(keys))


def costs(keys: list[bytes]) -> Costs:
    """What each way of keeping these keys costs."""
    from rtui.server.engine._name_table import NameTable

    pages = [keys[start : start + PAGE] for start in range(0, len(keys), PAGE)]
    replies = [b"*2\r\n$1\r\n0\r\n*%d\r\n" % len(page) + b"".join(map(bulk, page)) for page in pages]
    added, split, table, reader = NamespaceStore(), NamespaceStore(), NameTable((b":",)), hiredis.Reader()
    added_s = split_s = parsed_s = longest_s = 0.0
    for number, reply in enumerate(replies, 1):
        start = process_time()
        reader.feed(reply)
        page: list[bytes] = reader.gets()[1]
        parsed = process_time()
        added.add(page)
        parsed_s, added_s = parsed_s + parsed - start, added_s + process_time() - parsed
        start = process_time()
        table.add(page)
        split_s += process_time() - start
        if number * PAGE % DRAINED == 0 or number == len(replies):
            table.swap()
            more = True
            while more:
                start = process_time()
                part = table.drain()
                if more := part is not None:
                    split.add_split(part)
                taken = process_time() - start
                split_s, longest_s = split_s + taken, max(longest_s, taken)
    assert (split.keys, split.memory.held_bytes) == (added.keys, added.memory.held_bytes)
    return Costs(added_s / len(keys), split_s / len(keys), parsed_s / len(keys), longest_s)


def bulk(name: bytes) -> bytes:
    """A bulk string of RESP."""
    return b"$%d\r\n%b\r\n" % (len(name), name)


def in_us(seconds: float) -> str:
    """A time a key, as text."""
    return f"{seconds * 1e6:.2f} µs"


def say(what: str, figures: object) -> None:
    """Print one line."""
    print(f"{what:<48} {figures}", flush=True)


def resident_bytes() -> int:
    """The memory of this process, 0 where the system does not tell."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * 4096 if statm.exists() else 0


def batches(keys: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Cut keys into batches."""
    batch: list[bytes] = []
    for key in keys:
        batch.append(key)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def fill(store: NamespaceStore, keys: Iterable[bytes]) -> float:
    """Add all keys; returns the CPU seconds that took, without making the keys."""
    seconds = 0.0
    for batch in batches(keys):
        start = process_time()
        store.add(batch)
        seconds += process_time() - start
    return seconds


def drive(work: Slices[object], listed: VisibleRows | None = None) -> Work:
    """Drive sliced work as a screen does, with a refresh after each slice."""
    total = longest = 0.0
    for_more = True
    while for_more:
        start = process_time()
        try:
            next(work)
        except StopIteration:
            for_more = False
        if listed is not None:
            listed.refresh()
        taken = process_time() - start
        total, longest = total + taken, max(longest, taken)
    return Work(total, longest)


def browsed() -> tuple[float, int, NamespaceStore]:
    """Keys of 28 bytes in five namespaces of three, as a scan delivers them: (CPU seconds, bytes resident, store)."""
    before = resident_bytes()
    store = NamespaceStore()
    names = [b"shop:user", b"shop:cart", b"shop:item", b"lock:jobs", b"rate:logs"]
    keys = (b"%s:%08x:profile01" % (names[number % 5], number * ODD % 2**32) for number in range(KEYS))
    seconds = fill(store, keys)
    return seconds, resident_bytes() - before, store


def leaf(number: int) -> bytes:
    """The name of one of a million keys."""
    return b"%022x" % (number * ODD % 2**32)


def leaves() -> VisibleRows:
    """A million keys directly in one namespace, of 28 bytes each."""
    store = NamespaceStore()
    fill(store, (b"cache:" + leaf(number) for number in range(KEYS)))
    return VisibleRows(store)


def ids() -> VisibleRows:
    """A million namespaces of one key each in one namespace."""
    store = NamespaceStore()
    fill(store, (b"session:%08x:data" % (number * ODD % 2**32) for number in range(KEYS)))
    return VisibleRows(store)


if __name__ == "__main__":
    main()
