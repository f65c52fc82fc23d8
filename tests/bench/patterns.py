"""The patterns that a table finds, on keyspaces whose true ones are known.

For 50, 300 and 5,000 patterns of the grammar and five fresh seeds each: the share of keys that stand in their true
pattern, and of patterns that hold keys of one true pattern only, both after folding for a report; and the CPU time of a
key among the second 100,000. A key stands in its true pattern where most keys of that one do, if most keys there are of
that one. Keys from the whole of the pass are looked at, one in ten: what came last is not yet merged with what is as
light.
The environment may set RTUI_BENCH_SEED (a fresh one, printed) and RTUI_BENCH_SEEDS (5).
"""

from __future__ import annotations

import os
import random
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from time import process_time
from typing import Final

import polars as pl

from rtui.keyspace.slices import Slicer, finish
from rtui.keyspace.text.identifiers import LONGEST, Identifiers, KeySegments, NodeKind
from rtui.keyspace.text.segments import Separators
from rtui.table.folding import ID, FoldedNode
from rtui.table.node_sums import counted_patterns
from rtui.table.partial import Partial
from rtui.table.pattern_nodes import REST
from rtui.table.patterns import Patterns
from rtui.table.schema import SCHEMA, names_of
from tests.bench import Row
from tests.grammar import Grammar

SEED = int(os.environ.get("RTUI_BENCH_SEED") or random.randrange(1 << 32))
SEEDS = int(os.environ.get("RTUI_BENCH_SEEDS", "5"))
CHUNK: Final = 100_000
KEYS: Final = 2 * CHUNK
JUDGED: Final = 20_000
"""Keys whose places are looked at, evenly from all."""

BUDGET: Final = 4_096
SEPARATORS: Final = Separators()


@dataclass(frozen=True, slots=True)
class Found:
    """How one keyspace came out."""

    right_keys: float
    pure_patterns: float


def rows() -> Iterable[Row]:
    for patterns, goal in ((50, 1.5), (300, 1.5), (5_000, 1.5)):
        table, cpu_us = list[Found](), list[float]()
        for seed in range(SEED, SEED + SEEDS):
            drawn = list(Grammar(seed, patterns).drawn(KEYS))
            names, true = [name for _, name in drawn], [id(pattern) for pattern, _ in drawn]
            root, cpu = of_table(names)
            cpu_us.append(cpu)
            step = len(names) // JUDGED
            table.append(judged(root, names[::step], true[::step]))
        of_seeds = f"{patterns:,} patterns of the grammar, {SEEDS} seeds from {SEED}"
        for what, values in (
            ("keys in their true pattern", [one.right_keys for one in table]),
            ("patterns of one true one", [one.pure_patterns for one in table]),
        ):
            yield Row(f"patterns: {what}, {of_seeds}", f"{statistics.mean(values):.1%}", f"least {min(values):.1%}")
        median = statistics.median(cpu_us)
        yield Row(f"patterns: CPU a key, {of_seeds}", f"{median:.2f} µs", "", "", f"≤ {goal} µs", median <= goal)


def of_table(names: Sequence[bytes]) -> tuple[FoldedNode, float]:
    """The root of the folded tree, and the microseconds that finding the pattern of a key takes."""
    found = Partial(Patterns(SEPARATORS), origin_min=0)
    cpu = 0.0
    for first in range(0, len(names), CHUNK):
        columns = names_of(names[first : first + CHUNK])
        missing = [pl.lit(None, kind).alias(name) for name, kind in SCHEMA.items() if name not in {"name", "raw"}]
        table = pl.DataFrame(columns).with_columns(missing).select(list(SCHEMA))
        start = process_time()
        nodes = found.patterns.place(table)
        cpu += process_time() - start if first else 0.0
        found.add_placed(table.with_columns(pl.lit(0).alias("asked_ms")), nodes.astype("int64"))
    root = finish(counted_patterns(found, BUDGET, Slicer())).root
    return root, cpu / (len(names) - CHUNK) * 1e6


def judged(root: FoldedNode, names: Sequence[bytes], true: Sequence[int]) -> Found:
    """Compare the nodes of keys with their true patterns."""
    segments, identifiers = KeySegments(SEPARATORS), Identifiers(SEPARATORS.values)
    nodes = [id(node_of(root, name, segments, identifiers)) for name in names]
    pairs = Counter(zip(nodes, true, strict=True))
    most_of_true, most_of_node = dict[int, tuple[int, int]](), dict[int, tuple[int, int]]()
    for (node, pattern), keys in pairs.items():
        most_of_true[pattern] = max(most_of_true.get(pattern, (0, 0)), (keys, node))
        most_of_node[node] = max(most_of_node.get(node, (0, 0)), (keys, pattern))
    right = sum(
        keys
        for (node, pattern), keys in pairs.items()
        if most_of_true[pattern][1] == node and most_of_node[node][1] == pattern
    )
    pure = sum(count == 1 for count in Counter(node for node, _ in pairs).values())
    return Found(right / len(names), pure / len(most_of_node))


def node_of(root: FoldedNode, key: bytes, segments: KeySegments, identifiers: Identifiers) -> FoldedNode:
    """Return the node of a folded tree in which a key is counted."""
    node = root
    for name, separator in segments.of(key, 32):
        wanted = [(name, separator, NodeKind.LITERAL)]
        if len(name) <= LONGEST:
            form = identifiers.form(name)
            wanted += [(one, separator, NodeKind.PATTERN) for one in (form.pattern, form.numbered) if one is not None]
            label = form.pattern or name
            any_name = identifiers.any_name(label, is_pattern=form.pattern is not None)
        else:
            any_name = identifiers.any_name(name)
        wanted += [(one, separator, NodeKind.PATTERN) for one in (any_name, ID)] + [(REST, b"", NodeKind.OTHER)]
        below = next((child for one in wanted if (child := node.children.get(one)) is not None), None)
        if below is None or below.kind is NodeKind.OTHER:
            return below or node
        node = below
    return node
