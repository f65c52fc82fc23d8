"""One fact of all keys directly in a namespace, which they are to be sorted by, from the rows of an analysis."""

from __future__ import annotations

import asyncio
from itertools import chain
from math import inf
from typing import Any, Final

import polars as pl

from rtui.analysis.query.expressions import COLUMN_OF
from rtui.analysis.query.terms import Fact
from rtui.keyspace.rows.ordering import Sort
from rtui.keyspace.store.held_names import HeldNames
from rtui.keyspace.store.namespace import Namespace
from rtui.keyspace.store.store import NamespaceStore
from rtui.keyspace.text.display import SafeText
from rtui.server.key_column import FACTS, NEVER, type_weight
from rtui.table.rows import Chunk, KeptRows
from rtui.table.schema import NEVER as NO_EXPIRY
from rtui.table.schema import keys_in_slices, names_of

_NAME: Final = ["name", "raw"]


class KeptColumn:
    """The weights of keys by their names in the namespace, see `key_column.KeyColumn`; of later keys there are none."""

    failure: SafeText | None = None

    def __init__(self, rows: KeptRows, store: NamespaceStore, node: Namespace, sort: Sort) -> None:
        self.node = node
        self.of = node.key_total
        """Keys that are looked for."""
        self.weights: dict[bytes, float] = {}
        """By the last segment of the name; infinite where the analysis does not know it."""
        self._fact = FACTS[sort]
        self._rows, self._store = rows, store

    async def run(self) -> None:
        """Look for all keys."""
        names = [*chain.from_iterable(HeldNames(self._store, self.node, is_direct=True).pages())]
        wanted = pl.DataFrame(names_of(names))
        for chunk in self._rows.chunks():
            self.weights |= await asyncio.to_thread(self._found, chunk, wanted)

    def _found(self, chunk: Chunk, wanted: pl.DataFrame) -> dict[bytes, float]:
        column, skipped = COLUMN_OF[self._fact], len(self.node.path())
        table = chunk.columns((*_NAME, column)).join(wanted, on=_NAME, how="semi", nulls_equal=True)
        keys = chain.from_iterable(keys_in_slices(table))
        return {key[skipped:]: self._weight(value) for key, value in zip(keys, table[column], strict=True)}

    def _weight(self, value: Any) -> float:
        """Return what a key is sorted by, as `key_column.weight` does."""
        if value is None:
            return inf
        if self._fact is Fact.TYPE:
            return type_weight(value.encode())
        if self._fact is Fact.TTL:
            return NEVER if value == NO_EXPIRY else value / 1000
        return float(-value)
