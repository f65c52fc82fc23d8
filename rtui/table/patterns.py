"""Finds the pattern of each name of a table, in a tree of bounded size that grows with each table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rtui.keyspace.text.identifiers import LONGEST
from rtui.keyspace.text.key_segments import KeySegments
from rtui.keyspace.text.node_kinds import NodeKind
from rtui.keyspace.text.segments import Separators
from rtui.table.pattern_nodes import DEEPEST_LEVEL, ROOT, PatternNodes
from rtui.table.schema import keys_of
from rtui.table.segments import name_hashes

MOST_NODES: Final = 16_384
"""About so many nodes there are at most."""


class Patterns(PatternNodes):
    """The patterns of a keyspace with these separators, of so many levels."""

    def __init__(self, separators: Separators, depth: int | None = None, most: int = MOST_NODES) -> None:
        super().__init__(separators.values, most)
        self.depth = DEEPEST_LEVEL if depth is None else max(0, min(depth, DEEPEST_LEVEL))
        self._key_segments = KeySegments(separators)

    @classmethod
    def of_saved(
        cls, saved: Mapping[str, pl.DataFrame], separators: Separators, depth: int | None = None, most: int = MOST_NODES
    ) -> Self:
        """Return the patterns that `saved` was of; raises ValueError where that is no tree."""
        made = cls(separators, depth, most)
        made.restore(saved)
        return made

    def place(self, table: pl.DataFrame) -> NDArray[np.int32]:
        """Return the node of each row of a table with the columns `name` and `raw`, and `memory_bytes` if known."""
        keys = keys_of(table)
        nodes = np.zeros(len(keys), np.int32)
        patterns, names = list[int](), list[bytes]()
        for row, key in enumerate(keys):
            node = ROOT
            for name, separator in self._key_segments.of(key, self.depth):
                node = self._find(node, name, separator)
                if self.kinds[node] is NodeKind.PATTERN:
                    patterns.append(node)
                    names.append(name)
                elif self.kinds[node] is NodeKind.OTHER:
                    break
            nodes[row] = node
        self.distinct.add(np.array(patterns, np.int32), name_hashes(names))
        sizes = table["memory_bytes"].cast(pl.Float64).to_numpy() if "memory_bytes" in table.columns else None
        self.count(nodes, sizes)
        self.settle()
        return self.own()[nodes]

    def _find(self, parent: int, name: bytes, separator: bytes) -> int:
        """Return the child for a segment."""
        found = self.children(parent).get((name, separator, NodeKind.LITERAL))
        if found is not None:
            return found
        if len(name) > LONGEST:
            return self.child(parent, (self.identifiers.any_name(name), separator, NodeKind.PATTERN))
        form = self.identifiers.form(name)
        if form.pattern is not None:
            return self.child(parent, (form.pattern, separator, NodeKind.PATTERN))
        return self.child(parent, (name, separator, NodeKind.LITERAL), form.numbered)
