"""A few examples of the keys of each node: those with the smallest checksums.

CRC32 is the same in all processes, so neither the order of keys nor how they are divided among tables has a say in it.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl

from rtui.table.sums import Whole, ranks

MOST_EXAMPLES: Final = 3
LONGEST_EXAMPLE: Final = 256
"""Longer keys, in bytes, are no examples."""

_ANY: Final = 1 << 32
"""Above all checksums."""

_MASK: Final = _ANY - 1

_EXAMPLES: Final = pl.Schema({"node": pl.Int64(), "checksum": pl.Int64(), "key": pl.Binary()})


class Examples:
    """Some keys of each node."""

    def __init__(self) -> None:
        self.rows = _EXAMPLES.to_frame()
        """By node and checksum."""
        self._limits = np.empty(0, np.int64)
        """By node, the checksum of the last example, once the node has MOST_EXAMPLES."""

    def add(self, nodes: Whole, keys: pl.Series, sums: Whole, nodes_in_all: int) -> None:
        """Choose examples from keys, a column of Binary; `sums` are their checksums."""
        self._grow(nodes_in_all)
        found = np.flatnonzero(sums <= self._limits[nodes])
        if not len(found):
            return
        nodes, sums = nodes[found], sums[found]
        pairs = np.unique((nodes << 32) | sums)
        last = np.full(nodes_in_all, -1)
        kept = pairs[ranks(pairs >> 32) < MOST_EXAMPLES]
        np.maximum.at(last, kept >> 32, kept & _MASK)
        within = np.flatnonzero(sums <= last[nodes])
        rows = pl.DataFrame({"node": nodes[within], "checksum": sums[within], "key": keys.gather(found[within])})
        self._take(rows.filter(pl.col("key").bin.size() <= LONGEST_EXAMPLE))

    def _take(self, rows: pl.DataFrame) -> None:
        if not rows.height:
            return
        ordered = pl.concat((self.rows, rows)).unique().sort("node", "checksum", "key")
        nodes = ordered["node"].to_numpy()
        places = ranks(nodes)
        self.rows = ordered.filter(pl.Series(places < MOST_EXAMPLES))
        last = places == MOST_EXAMPLES - 1
        self._limits[nodes[last]] = ordered["checksum"].to_numpy()[last]

    def _grow(self, nodes: int) -> None:
        missing = nodes - len(self._limits)
        if missing > 0:
            self._limits = np.concatenate((self._limits, np.full(missing, _ANY)))

    def taken(self, to: Whole) -> Examples:
        """Return the same under other numbers: node i becomes `to[i]`, several may become one."""
        made = Examples()
        nodes = to[self.rows["node"].to_numpy()]
        made._grow(int(to.max()) + 1 if len(to) else 0)
        made._take(self.rows.with_columns(pl.Series("node", nodes)))
        return made

    def merge(self, other: Examples) -> None:
        """Choose examples from another table, whose nodes have the same numbers."""
        self._grow(len(other._limits))
        self._take(other.rows)

    def by_node(self) -> dict[int, list[tuple[int, bytes]]]:
        """Return the checksums and keys of each node that has any, in order."""
        found: dict[int, list[tuple[int, bytes]]] = {}
        for node, checksum, key in self.rows.iter_rows():
            found.setdefault(node, []).append((checksum, key))
        return found
