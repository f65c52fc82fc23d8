"""What a report is made of: the patterns of one moment and what their keys add up to.

Below `user` there are `{id}` with 900 strings and 100 hashes, and `index` with one set. `user` adds up to 1,001 keys:
one tally of them all, and how many are of which type. What keys of one type add up to is known for the whole keyspace
alone. Nor are bins of expiries added up for every node, since a report shows them for a dozen namespaces; they are
gathered for those.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, Self, TypeVar

from rtui.analysis.aggregate.expiry_bins import ExpiryBins
from rtui.analysis.aggregate.sketch import Sizes
from rtui.analysis.aggregate.string_lengths import StringLengths
from rtui.analysis.estimates import Estimate
from rtui.analysis.report.document import NodeKind
from rtui.keyspace.slices import Slicer, Slices

# ruff: noqa: D102 - properties have their docstrings in `Tally`, `TtlTally` and `FoldedNode`


class LifeSums(Protocol):
    """Times to live of keys, as `TtlTally` has them."""

    @property
    def known_keys(self) -> int: ...
    @property
    def no_ttl_keys(self) -> int: ...
    @property
    def no_ttl_memory_bytes(self) -> int: ...
    @property
    def no_ttl_squares(self) -> int: ...
    @property
    def no_ttl_largest(self) -> tuple[float, ...]: ...
    @property
    def soonest_ms(self) -> int | None: ...
    @property
    def range_ms(self) -> tuple[int, int] | None: ...
    @property
    def bins(self) -> list[int]: ...


class KeySums(Protocol):
    """What keys add up to, as `Tally` has it."""

    @property
    def keys(self) -> int: ...
    @property
    def memory(self) -> Sizes | None: ...
    @property
    def ttl(self) -> LifeSums | None: ...
    @property
    def idle(self) -> list[int] | None: ...
    @property
    def frequency(self) -> list[int] | None: ...
    @property
    def strings(self) -> StringLengths | None: ...


class CountedNode(Protocol):
    """A namespace or pattern with what the keys at and below it add up to."""

    @property
    def name(self) -> bytes: ...
    @property
    def separator(self) -> bytes: ...
    @property
    def kind(self) -> NodeKind: ...
    @property
    def keys(self) -> int: ...
    @property
    def below(self) -> Sequence[Self]: ...
    @property
    def own_keys(self) -> int: ...
    @property
    def types(self) -> Mapping[bytes | None, int]: ...
    @property
    def tally(self) -> KeySums: ...
    @property
    def expiring(self) -> int: ...
    @property
    def is_alike(self) -> bool: ...
    @property
    def names(self) -> int | Estimate | None: ...
    @property
    def holds_any_name(self) -> bool: ...
    @property
    def example_keys(self) -> Sequence[bytes]: ...


N = TypeVar("N", bound=CountedNode)


class CountedPatterns(Protocol[N]):
    """All patterns of a report."""

    @property
    def root(self) -> N: ...
    @property
    def by_type(self) -> Mapping[bytes | None, KeySums]:
        """What all keys of a type add up to, under None for those whose type is not known."""

    def release(self, slicer: Slicer) -> Slices[None]:
        """Free what is not needed any more: nothing can be read afterwards."""
        ...

    def expiries(self, nodes: Sequence[N], slicer: Slicer) -> Slices[list[tuple[ExpiryBins, int]]]:
        """Return for each node when the keys at and below it expire, and the size of the largest of them."""
        ...
