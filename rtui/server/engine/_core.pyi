from collections.abc import Sequence

from rtui.analysis.aggregate.expiry_bins import ExpiryScale
from rtui.analysis.aggregate.pattern_tree import Limits

class PatternTable:
    def __init__(self, separators: Sequence[bytes], scale: ExpiryScale, depth: int | None, limits: Limits) -> None: ...
    def add(
        self,
        key_type: bytes | None,
        keys: list[bytes],
        ttl_ms: Sequence[int] | None,
        memory_bytes: Sequence[int] | None,
        idle_s: Sequence[int] | None,
        frequency: Sequence[int] | None,
        string_lengths: Sequence[int] | None,
        asked_at_ms: int,
    ) -> None: ...
    def __len__(self) -> int: ...

class SlotTable:
    def add(
        self, keys: list[bytes], memory_bytes: Sequence[int] | None, ttl_ms: Sequence[int] | None
    ) -> tuple[list[bytes], list[int] | None]: ...
    def counts(self) -> tuple[list[int], list[int], list[int]]: ...
    def ttl_counts(self) -> tuple[list[int], list[int]]: ...

def pattern(segment: bytes, separators: Sequence[bytes]) -> tuple[bytes | None, bytes | None]: ...
