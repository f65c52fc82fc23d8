"""Cells made of the figures of a report: lower bounds where not all was seen, a reason where nothing is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import isinf
from typing import Final

from rtui.analysis import humanize
from rtui.analysis.estimates import Estimate, as_estimate
from rtui.analysis.facts import NO_EXPIRY, NO_TTL, Reason, Unknown
from rtui.analysis.humanize import Mark
from rtui.analysis.report.document import ColumnState, Coverage, CoverageKind, KeyRecord, Node, Quantiles, Report, Stats
from rtui.analysis.report.members import DAY_S, IDLE_EDGES_S, Figure
from rtui.analysis.report.tables.table import AtLeast, Cell, Column, Unit
from rtui.keyspace.slots import SLOTS, key_slot

LONG_IDLE_BIN = IDLE_EDGES_S.index(30 * DAY_S) + 1
"""The first bin of idle times of keys that nobody used for 30 days."""

KEYS = Column("keys", "keys", Unit.KEYS, 11)
SHARE_OF_KEYS = Column("share_of_keys", "share", Unit.SHARE, 5, "Of all keys")


class Cells:
    """Makes cells of the figures of one report."""

    def __init__(self, report: Report) -> None:
        self._columns = report.head.columns
        self.is_partial = report.head.coverage.kind is CoverageKind.PARTIAL
        self.is_estimate = report.head.coverage.kind is CoverageKind.ESTIMATE
        self.mark = Mark.AT_LEAST if self.is_partial else Mark.EXACT

    def unknown(self, fact: str) -> Unknown | None:
        """Return why a fact is unknown of all keys; None if it is known of some."""
        column = self._columns.get(fact)
        if column is None or column.state is ColumnState.COMPLETE:
            return None
        reason = Reason.NOT_ASKED if column.state is ColumnState.SOME else Reason[column.state.name]
        return Unknown(reason, column.reason)

    def amount(self, value: Figure | None, fact: str = "") -> Cell:
        if value is None:
            return self.unknown(fact)
        return AtLeast(value) if self.is_partial and not isinstance(value, Estimate) else value

    def known(self, value: bytes | Figure | None, fact: str) -> Cell:
        """Return a fact of one key, or a share, mean or quantile (of the keys seen); else why it is unknown."""
        return self.unknown(fact) if value is None else value

    def quantiles(self, found: Quantiles | None, fact: str, *, may_lack: bool = False) -> tuple[Cell, ...]:
        """Return mean, p50, p90, p99 and maximum; unseen keys may be larger, with `may_lack` seen ones, too."""
        if found is None:
            return (self.unknown(fact),) * 5
        largest = AtLeast(found.max) if self.is_partial or self.is_estimate or may_lack else found.max
        return found.mean, found.p50, found.p90, found.p99, largest

    def memory(self, stats: Stats) -> Cell:
        """Return the bytes of a set of keys: a lower bound if those of some are unknown."""
        value, keys = stats.memory_bytes, stats.keys
        if value is None or isinstance(value, Estimate) or isinstance(keys, Estimate):
            return self.amount(value, "memory")
        return AtLeast(value) if self.is_partial or stats.memory_known_keys < keys else value

    def figures(self, stats: Stats) -> dict[str, Cell]:
        mean, p50, p90, p99, largest = self.quantiles(stats.memory, "memory")
        counters = None if stats.frequency is None else stats.frequency[::-1]
        return {
            "keys": self.amount(stats.keys),
            "share_of_keys": stats.share_keys,
            "memory": self.memory(stats),
            "share_of_memory": self.known(stats.share_memory, "memory"),
            "memory_mean": mean,
            "memory_p50": p50,
            "memory_p90": p90,
            "memory_p99": p99,
            "memory_max": largest,
            "no_ttl_keys": self.amount(stats.no_ttl_keys, "ttl"),
            "no_ttl_share": self.known(stats.no_ttl_share, "ttl"),
            "no_ttl_memory": self.amount(stats.no_ttl_memory_bytes, "memory"),
            "soonest_expiry": stats.soonest_expiry_s,
            "idle_30d_share": self.known(share_above(stats.idle, LONG_IDLE_BIN), "idle"),
            "cold_share": self.known(share_above(counters, len(counters or ()) - 1), "frequency"),
            "types": stats.types or self.unknown("type"),
        }

    def lasting(self, stats: Stats) -> tuple[Cell, Cell]:
        """Return the keys that never expire and their bytes: lower bounds if some are unknown."""
        keys, memory = stats.no_ttl_keys, stats.no_ttl_memory_bytes
        known = None if stats.ttl is None or keys is None else plain(keys) + sum(map(plain, stats.ttl))
        return (
            self.part(keys, known is None or known >= plain(stats.keys), "ttl"),
            self.part(memory, stats.memory_known_keys >= plain(stats.keys)),
        )

    def part(self, value: Figure | None, is_whole: bool, fact: str = "memory") -> Cell:
        """Return a sum, such as the bytes of a slot: a lower bound unless it is of all keys seen."""
        if value is None or isinstance(value, Estimate) or is_whole:
            return self.amount(value, fact)
        return AtLeast(value)

    def ttl(self, record: KeyRecord) -> Cell:
        if record.ttl_ms is None:
            return self.unknown("ttl")
        return NO_TTL if record.ttl_ms <= NO_EXPIRY else record.ttl_ms / 1000


def share_above(bins: tuple[Figure, ...] | None, index: int) -> float | Estimate | None:
    if bins is None:
        return None
    above, below = list(map(as_estimate, bins[index:])), list(map(as_estimate, bins[:index]))
    value = _share(sum(one.value for one in above), sum(one.value for one in below))
    if value is None or not any(isinstance(one, Estimate) for one in bins):
        return value
    low = _share(sum(one.low for one in above), sum(one.high for one in below))
    high = _share(sum(one.high for one in above), sum(one.low for one in below))
    return Estimate(value if low is None else low, value, value if high is None else high)


def share_of_total(figure: Figure, total: Figure) -> float | Estimate | None:
    whole = plain(total)
    if not whole:
        return None
    if isinstance(figure, Estimate):
        low, value, high = (min(1.0, bound / whole) for bound in (figure.low, figure.value, figure.high))
        return Estimate(low, value, high)
    return min(1.0, figure / whole)


def _share(part: float, rest: float) -> float | None:
    if isinf(part):
        return 1.0
    return part / (part + rest) if part + rest else None


NODE: Final = Column("node", "node", Unit.TEXT, 21, "Host and port of the node of its slot")


class Owners:
    """The nodes of slots, as cells of a column that tables of a cluster have besides."""

    def __init__(self, report: Report) -> None:
        self.columns: tuple[Column, ...] = () if report.cluster is None else (NODE,)
        self._labels: list[str | None] = [None] * SLOTS
        for node in () if report.cluster is None else report.cluster.nodes:
            for first, last in node.slots:
                self._labels[first : last + 1] = [node.label] * (last + 1 - first)

    def cells(self, slot: int) -> tuple[Cell, ...]:
        return (self._labels[slot],) if self.columns else ()

    def of_key(self, key: bytes) -> tuple[Cell, ...]:
        return self.cells(key_slot(key)) if self.columns else ()


def plain(figure: Figure) -> float:
    """Return the number itself, without its interval."""
    return figure.value if isinstance(figure, Estimate) else figure


def so_far(coverage: Coverage) -> str:
    """Return the end of a sentence about an absence: ` so far (49% of the keys seen)`.

    For a sample ` in a sample of 4,000 keys`; empty if every key was seen.
    """
    if coverage.kind is CoverageKind.EXACT:
        return ""
    if coverage.kind is CoverageKind.ESTIMATE:
        return f" in a sample of {humanize.keys(coverage.keys)}"
    if coverage.fraction is None:
        return f" so far ({humanize.keys(coverage.counted_keys)} seen)"
    return f" so far ({humanize.share(min(coverage.fraction, 0.99))} of the keys seen)"


def weight_of(report: Report) -> Callable[[Node], float]:
    """Return the weight behind the width of a namespace: its bytes, or its keys if bytes are unknown."""
    if report.summary.root.stats.memory_bytes is None:
        return lambda node: plain(node.stats.keys)
    return lambda node: plain(node.stats.memory_bytes or 0)


def parts_of(node: Node, weight: Callable[[Node], float]) -> Iterator[tuple[Node, float, float]]:
    """Yield the children of a node with their begin and end in its width, 0 … 1; keys of no child come last."""
    weights = list(map(weight, node.children))
    total, before = max(weight(node), sum(weights)), 0.0
    for child, part in zip(node.children, weights, strict=True) if total > 0 else ():
        yield child, before / total, (before + part) / total
        before += part
