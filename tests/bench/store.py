"""What the namespace store costs: CPU time and bytes a key, and how long it takes, and holds, to list wide namespaces.

Run `python -m tests.bench.store`. Times are of this process's CPU, so that other work on the machine says little.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from time import process_time
from typing import TypeVar

from rtui.keyspace.filtered import Filtered
from rtui.keyspace.ordering import Sort
from rtui.keyspace.rows import VisibleRows
from rtui.keyspace.slices import Slices, finish
from rtui.keyspace.store import NamespaceStore

T = TypeVar("T")

KEYS = 1_000_000
"""Keys in each case."""

BATCH = 500
"""Keys in a batch, about a page of SCAN at the pace `normal`."""


def main() -> None:
    """Print one line a figure."""
    gc.disable()
    print(f"{'what':<46} {'CPU s':>8} {'longest slice ms':>17} {'rows':>10}")
    browse()
    leaves()
    ids()


def report(what: str, seconds: float, longest: float | None = None, rows: int | None = None) -> None:
    """Print one line."""
    held = "" if longest is None else f"{longest * 1000:.1f}"
    print(f"{what:<46} {seconds:8.3f} {held:>17} {'' if rows is None else rows:>10}", flush=True)


def resident_bytes() -> int:
    """The memory of this process, 0 where the system does not tell."""
    try:
        with open("/proc/self/statm") as statm:  # noqa: PTH123 - a pseudo-file
            return int(statm.read().split()[1]) * 4096
    except OSError:
        return 0


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


def timed(what: str, work: Slices[T], rows: VisibleRows | None = None) -> T:
    """Drive sliced work as a screen does, and print what it took."""
    total = longest = 0.0
    while True:
        start = process_time()
        try:
            next(work)
        except StopIteration as end:
            longest = max(longest, process_time() - start)
            report(what, total + process_time() - start, longest, None if rows is None else len(rows))
            return end.value  # type: ignore[no-any-return]
        if rows is not None:
            rows.refresh()
        taken = process_time() - start
        total, longest = total + taken, max(longest, taken)


def browse() -> None:
    """Keys of 28 bytes in a handful of namespaces, as a scan delivers them."""
    before = resident_bytes()
    store = NamespaceStore()
    names = [b"shop:user", b"shop:cart", b"shop:item", b"lock:jobs", b"rate:logs"]
    keys = (b"%s:%08x:profile.v1"[:28] % (names[number % 5], number * 2654435761 % 2**32) for number in range(KEYS))
    seconds = fill(store, keys)
    report("add, 28-byte keys, 3 namespaces", seconds)
    per_key = (resident_bytes() - before) / KEYS
    print(f"  {seconds / KEYS * 1e6:.2f} µs/key, {per_key:.1f} bytes/key resident, {store.held_bytes / KEYS:.1f} held")
    rows = VisibleRows(store)
    rows.refresh()
    shop = rows.row(0).namespace
    timed("expand 600,000 keys in 3 namespaces", rows.expand(shop), rows)
    timed("filter 1,000,000 keys: 1 in 256 match", Filtered(store, b"ab:").work())
    store.repeats_possible = True
    timed("look for repeats in 1,000,000 keys", store.settle())


def leaves() -> None:
    """A million keys directly in one namespace."""
    store = NamespaceStore()
    fill(store, (b"cache:%022x" % (number * 2654435761 % 2**32) for number in range(KEYS)))
    rows = VisibleRows(store)
    rows.refresh()
    cache = rows.row(0).namespace
    before = resident_bytes()
    timed("expand 1,000,000 keys of one namespace", rows.expand(cache), rows)
    timed("jump to a name", rows.find_sibling(rows.row(1), b"%022x" % (999_999 * 2654435761 % 2**32)))
    timed("sort them by name", rows.sort(Sort.NAME), rows)
    print(f"  {(resident_bytes() - before) / KEYS:.1f} bytes/key more resident")
    start = process_time()
    for index in range(0, len(rows), 1000):
        assert rows.index_of(rows.row(index)) == index
    report("row and index_of, 1,000 times", process_time() - start)


def ids() -> None:
    """A million namespaces of one key each in one namespace."""
    store = NamespaceStore()
    fill(store, (b"session:%08x:data" % (number * 2654435761 % 2**32) for number in range(KEYS)))
    rows = VisibleRows(store)
    rows.refresh()
    session = rows.row(0).namespace
    before = resident_bytes()
    timed("expand 1,000,000 namespaces of one key", rows.expand(session), rows)
    print(f"  {(resident_bytes() - before) / KEYS:.1f} bytes/key more resident")
    timed("sort them by name", rows.sort(Sort.NAME), rows)
    seconds = fill(store, (b"session:%08x:data" % (number * 40503 % 2**32) for number in range(100_000)))
    report("add 100,000 keys to it while it is listed", seconds)
    timed("open all below, as far as rows are listed", rows.expand_all(session), rows)
    finish(rows.sort(Sort.COUNT))


if __name__ == "__main__":
    main()
