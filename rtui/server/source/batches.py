"""Tables as batches, for findings that add up batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import polars as pl

from rtui.analysis.aggregate.aggregates import Aggregates
from rtui.analysis.aggregate.tally import InspectedBatch
from rtui.analysis.aggregate.top_keys import TopKeys
from rtui.table.schema import NEVER, keys_of

_FACTS: Final = ("expires_ms", "memory_bytes", "idle_s", "frequency", "length")


class BatchFindings:
    """Hands tables to `Aggregates`, a batch for each type and each set of known facts."""

    def __init__(self, findings: Aggregates) -> None:
        self._findings = findings
        self._notes: dict[bytes | None, str] = {}

    @property
    def big(self) -> TopKeys:
        """The lists of largest keys."""
        return self._findings.big

    def add_rows(self, table: pl.DataFrame, asked_at_s: float) -> None:
        """Add rows that were asked at this moment, in seconds since the epoch."""
        known = [pl.col(name).is_not_null().alias(f"has_{name}") for name in _FACTS]
        alike = ["type", "sampled", *(f"has_{name}" for name in _FACTS)]
        for part in table.with_columns(known).partition_by(alike, maintain_order=True):
            key_type: str | None = part["type"][0]
            expires_ms, memory_bytes, idle_s, frequency, lengths = (
                part[name].to_list() if part[f"has_{name}"][0] else None for name in _FACTS
            )
            now_ms = round(asked_at_s * 1000)
            name = None if key_type is None else key_type.encode()
            batch = InspectedBatch(
                name,
                keys_of(part),
                None if expires_ms is None else [NEVER if at == NEVER else max(0, at - now_ms) for at in expires_ms],
                memory_bytes,
                idle_s,
                frequency,
                lengths,
                self._notes.get(name, "") if memory_bytes is None else "",
                is_sampled=part["sampled"][0],
                asked_at_s=asked_at_s,
            )
            self._findings.add(batch, asked_at_s)
        encodings = table.filter(pl.col("encoding").is_not_null()).partition_by("type", maintain_order=True)
        for part in encodings:
            found = [encoding.encode() for encoding in part["encoding"].to_list()]
            self._findings.add_encodings((part["type"][0] or "").encode(), found)

    def add_note(self, key_type: bytes | None, note: str) -> None:
        """Learn why the memory of keys of a type is not known."""
        self._notes[key_type] = note

    def add_unread(self, keys: Sequence[bytes]) -> None:
        """Add keys of which only the name is known."""
        self._findings.add_unread(keys)

    def add_vanished(self, count: int) -> None:
        """Count keys that were gone when they were asked."""
        self._findings.add_vanished(count)
