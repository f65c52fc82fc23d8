"""What the namespace store costs: CPU time and bytes a key, and how long it takes, and holds, to list wide namespaces.

Run `python -m tests.bench.store`. Times are of this process's CPU, so that other work on the machine says little.
"""

from __future__ import annotations

import gc
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import process_time

from rtui.keyspace.rows.ordering import Sort
from rtui.keyspace.rows.rows import VisibleRows
from rtui.keyspace.slices import Slices
from rtui.keyspace.store.filtered import FilteredStore
from rtui.keyspace.store.store import NamespaceStore
from tests.bench.row import Row, in_ms

KEYS = 1_000_000
"""Keys in each case."""

BATCH = 500
"""Keys in a batch, about what a few pages of SCAN bring."""

RUNS = 3
"""How often keys are added."""

ODD = 2_654_435_761
"""Multiplied with consecutive numbers modulo 2^32, gives each another one, all over the place."""


@dataclass(frozen=True, slots=True)
class Work:
    """What sliced work took, in seconds of CPU."""

    total_s: float
    longest_s: float

    def __str__(self) -> str:
        return f"{self.total_s:8.3f} s, longest slice {self.longest_s * 1000:5.1f} ms"


def main() -> None:
    """Print one line a figure."""
    gc.disable()
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
    for what, listed in (("keys", leaves()), ("namespaces", ids())):
        work = drive(listed.expand(listed.row(0).namespace), listed)
        longest = f"longest slice {in_ms(work.longest_s)}"
        goal, met = ("≤ 500 ms", work.total_s <= 0.5) if what == "keys" else ("longest ≤ 10 ms", work.longest_s <= 0.01)
        yield Row(
            f"store: list 1,000,000 {what} of one namespace", f"{in_ms(work.total_s)}, {longest}", "", "", goal, met
        )


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
