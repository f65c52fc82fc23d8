import builtins
from collections.abc import Sequence

from rtui.analysis.aggregate.expiry_bins import ExpiryBins
from rtui.analysis.aggregate.string_lengths import StringLengths
from rtui.analysis.estimates import Estimate
from rtui.analysis.report.document import NodeKind
from rtui.server.engine._core import PatternTable

class FoldedTable:
    def __init__(self, table: PatternTable) -> None: ...
    def copy(self) -> None: ...
    def fold(self, budget: int) -> None: ...
    def root(self) -> FoldedNode: ...
    def by_type(self) -> dict[bytes | None, FoldedTally]: ...
    def expiries(self, node: FoldedNode) -> tuple[ExpiryBins, int]: ...

class FoldedNode:
    name: builtins.bytes
    separator: builtins.bytes
    kind: NodeKind
    keys: int
    bytes: int
    names: int | Estimate | None
    holds_any_name: bool
    example_keys: list[builtins.bytes]
    is_alike: bool
    own_keys: int
    expiring: int
    types: dict[builtins.bytes | None, int]
    tally: FoldedTally
    below: list[FoldedNode]

class FoldedTally:
    keys: int
    memory: FoldedSizes | None
    ttl: FoldedLives | None
    idle: list[int] | None
    frequency: list[int] | None
    strings: StringLengths | None

class FoldedSizes:
    count: int
    sum: int
    max: int
    min: int
    mean: float
    def quantiles(self, shares: Sequence[float]) -> list[int]: ...
    def sum_of_squares(self) -> float: ...
    def largest(self, most: int) -> list[float]: ...

class FoldedLives:
    known_keys: int
    no_ttl_keys: int
    no_ttl_memory_bytes: int
    no_ttl_squares: int
    no_ttl_largest: tuple[float, ...]
    expiring_largest: int
    soonest_ms: int | None
    range_ms: tuple[int, int] | None
    bins: list[int]
