"""Rows of the compiled engine as a table of keys: what `rtui.server.source.table` makes of lists, of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
import polars as pl

from rtui.server.source.table import Numbers, constant, expiries, named
from rtui.table.schema import SCHEMA, names_of

ROW: Final = np.dtype(
    [
        *((name, np.uint64) for name in ("name_at", "length")),
        *((name, np.int64) for name in ("ttl_ms", "recency", "memory_bytes", "size", "asked_ms")),
        ("type", np.int32),
        ("slot", np.uint16),
        ("known", np.uint8),
        ("encoding", np.uint8),
    ],
    align=True,
)
"""A row as `server/engine/_pages.pxd` has it; names are `length` bytes from `name_at` on."""

TTL, MEMORY, IDLE, FREQUENCY, LENGTH, SAMPLED = (1 << bit for bit in range(6))
"""Bits of `known`: which facts of a key are known, and whether it stands for others."""

MOST_ENCODINGS: Final = 33
"""Of one type, with 0 for one that is not known."""


class EngineRows:
    """Rows that the engine has handed over at once."""

    def __init__(
        self, rows: bytes, names: bytes, types: Sequence[bytes | None], encodings: Sequence[Sequence[bytes]]
    ) -> None:
        """`types` are by number, and `encodings` of each type by number less 1, as far as the engine knows them."""
        self.array: np.ndarray[Any, Any] = np.frombuffer(rows, ROW)
        self._names, self._types, self._encodings = names, types, encodings

    def __len__(self) -> int:
        """How many there are."""
        return len(self.array)

    @property
    def asked_ms(self) -> int:
        """When the last of them was asked first, in ms since the epoch by the clock of rtui."""
        return int(self.array["asked_ms"].max())

    def has(self, fact: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return of which rows a fact is known."""
        found: np.ndarray[Any, np.dtype[np.bool_]] = self.array["known"] & np.uint8(fact) != 0
        return found

    def lengths(self) -> dict[bytes | None, Numbers]:
        """Return by type the lengths that are known."""
        known = self.has(LENGTH)
        types, sizes = self.array["type"][known], self.array["size"][known]
        return {self._types[one]: sizes[types == one] for one in self._types_of(known)}

    def without_memory(self) -> list[bytes | None]:
        """Return the types of which keys have no known memory."""
        return [self._types[one] for one in self._types_of(~self.has(MEMORY))]

    def _types_of(self, rows: np.ndarray[Any, np.dtype[np.bool_]]) -> list[int]:
        """Return the numbers of the types of some rows."""
        found: list[int] = np.flatnonzero(np.bincount(self.array["type"][rows])).tolist()
        return found

    def table(self, ahead_ms: int, node: str, database: int) -> pl.DataFrame:
        """Return the table; the server's clock is so far ahead of that of rtui."""
        array, size = self.array, len(self)
        ends = [0, *np.cumsum(array["length"], dtype=np.int64).tolist()]
        name, raw = names_of([self._names[start:end] for start, end in pairwise(ends)])
        kinds = array["type"]
        texts = [
            encoding
            for some in self._encodings
            for encoding in (None, *some, *[None] * (MOST_ENCODINGS - 1 - len(some)))
        ]
        columns: dict[str, pl.Series] = {
            "name": name,
            "raw": raw,
            "type": named(self._types).gather(kinds),
            "encoding": named(texts).gather(kinds * MOST_ENCODINGS + array["encoding"]),
            "node": constant("node", node, size),
            "expires_ms": self._column(TTL, expiries(array["ttl_ms"], array["asked_ms"] + ahead_ms)),
            "memory_bytes": self._column(MEMORY, array["memory_bytes"]),
            "length": self._column(LENGTH, array["size"]),
            "idle_s": self._column(IDLE, array["recency"]),
            "frequency": self._column(FREQUENCY, array["recency"]),
            "database": constant("database", database, size),
            "slot": pl.Series(array["slot"].astype(np.int64)),
            "sampled": pl.Series(self.has(SAMPLED)),
        }
        return pl.DataFrame({column: columns[column] for column in SCHEMA})

    def _column(self, fact: int, values: Numbers) -> pl.Series:
        """Return a column that is null where the fact is not known."""
        known = self.has(fact)
        if not known.any():
            return constant("length", None, len(self))
        found = pl.Series(np.ascontiguousarray(values))
        return found if known.all() else found.scatter(np.flatnonzero(~known), None)
